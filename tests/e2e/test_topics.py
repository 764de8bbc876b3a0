"""The running service, while something happens to its topics."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.embedded.kafka import Kafka
from tests.support.cases import Case, Serve
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.stack import MakeTopic
from tests.support.topics import KafkaTopics
from tests.support.waiting import eventually
from twinstream.core.events import Side

pytestmark = whole_product()


@pytest.fixture
def passing(serve: Serve) -> Case:
    """A service that has matched a hundred pairs and passes."""
    case = serve()
    case.passes(range(100))
    return case


def _hole(service: ServiceProcess, beginning: str) -> dict[str, Any]:
    """The hole whose reason holds a text, once it is there; the gate is undecided then."""

    def found() -> dict[str, Any] | None:
        holes: list[dict[str, Any]] = service.get("")["holes"]
        return next((hole for hole in holes if beginning in hole["reason"]), None)

    hole = eventually(found, seconds=60, what=f"a hole: {beginning}")
    assert service.get("")["verdict"] == "INCONCLUSIVE"
    assert service.gate() == "undecided"
    return hole


def test_a_topic_created_anew_that_has_grown_as_long_is_a_hole_and_never_held_against_a_side(
    passing: Case,
) -> None:
    service, write, topics = passing
    matchers = service.matchers()
    topics.create_anew(Side.RIGHT)
    write.side(Side.RIGHT, range(1000, 1150))
    write.side(Side.LEFT, range(100, 250))
    hole = _hole(service, "was deleted and created anew")
    assert "begins there at 0" in hole["reason"]
    status = service.get("")
    assert status["verdict"] == "INCONCLUSIVE", "a difference that was called proven stays"
    assert status["divergences"]["total"] > 0
    assert all(found["tainted"] for found in service.divergences())
    assert service.matchers() == matchers, "it goes on and does not crash"


def test_a_topic_created_anew_while_the_service_was_away_is_a_hole(passing: Case) -> None:
    service, write, topics = passing
    service.stop()
    topics.create_anew(Side.RIGHT)
    write.side(Side.RIGHT, range(150))
    service.start()
    hole = _hole(service, "was deleted and created anew")
    assert "offset 100 was next" in hole["reason"]
    assert "begins there at 0 and ends at 150" in hole["reason"]
    assert hole["position"]["offset"] == 100


def test_a_partition_added_while_the_service_runs_is_a_hole_and_is_read(passing: Case) -> None:
    service, _, topics = passing
    for side in Side:
        topics.add_partition(side)
        topics.append(side, 1, b'{"k": 3, "n": 777}')
    hole = _hole(service, " partition 1 (reference) was added, which begins at offset 0")
    assert hole["position"]["partition"] == 1
    service.shows(matched=101)


def test_records_deleted_before_they_were_read_are_a_hole_with_both_offsets(passing: Case) -> None:
    service, write, topics = passing
    service.stop()
    write.both(range(100, 200))
    topics.retain(Side.LEFT, 0, 150)
    service.start()
    hole = _hole(service, "Kafka no longer has offsets 100–149 of ")
    assert hole["position"]["offset"] == 100


def test_records_deleted_while_a_matcher_is_stopped_are_a_hole_with_both_offsets(passing: Case) -> None:
    service, write, topics = passing
    matchers = service.matchers()
    for matcher in matchers:
        os.kill(matcher, signal.SIGSTOP)
    for number in range(100, 200):
        # The fetch that was under way is answered with the first of these, not with all of them at once.
        write.both(range(number, number + 1))
    topics.retain(Side.LEFT, 0, 150)
    for matcher in matchers:
        os.kill(matcher, signal.SIGCONT)
    first = _check_lost(service, total=200, begins_at=150)
    assert first in range(100, 150), "what was under way to the matcher is not lost"
    assert service.matchers() == matchers, "it goes on and does not crash"


def test_records_deleted_while_a_side_waits_for_the_other_are_a_hole_with_both_offsets(
    serve: Serve, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("kafka: {queued.min.messages: 100, fetch.message.max.bytes: 10000}\n")
    service, write, topics = serve("--config", str(config), more="limits: {unmatched_events: 4000}\n")
    for begin in range(0, 8000, 500):
        write.side(Side.LEFT, range(begin, begin + 500))  # What stands in one batch is fetched as a whole.
    eventually(lambda: service.get("")["events"]["reference"] > 2000, seconds=60, what="it waits")
    topics.retain(Side.LEFT, 0, 7000)
    write.side(Side.RIGHT, range(8000))
    first = _check_lost(service, total=8000, begins_at=7000)
    assert first in range(2001, 7000)


def _check_lost(service: ServiceProcess, *, total: int, begins_at: int) -> int:
    """What the reference has lost is named, decides nothing, and is not counted; where it begins."""
    hole = _hole(service, f"–{begins_at - 1:,} of ")
    status = eventually(lambda: _read(service, total), seconds=60, what="the rest is read")
    first = int(hole["position"]["offset"])
    assert hole["reason"].startswith(f"Kafka no longer has offsets {first:,}–")
    assert status["events"]["reference"] == total - (begins_at - first)
    assert (status["verdict"], service.gate()) == ("INCONCLUSIVE", "undecided")
    return first


def _read(service: ServiceProcess, total: int) -> dict[str, Any] | None:
    """The status once the topic of the reference is read to its end."""
    status: dict[str, Any] = service.get("")
    positions = [partition["position"] for partition in status["progress"]["reference"]]
    return status if positions == [total] else None


def test_a_topic_that_becomes_compacted_is_a_hole_and_one_that_is_compacted_is_refused(
    passing: Case, kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    service, _, topics = passing
    topics.set_cleanup_policy(Side.LEFT, "compact")
    _hole(service, "is compacted now (cleanup.policy compact)")
    spec = spec_file(tmp_path, "compacted", topic(), topic(config={"cleanup.policy": "compact"}))
    with ServiceProcess(spec, kafka.brokers, redis_url) as other:
        _is_pending(other, "compaction removes records that are to be compared")


def _is_pending(service: ServiceProcess, reason: str) -> None:
    eventually(lambda: reason in service.get("")["reason"], what=f"it says: {reason}")
    assert (service.get("")["verdict"], service.gate()) == ("PENDING", "undecided")


def test_an_empty_store_after_a_verdict_is_no_first_start(passing: Case, redis_url: str) -> None:
    service, write, _ = passing
    write.reference(3, -1)
    write.both(range(100, 200))
    service.answers("fail")
    (before,) = eventually(service.divergences, what="the difference is told")
    service.stop()
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    service.start()
    assert service.gate() in {"undecided", "fail"}
    service.answers("fail")
    same = [before["id"]]
    eventually(lambda: [one["id"] for one in service.divergences()] == same, what="the same is told again")


def test_an_empty_store_of_which_the_records_are_gone_is_a_hole_with_the_gap(
    passing: Case, redis_url: str
) -> None:
    service, _, topics = passing
    service.stop()
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    for side in Side:
        topics.retain(side, 0, 40)
    service.start()
    hole = _hole(service, "Kafka no longer has offsets 0–39 of ")
    assert hole["reason"].startswith("the state in the store was lost")


@pytest.mark.parametrize(
    ("start", "matched"),
    [
        ("{at: event_time, field: n, from: 500}", 500),
        ("{at: offsets, reference: {0: 400}, candidate: {0: 0}}", 600),
    ],
)
def test_a_reference_that_ran_long_and_a_candidate_of_today_agree_behind_a_cut(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path, start: str, matched: int
) -> None:
    topics = topic(), topic()
    spec = spec_file(tmp_path, "late", *topics, f"start: {start}\n")
    write = Writer(kafka.brokers, *topics)
    write.side(Side.LEFT, range(400))
    write.both(range(400, 1000))
    with ServiceProcess(spec, kafka.brokers, redis_url) as service:
        service.answers("pass")
        status = service.get("")
    assert (status["matched"], status["divergences"]["total"]) == (matched, 0)
    accounts = status["accounts"]["reference"]
    assert accounts.pop("consumed") == sum(accounts.values())


def test_a_candidate_that_started_long_after_the_reference_is_no_safe_start(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    names = topic(), topic()
    topics = KafkaTopics(kafka.brokers, dict(zip(Side, names, strict=True)))
    topics.append(Side.LEFT, 0, b'{"k": 1, "n": 1}', 1_000_000_000_000)
    topics.append(Side.RIGHT, 0, b'{"k": 1, "n": 2}', 1_700_000_000_000)
    with ServiceProcess(spec_file(tmp_path, "apart", *names), kafka.brokers, redis_url) as service:
        _is_pending(service, "further apart than limits.lead")
