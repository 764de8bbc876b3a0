"""The running service on real Kafka and Redis, while things around it break."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka.admin import AdminClient

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support.cases import Case, passes_with, running, serving
from tests.support.marks import whole_product
from tests.support.poisonous import POISON
from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually

pytestmark = whole_product()


@pytest.fixture
def shared(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[Case]:
    """A running service on the shared servers."""
    topics = topic(partitions=3), topic(partitions=3)
    with serving(tmp_path, kafka.brokers, redis_url, topics) as case:
        yield case
    eventually(lambda: not case.service.family(), seconds=30, what="all its processes are gone")


@pytest.fixture
def own(own_kafka: Kafka, redis_url: str, tmp_path: Path) -> Iterator[Case]:
    """A running service on a broker of its own."""
    topics = own_kafka.create_topic("reference"), own_kafka.create_topic("candidate")
    with serving(tmp_path, own_kafka.brokers, redis_url, topics) as case:
        yield case


def test_equal_topics_pass_and_a_lost_event_fails_with_its_record(shared: Case) -> None:
    service, write, _ = shared
    write.both(range(1000))
    eventually(lambda: service.gate() == "pass", what="the gate passes")
    write.reference(3, -1)
    write.both(range(1000, 2000))
    eventually(lambda: service.gate() == "fail", what="the gate fails")
    (divergence,) = service.get("/divergences")["items"]
    assert (divergence["kind"], divergence["reference"]) == ("missing", {"k": 3, "n": -1})
    receipt = service.get("/receipt")
    assert (receipt["verdict"], receipt["gate"]["answer"]) == ("DIVERGED", "fail")
    assert {"order", "decode"} <= {one["key"] for one in receipt["exclusions"]}
    assert (receipt["coverage"]["keys"], receipt["coverage"]["kinds"]["event"]["varied"]) == (10, ["k", "n"])


def test_what_a_known_difference_explains_passes_and_its_record_is_shown_when_asked_for(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    rule = "{id: GONE, when: {divergences: [missing]}, owner: ann, expires: 2999-01-01, ceiling: {count: 9}}"
    topics = topic(partitions=3), topic(partitions=3)
    more = f"known_differences: [{rule}]\n"
    with serving(tmp_path, kafka.brokers, redis_url, topics, more=more) as (service, write, _):
        write.both(range(1000))
        write.reference(3, -1)
        write.both(range(1000, 2000))
        passes_with(service, 2000)
        eventually(lambda: service.get("/divergences?explained=true")["items"], what="its example is shown")
        [example] = service.get("/divergences?explained=true")["items"]
        assert (example["explained"], example["reference"]) == ("GONE", {"k": 3, "n": -1})
        status = service.get("")
        assert (status["explained_by_rule"], status["divergences"]["total"]) == ({"GONE": 1}, 0)
        assert service.get("/divergences")["items"] == []


def test_a_known_difference_in_a_key_that_comes_once_passes_when_both_sides_have_gone_on(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    when = "{divergences: [changed], fields: [n]}"
    rule = f"{{id: N-1, when: {when}, owner: ann, expires: 2999-01-01, ceiling: {{count: 9}}}}"
    more = f"identity: [k]\noverdue: {{clock: arrival, after: 2s}}\nknown_differences: [{rule}]\n"
    with serving(tmp_path, kafka.brokers, redis_url, (topic(), topic()), more=more) as case:
        service, write, _ = case
        case.write.both(range(100))
        case.passes_with(100)
        write.reference(777, 1)
        write.candidate(777, 2)
        write.flush()
        eventually(
            lambda: service.get("")["difference_awaits"] == ["classification"], what="it is in dispute"
        )
        assert (service.get("")["verdict"], service.gate()) == ("INCONCLUSIVE", "undecided")
        numbers = iter(range(100, 10_000))

        def passes() -> bool:
            number = next(numbers)
            write.both(range(number, number + 1))
            return service.gate() == "pass"

        eventually(passes, seconds=60, what="the gate passes", every_seconds=0.2)
        status = service.get("")
        assert (status["explained_by_rule"], status["divergences"]["total"]) == ({"N-1": 1}, 0)
        nothing = {"reference": 0, "candidate": 0}
        # The gate may pass by an earlier pair while the last one is still on its way.
        eventually(lambda: service.get("")["unmatched"] == nothing, what="nothing waits for its partner")


@pytest.fixture
def days(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[Case]:
    """A running service that compares between markers of which each partition has a copy."""
    topics = topic(partitions=3), topic(partitions=3)
    order = "{barrier: day, inner: {per_key: [k]}, copies: per_partition}"
    kinds = "kinds: {day: {where: {k: day}}, event: {}}\n"
    with serving(tmp_path, kafka.brokers, redis_url, topics, more=kinds, order=order) as case:
        yield case


def test_markers_in_each_partition_keep_days_apart_and_an_event_over_one_fails(days: Case) -> None:
    service, write, _ = days
    for day in range(3):
        write.both(range(day * 100, day * 100 + 100))
        write.marker(day, partitions=3)
    passes_with(service, 303)
    assert service.get("")["accounts"]["reference"]["ignored"] == 6
    write.reference(3, -1)
    write.flush()
    write.marker(3, partitions=3)
    write.candidate(3, -1)
    write.both(range(300, 400))
    write.marker(4, partitions=3)
    eventually(lambda: _kinds(service) == ["reordered"], what="both sides of it are one")
    eventually(lambda: service.gate() == "fail", what="the gate fails")
    (divergence,) = service.get("/divergences")["items"]
    assert divergence["reference"] == divergence["candidate"] == {"k": 3, "n": -1}


def _kinds(service: ServiceProcess) -> list[str]:
    """The kinds of all divergences; one that was `missing` may become `reordered` when its partner comes."""
    return [each["kind"] for each in service.get("/divergences")["items"]]


def test_a_record_that_is_no_event_makes_the_gate_undecided_and_is_named(shared: Case) -> None:
    service, write, _ = shared
    write.both(range(100))
    eventually(lambda: service.gate() == "pass", what="the gate passes")
    write.raw_candidate(b'{"k": 1')
    write.flush()
    eventually(lambda: service.gate() == "undecided", what="the gate is undecided")
    status = service.get("")
    assert status["verdict"] == "INCONCLUSIVE"
    assert status["undecodable"][0]["reason"].startswith("not JSON")
    assert status["accounts"]["candidate"]["undecodable"] == 1


def test_a_killed_matcher_is_replaced_within_seconds_and_goes_on(shared: Case) -> None:
    service, write, _ = shared
    write.both(range(1000))
    eventually(lambda: service.gate() == "pass", what="the gate passes")
    (matcher,) = service.matchers()
    os.kill(matcher, signal.SIGKILL)
    eventually(lambda: service.gate() == "undecided", what="the gate is undecided without its matcher")
    write.both(range(1000, 2000))
    passes_with(service, 2000)
    assert service.matchers() != [matcher]


def test_nothing_is_left_of_a_service_that_was_killed(shared: Case) -> None:
    service = shared.service
    service.kill()
    eventually(lambda: not service.family(), seconds=30, what="all its processes are gone")
    service.start()


def test_a_second_service_stands_by_and_takes_over(shared: Case, kafka: Kafka, redis_url: str) -> None:
    service, write, _ = shared
    write.both(range(100))
    eventually(lambda: service.gate() == "pass", what="the gate passes")
    with running(ServiceProcess(service.spec, kafka.brokers, redis_url)) as second:
        eventually(lambda: "stands by" in " ".join(second.get("")["health"]["reasons"]), what="it stands by")
        passes_with(second, 100)
        assert not second.ready()
        service.stop()
        write.both(range(100, 200))
        passes_with(second, 200)
        assert second.ready()
    service.start()


def test_a_service_that_stands_by_shows_what_the_owner_shows(
    shared: Case, kafka: Kafka, redis_url: str
) -> None:
    service, write, _ = shared
    write.both(range(100))
    passes_with(service, 100)
    with running(ServiceProcess(service.spec, kafka.brokers, redis_url)) as second:
        passes_with(second, 100)
        write.reference(3, -1)
        write.both(range(100, 1000))
        eventually(lambda: _said(service) == _said(second), what="both say the same")
        eventually(lambda: second.gate() == "fail", what="it fails, too")
        eventually(lambda: _said(service) == _said(second), what="both say the same")
        (divergence,) = second.get("/divergences")["items"]
        assert (divergence["kind"], divergence["reference"]) == ("missing", {"k": 3, "n": -1})
        assert (second.get("")["health"]["standby"], second.ready()) == (True, False)


def _said(service: ServiceProcess) -> tuple[Any, ...]:
    status = service.get("")
    members = ("verdict", "since", "reason", "accounts", "verified_up_to", "divergences", "started_at")
    return (*(status[member] for member in members), service.get("/divergences")["items"], service.gate())


def test_an_owner_that_is_frozen_passes_no_more_at_the_one_that_stands_by_which_takes_over(
    shared: Case, kafka: Kafka, redis_url: str
) -> None:
    service, write, _ = shared
    write.both(range(100))
    passes_with(service, 100)
    with running(ServiceProcess(service.spec, kafka.brokers, redis_url)) as second:
        passes_with(second, 100)
        (frozen,) = service.matchers()
        os.kill(frozen, signal.SIGSTOP)
        try:
            eventually(lambda: second.gate() == "undecided", seconds=9, what="before its lease has ended")
            assert not second.ready()
            write.both(range(100, 200))
            passes_with(second, 200)
            assert (second.get("")["health"]["standby"], second.ready()) == (False, True)
        finally:
            os.kill(frozen, signal.SIGCONT)
        eventually(lambda: service.get("")["health"]["standby"], what="the first one stands by")
        passes_with(service, 200)


def test_a_service_that_is_killed_is_replaced_by_the_one_that_stands_by_before_its_lease_ends(
    shared: Case, kafka: Kafka, redis_url: str
) -> None:
    service, write, _ = shared
    write.both(range(100))
    passes_with(service, 100)
    with running(ServiceProcess(service.spec, kafka.brokers, redis_url)) as second:
        eventually(lambda: second.get("")["health"]["standby"], what="it stands by")
        with redis.Redis.from_url(redis_url) as client:
            service.kill()
            eventually(lambda: not service.family(), seconds=30, what="all its processes are gone")
            lease = f"twinstream:{{{service.spec.stem}}}:lease"
            assert client.pexpire(lease, 3_600_000), "whose end shall not be what lets the second in"
        write.both(range(100, 200))
        passes_with(second, 200)
    service.start()


def test_a_broker_away_degrades_the_service_which_recovers_alone(own: Case, own_kafka: Kafka) -> None:
    service, write, _ = own
    write.both(range(100))
    eventually(lambda: service.gate() == "pass", what="the gate passes")
    own_kafka.kill()
    eventually(lambda: service.gate() == "undecided", seconds=30, what="the gate is undecided without Kafka")
    assert "no Kafka broker" in service.get("")["health"]["reasons"][0]
    assert not service.ready()
    own_kafka.restart()
    write.both(range(100, 200))
    passes_with(service, 200)


def test_a_broker_that_hangs_degrades_the_service_which_recovers_alone(own: Case, own_kafka: Kafka) -> None:
    service, write, _ = own
    write.both(range(100))
    eventually(lambda: service.gate() == "pass", what="the gate passes")
    own_kafka.pause()
    eventually(
        lambda: service.gate() == "undecided", seconds=30, what="the gate is undecided without answers"
    )
    own_kafka.resume()
    write.both(range(100, 200))
    passes_with(service, 200)


def test_a_store_away_degrades_the_service_which_recovers_alone(
    kafka: Kafka, own_redis: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    with serving(tmp_path, kafka.brokers, own_redis.url, (topic(), topic())) as (service, write, _):
        write.both(range(100))
        eventually(lambda: service.gate() == "pass", what="the gate passes")
        own_redis.kill()
        write.both(range(100, 200))
        eventually(lambda: service.gate() == "undecided", seconds=30, what="undecided without Redis")
        status = service.get("")
        assert "redis at 127.0.0.1" in status["health"]["reasons"][0]
        assert "since" in status["health"]["reasons"][0]
        own_redis.restart()
        passes_with(service, 200)


def _plant(write: Writer, rounds: int) -> None:
    """Rounds of a thousand equal events, with a fault between any two, on different keys."""
    for number in range(rounds):
        write.both(range(number * 1000, (number + 1) * 1000))
        if number % 2 == 0:
            write.reference(number % 10, -number - 1)
        else:
            write.candidate(number % 10, -number - 1)
        write.flush()
    write.both(range(rounds * 1000, (rounds + 1) * 1000))


def _outcome(service: ServiceProcess, events: int) -> dict[str, Any]:
    """What must not depend on crashes, once everything is read and closed."""

    def settled() -> dict[str, Any] | None:
        # In this order: with what is reported for good comes a status that was surveyed then, or later.
        reported = [
            each for each in service.get("/divergences?limit=100")["items"] if not each["provisional"]
        ]
        status: dict[str, Any] = service.get("")
        unmatched = status["unmatched"]["reference"] + status["unmatched"]["candidate"]
        all_read = sum(status["events"].values()) >= events and not unmatched
        return status if all_read and len(reported) == status["divergences"]["total"] else None

    status = eventually(
        settled, seconds=60, what=f"{events} events, all settled; log: {service.log()[-500:]}"
    )
    members = ("verdict", "events", "matched", "accounts", "divergences", "verified_up_to")
    reports = service.get("/divergences?limit=100")["items"]
    found = sorted((report["id"], report["kind"], str(report["positions"])) for report in reports)
    return {**{member: status[member] for member in members}, "found": found}


def _forget(kafka: Kafka, group: str) -> None:
    """Delete what Kafka remembers of a comparison, so that the next start is a first one."""
    admin = AdminClient({"bootstrap.servers": kafka.brokers, "log_level": 0})
    for deleted in admin.delete_consumer_groups([group]).values():
        deleted.result(timeout=20)


@pytest.mark.nightly
def test_a_service_killed_at_random_moments_ends_as_one_that_was_not(
    kafka: Kafka, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    seed = int(os.environ.get("TWINSTREAM_SEED", time.time_ns() % 1_000_000))
    print(f"seed: TWINSTREAM_SEED={seed}")
    chance = random.Random(seed)
    topics = topic(partitions=3), topic(partitions=3)
    rounds = 6
    spec = spec_file(tmp_path, f"killed-{seed}", *topics)
    service = ServiceProcess(spec, kafka.brokers, f"{redis_server.url[:-1]}1")
    service.start()
    write = Writer(kafka.brokers, *topics)
    for _ in range(3):
        _plant(write, rounds)
        time.sleep(chance.uniform(0.0, 3.0))
        service.kill()
        eventually(lambda: not service.family(), seconds=5, what="its processes are gone")
        service.start()
    events = 3 * (2 * (rounds + 1) * 1000 + rounds)
    shaken = _outcome(service, events)
    service.stop()
    _forget(kafka, f"twinstream.killed-{seed}")

    calm = ServiceProcess(spec, kafka.brokers, f"{redis_server.url[:-1]}2")
    calm.start()
    undisturbed = _outcome(calm, events)
    calm.stop()
    assert shaken == undisturbed
    assert shaken["verdict"] == "DIVERGED"


@pytest.fixture
def poisoned(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[Case]:
    """A running service whose matcher is killed by one event that meets others."""
    order = '{callable: "tests.support.poisonous:related"}'
    with serving(tmp_path, kafka.brokers, redis_url, (topic(), topic()), order=order) as case:
        yield case


def test_a_batch_that_kills_the_matcher_is_left_out_as_a_hole_and_what_is_behind_it_is_compared(
    poisoned: Case,
) -> None:
    service, write, _ = poisoned
    write.reference(0, 1000)
    write.flush()
    eventually(lambda: service.get("")["unmatched"]["reference"] == 1, what="one event waits")
    for number in range(200, 260):
        write.candidate(1, number)
    write.candidate(2, POISON)
    write.flush()
    eventually(lambda: service.get("")["holes"], seconds=90, what="the batch of the poison is left out")
    write.candidate(0, 1000)
    write.flush()
    eventually(lambda: service.get("")["matched"] == 1, seconds=30, what="the event behind it matches")
    status = service.get("")
    assert (status["verdict"], service.gate()) == ("INCONCLUSIVE", "undecided")
    (hole,) = status["holes"]
    first = hole["position"]["offset"]
    offsets = "offset 60 of" if first == 60 else f"offsets {first}–60 of"
    place = f"{hole['position']['topic']} partition 0 (candidate)"
    assert hole["reason"].startswith(f"the matcher fell 3 times while it took {offsets} {place}")
    assert any("fell" in reason for reason in status["health"]["reasons"]), "a crash loop is named"
    accounts, candidate = status["accounts"]["candidate"], status["unmatched"]["candidate"]
    assert (accounts["consumed"], candidate) == (first + 1, first), "what is left out is not consumed"
    assert status["unmatched"]["reference"] == 0
