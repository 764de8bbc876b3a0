"""Hosts whose time of day is wrong, or is set while they run: nothing changes but the times shown."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support.clocks import TimeOfDay
from tests.support.drills import Drill
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess, spec_file
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually

pytestmark = whole_product(seconds=400)

HOUR, DAY = 3600, 86_400


@pytest.fixture
def clock(tmp_path: Path) -> TimeOfDay:
    """The time of day of the first host."""
    return TimeOfDay(tmp_path / "first")


@pytest.fixture
def drill(
    kafka: Kafka, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path, clock: TimeOfDay
) -> Iterator[Drill]:
    """A service that passes, on a host whose clock can be set; Kafka and Redis live by the right time."""
    topics = topic(partitions=3), topic(partitions=3)
    first = clock.environment
    with Drill(tmp_path, topics, kafka.brokers, redis_server.url, environment=first).running() as running:
        yield running


@pytest.mark.nightly
def test_a_time_of_day_that_jumps_changes_nothing_but_is_named_until_it_is_right(
    drill: Drill, clock: TimeOfDay, redis_server: RedisServer
) -> None:
    matchers = drill.service.matchers()
    for jump, way in ((HOUR, "3,600 s ahead of"), (-HOUR, "3,600 s behind"), (DAY, "86,400 s ahead of")):
        clock.set(jump)
        drill.degraded(f"the clock of this host is {way} that of Redis")
        drill.write_on()
        status = drill.says(lambda it: it["matched"] == drill.pairs, "all pairs match")
        assert status["verdict"] == "EQUIVALENT"
        clock.set(0)
        drill.passes()
    clock.set(-DAY)
    drill.plant()
    drill.answers("fail")
    clock.set(0)
    drill.ends_as_undisturbed(redis_server)
    assert drill.service.matchers() == matchers, "none fell, and none lost its lease"
    assert set(drill.watch.answers()) == {"undecided", "pass", "fail"}


@pytest.mark.nightly
def test_a_standby_whose_clock_is_wrong_shows_what_the_owner_says_and_takes_over_as_any_other(
    drill: Drill, tmp_path: Path, redis_server: RedisServer
) -> None:
    second = drill.another(TimeOfDay(tmp_path / "second", -600).environment)
    second.start()
    drill.watch.add(second)
    drill.answers("pass", second)
    drill.service.kill()
    drill.degraded("the clock of this host is 600 s behind that of Redis", second)
    drill.plant()
    drill.answers("fail", second)
    drill.ends_as_undisturbed(redis_server, service=second)


@pytest.mark.nightly
def test_a_restart_makes_no_record_younger_whose_clock_is_ahead_of_all_others(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    reference, candidate = topic(), topic()
    soon_stale = "overdue: {after: 1h}\ngate: {max_staleness: 15s}\n"
    file = spec_file(tmp_path, "ahead", reference, candidate, soon_stale, "unordered")
    stamp_ms = int((time.time() + HOUR) * 1000)
    producer = Producer({"bootstrap.servers": kafka.brokers, "enable.idempotence": True})
    for number in range(101):
        producer.produce(reference, json.dumps({"k": 1, "n": number}), timestamp=stamp_ms)
        if number < 100:
            producer.produce(candidate, json.dumps({"k": 1, "n": number}), timestamp=stamp_ms)
    assert producer.flush(30) == 0
    answers = []

    def is_old() -> bool:
        gate = service.get("/gate")
        answers.append(gate["answer"])
        return "verified only through" in gate["reason"]

    with ServiceProcess(file, kafka.brokers, redis_url) as service:
        eventually(is_old, seconds=60, what="the event is old", every_seconds=0.2)
        assert "pass" in answers
        service.stop()
        answers.clear()
        service.start()
        eventually(is_old, seconds=60, what="the event is old again", every_seconds=0.2)
        assert set(answers) == {"undecided"}
