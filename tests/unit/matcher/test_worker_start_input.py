"""A comparison that begins at the input: with the first record that both versions have consumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from tests.support.saying import VERSIONS, control_record
from tests.support.streams import waiting_events
from tests.support.workers import Bench
from twinstream.core.events import Side
from twinstream.core.start.input_start import Opened
from twinstream.spec.decode.headers import input_header
from twinstream.spec.lint.topics import Topic
from twinstream.starting.input_start import Found
from twinstream.status.comparison import ComparisonStatus

LEFT, RIGHT = Side
HEAD = (
    VERSIONS
    + """\
control: test.control
order: unordered
show: [n]
evidence: {matched: 1, seconds: 0}
start: {at: input}
"""
)
SPEC = f"{HEAD}overdue: {{clock: input}}\n"


@dataclass
class Pipelines(Bench):
    """A bench with two versions, which write a row for each record of their input and tell of each batch."""

    batches: list[int] = field(default_factory=lambda: [0, 0])

    def put_out(self, side: Side, *offsets: int, partition: int = 0, at: int = 0) -> None:
        """Rows of records of a partition of the input, written to a partition of the output."""
        for offset in offsets:
            headers = [input_header("in", partition, offset)]
            self.source.append(side, at, orjson.dumps({"n": [partition, offset]}), 0, headers)

    def say(
        self, side: Side, consumed: Mapping[int, int], since: Mapping[int, int] | None = None, **more: Any
    ) -> None:
        """A version says that it has finished its next batch."""
        self.finish(side, self.batches[side], consumed, since=since or {}, **more)
        self.batches[side] += 1

    def work(self, side: Side, start: int, stop: int, *, drop: int | None = None, topic: str = "in") -> None:
        """Batches of ten over a part of the input, of which one record may make no row."""
        for first in range(start, stop, 10):
            self.put_out(side, *(n for n in range(first, first + 10) if n != drop))
            self.say(side, {0: first + 10}, topic=topic)


@pytest.fixture
def bench() -> Pipelines:
    return Pipelines(spec=SPEC)


def before(status: ComparisonStatus) -> tuple[int, int]:
    """How many events of each side lay before the start."""
    return status.accounts.reference.before_start, status.accounts.candidate.before_start


def test_without_a_control_topic_there_is_no_start_and_it_is_named(bench: Pipelines) -> None:
    bench.source.control_topic = None
    assert bench.refused().health.reasons == [
        "no safe start yet: topic test.control: there is no such topic",
    ]
    bench.source.control_topic = Topic(2, "delete")
    (reason,) = bench.refused().health.reasons
    assert reason.startswith("test.control has 2 partitions")


def test_a_control_record_that_cannot_be_read_before_the_start_degrades_health(bench: Pipelines) -> None:
    for side in Side:
        bench.work(side, 0, 30)
    bench.source.say(b"{}")
    (reason,) = bench.settled().health.reasons
    assert reason.startswith("the newest record of test.control, at offset 6, cannot be used")


def test_nothing_is_compared_before_both_versions_have_said_what_they_have_consumed(
    bench: Pipelines,
) -> None:
    assert "the reference has not said on the control topic what it has consumed" in bench.refused().reason
    bench.work(LEFT, 0, 100)
    assert "no safe start yet: the candidate has not said on the control topic" in bench.refused().reason
    bench.put_out(RIGHT, 50)
    bench.source.say(control_record("2", 0, {"in": {0: 51}}, {"elsewhere": {0: 1}}))
    assert "the candidate has not said" in bench.refused().reason


def test_an_input_that_only_one_version_reads_is_no_start(bench: Pipelines) -> None:
    bench.work(LEFT, 0, 100)
    bench.work(RIGHT, 0, 100, topic="other")
    assert "none of it is of both" in bench.refused().reason


def test_an_event_that_names_no_input_is_no_safe_start_and_no_difference(bench: Pipelines) -> None:
    bench.work(LEFT, 0, 100)
    bench.source.append(LEFT, 0, orjson.dumps({"n": "sum"}))
    bench.work(RIGHT, 50, 100)
    status = bench.settled()
    assert (status.verdict, status.divergences.total) == ("PENDING", 0)
    assert (
        "no safe start: the event at offset 100 of partition 0 of the reference does not name the one record "
        "of the input that it comes from (aggregates have none)"
    ) in status.reason
    status = bench.settled(bench.restarted())
    assert (status.verdict, status.divergences.total) == ("PENDING", 0)


def test_an_event_whose_header_cannot_be_read_is_undecodable(bench: Pipelines) -> None:
    bench.work(LEFT, 0, 100)
    bench.work(RIGHT, 50, 100)
    for header in (b"in:0", b"in:0:x", b"in:0:\xc2\xb2"):
        bench.source.append(LEFT, 0, b"{}", 0, [("twinstream-input", header)])
    status = bench.settled(bench.started())
    assert status.accounts.reference.undecodable == 3
    assert "is not TOPIC:PARTITION:OFFSET (text, 4 characters)" in status.undecodable[0].reason


def test_what_retention_took_lies_before_the_start_which_is_later_then(bench: Pipelines) -> None:
    bench.work(LEFT, 0, 1000)
    bench.work(RIGHT, 0, 1000, drop=5)
    bench.source.retain(LEFT, 0, 95)
    status = bench.settled(bench.started())
    assert (status.verdict, status.matched, status.hole_count) == ("EQUIVALENT", 900, 0)
    assert before(status) == (0, 0), "the candidate is read from where it had consumed up to 100, too"


def test_reading_may_begin_later(bench: Pipelines) -> None:
    bench.spec = HEAD
    bench.work(LEFT, 0, 100)
    bench.work(RIGHT, 0, 100)
    worker = bench.worker()
    bench.source.read_from_ms = 1
    assert worker.start()
    bench.source.read_from_ms = 0
    bench.work(LEFT, 100, 200)
    bench.work(RIGHT, 100, 200)
    status = bench.settled(worker)
    assert (status.verdict, status.matched) == ("EQUIVALENT", 100)


def test_a_partition_of_the_input_that_comes_later_waits_until_both_have_named_it(bench: Pipelines) -> None:
    bench.source.add_partition(LEFT)
    bench.work(LEFT, 0, 100)
    bench.work(RIGHT, 0, 100)
    bench.settled()
    bench.put_out(LEFT, *range(10), partition=1)
    bench.say(LEFT, {0: 100, 1: 10}, since={0: 100, 1: 0})
    status = bench.settled()
    assert (status.verdict, status.health.status, status.matched) == ("EQUIVALENT", "degraded", 90)
    (reason,) = status.health.reasons
    assert reason == (
        "the reference is not read on: it has an event that comes from in partition 1, of which the "
        "candidate has not said where it begins"
    )
    bench.put_out(RIGHT, *range(10), partition=1)
    bench.say(RIGHT, {0: 100, 1: 10}, since={0: 100, 1: 0})
    status = bench.settled(bench.restarted())
    assert (status.verdict, status.health.status, status.matched) == ("EQUIVALENT", "ok", 100)


def test_a_query_that_began_behind_the_start_is_a_hole(bench: Pipelines) -> None:
    bench.work(LEFT, 0, 100)
    bench.work(RIGHT, 0, 100)
    bench.settled()
    bench.say(RIGHT, {0: 200}, query_id="second")
    status = bench.settled()
    assert status.verdict == "INCONCLUSIVE"
    assert (
        "test.candidate (candidate): query second of the candidate is first heard of at offset 200 of in "
        "partition 0, behind the start at 10: what it made of the input between may be missing"
    ) in [hole.reason for hole in status.holes]


def test_a_candidate_that_was_created_anew_before_the_start_is_heard_from_then_on(bench: Pipelines) -> None:
    bench.work(LEFT, 0, 300)
    bench.work(RIGHT, 0, 300)
    bench.batches[RIGHT] = 0
    bench.work(LEFT, 300, 400)
    for first in range(100, 400, 10):
        bench.put_out(RIGHT, *range(first, first + 10))
        bench.say(RIGHT, {0: first + 10}, since={0: first}, query_id="anew")
    status = bench.settled(bench.started())
    assert (status.verdict, status.matched, status.hole_count) == ("EQUIVALENT", 290, 0)


def test_what_was_said_of_a_topic_that_was_deleted_does_not_count(bench: Pipelines) -> None:
    bench.work(LEFT, 0, 300)
    bench.work(RIGHT, 0, 300)
    for side in Side:
        bench.source.create_anew(side)
    assert "has told of no batch behind which all can be read" in bench.refused().reason
    bench.batches = [0, 0]
    for side in Side:
        for first in range(500, 600, 10):
            bench.put_out(side, *range(first, first + 10))
            bench.say(side, {0: first + 10}, query_id="anew")
    status = bench.settled(bench.started())
    assert (status.verdict, status.matched, status.hole_count) == ("EQUIVALENT", 90, 0)


@pytest.mark.parametrize("control", [True, False])
def test_an_empty_store_begins_again_at_the_input(bench: Pipelines, *, control: bool) -> None:
    bench.work(LEFT, 0, 100)
    bench.work(RIGHT, 50, 100)
    bench.settled(bench.started())
    bench.storage.stored = bench.storage.stored._replace(sequence=None, bodies=())
    bench.storage.lease = None
    if not control:
        bench.source._control.clear()
        assert "has not said on the control topic" in bench.refused().reason
        return
    bench.work(LEFT, 100, 200)
    bench.work(RIGHT, 100, 200)
    status = bench.settled(bench.started())
    assert (status.verdict, status.matched, status.hole_count) == ("EQUIVALENT", 140, 0)


def test_it_is_a_start_on_every_clock(bench: Pipelines) -> None:
    bench.spec = HEAD
    bench.work(LEFT, 0, 100)
    bench.work(RIGHT, 50, 100)
    worker = bench.started()
    status = bench.settled(worker)
    assert (status.verdict, status.matched) == ("EQUIVALENT", 40)
    assert all(event[5] is None for side in Side for event in waiting_events(worker.comparison, side))


@pytest.mark.parametrize("trouble", [None, "the newest record cannot be used"])
def test_a_start_that_was_found_is_read_as_it_was_and_without_the_trouble_of_earlier_versions(
    trouble: str | None,
) -> None:
    opened = Opened({LEFT: {0: 3}, RIGHT: {0: 4}}, {LEFT: {}, RIGHT: {}}, [])
    found = Found(opened, {"control": 7, "control_trouble": trouble})
    assert Found.of(found.state()) == found
    assert Found.of([found.state()[0], 7]).control == {"control": 7}
