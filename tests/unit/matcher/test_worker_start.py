"""Where a worker begins, and what it says while there is no safe start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from loadtest.memory import MemorySource
from tests.support.workers import SPEC, Bench
from twinstream.checkpoints import format as checkpoint
from twinstream.core.events import Side
from twinstream.errors import SourceError
from twinstream.matcher.reader import RETRY_SECONDS
from twinstream.ports import Batch, BeginsMs, Item
from twinstream.status.comparison import ComparisonStatus

EVENT_TIME = SPEC + "start: {at: event_time, field: ts, from: 100, warm_up: 10}\n"
BARRIER = (
    SPEC.replace("order: {per_key: [k]}", "order: {barrier: day, inner: {per_key: [k]}}")
    + "kinds: {day: {where: {k: day}}, event: {}}\nstart: barrier\n"
)
BUDGET = "undecodable: {budget: 1}\n"
DAY_MS = 86_400_000


@pytest.fixture
def timed() -> Bench:
    return Bench(spec=EVENT_TIME)


def _write(bench: Bench, side: Side, times: range, *, at_ms: int = 0) -> None:
    for time in times:
        bench.source.append(side, 0, orjson.dumps({"k": "a", "n": time, "ts": time}), at_ms)


def _accounts_add_up(status: ComparisonStatus) -> bool:
    sides: list[dict[str, Any]] = [
        status.accounts.reference.model_dump(),
        status.accounts.candidate.model_dump(),
    ]
    return all(account.pop("consumed") == sum(account.values()) for account in sides)


def test_beginnings_further_apart_than_the_lead_are_no_safe_start(bench: Bench) -> None:
    bench.write(Side.LEFT, ("a", 1), at_ms=0)
    bench.write(Side.RIGHT, ("a", 2), at_ms=61_000)
    assert (
        "no safe start: the reference begins at 1970-01-01T00:00:00+00:00, the candidate begins at "
        "1970-01-01T00:01:01+00:00, which is further apart than limits.lead (60 s)"
    ) in bench.refused().reason
    bench.spec = SPEC + "limits: {lead: 61s}\n"
    bench.started()


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("old", [0, 1, 2])
def test_a_record_with_an_old_time_among_the_first_makes_no_other_beginning(
    bench: Bench, old: int, *, restart: bool
) -> None:
    times = [1_000_000, 1_000_100, 1_000_200]
    times[old] -= 120_000
    for side in Side:
        for number, at_ms in enumerate(times):
            bench.write(side, ("a", number), at_ms=at_ms)
    bench.run(bench.started())
    status = bench.run(bench.restarted()) if restart else bench.run()
    assert (status.verdict, status.matched) == ("EQUIVALENT", 3)


@pytest.mark.parametrize("first", Side)
@pytest.mark.parametrize("retained", [0, 1])
def test_a_side_that_was_read_alone_before_a_restart_begins_at_its_first_record(
    bench: Bench, first: Side, retained: int
) -> None:
    times = (1_000_000, 880_000)
    for number, at_ms in enumerate(times):
        bench.write(first, ("a", number), at_ms=at_ms)
    bench.run(bench.started())
    bench.source.retain(first, 0, retained)
    for number, at_ms in enumerate(times):
        bench.write(first.other, ("a", number), at_ms=at_ms)
    status = bench.run(bench.restarted())
    assert (status.verdict, status.matched) == ("EQUIVALENT", 2)


class Aborted(MemorySource):
    """The first record of the reference's last partition is of a transaction that was aborted."""

    def poll(self, side: Side, timeout: float) -> Sequence[Item]:
        items = super().poll(side, timeout)
        if side is Side.RIGHT or not items or not isinstance(one := items[0], Batch):
            return items
        if one.offsets[0] > 0 or one.partition < max(self.topics()[side].ends):
            return items
        return [Batch(side, one.partition, one.records[1:], one.offsets[1:], one.timestamps_ms[1:])]


@pytest.mark.parametrize("retained", [0, 3])
def test_a_side_that_begins_behind_an_aborted_record_began_when_it_was_first_read(retained: int) -> None:
    bench = Bench(source=Aborted())
    for number in range(3):
        bench.write(Side.LEFT, ("a", number), at_ms=0)
    bench.run(bench.started())
    bench.source.retain(Side.LEFT, 0, retained)
    for side in Side:
        bench.write(side, ("a", 3), at_ms=3_600_000)
    status = bench.run()
    assert status.verdict == "PENDING"
    assert "no safe start" in status.reason


@pytest.mark.parametrize("retained", [0, 4])
def test_beside_others_a_partition_began_when_it_was_first_read_behind_an_aborted_record(
    retained: int,
) -> None:
    bench = Bench(source=Aborted(2))

    def write(side: Side, partition: int, number: int, hours: int) -> None:
        bench.source.append(side, partition, orjson.dumps({"k": partition, "n": number}), 3_600_000 * hours)

    write(Side.LEFT, 0, 0, 1)
    for number in range(-1, 3):
        write(Side.LEFT, 1, number, 0)
    bench.run(bench.started())
    bench.source.retain(Side.LEFT, 1, retained)
    write(Side.LEFT, 1, 3, 2)
    write(Side.RIGHT, 0, 0, 1)
    for number in range(4):
        write(Side.RIGHT, 1, number, 2 * (number == 3))
    status = bench.run()
    assert (status.verdict, status.matched) == ("EQUIVALENT", 5)


class Undecided(MemorySource):
    """A transaction is open at the beginning of a topic for so many requests."""

    requests = 0

    def begins_ms(self) -> BeginsMs:
        self.requests -= 1
        if self.requests >= 0:
            raise SourceError("it begins with an open transaction")
        return super().begins_ms()


def test_while_a_transaction_is_open_at_the_beginning_it_is_unknown_whether_the_start_is_safe() -> None:
    source = Undecided()
    bench = Bench(source=source)
    worker = bench.started()
    source.requests = 100
    for side in Side:
        bench.write(side, ("a", 1))
    status = bench.run(worker)
    assert (status.verdict, status.matched) == ("PENDING", 0)
    assert status.health.reasons == ["it begins with an open transaction"]
    source.requests = 0
    bench.clock.advance(RETRY_SECONDS)
    assert bench.run().verdict == "EQUIVALENT"


def test_a_candidate_that_starts_late_is_no_safe_start_and_never_diverges(bench: Bench) -> None:
    bench.write(Side.LEFT, *(("a", number) for number in range(100)), at_ms=1000)
    assert bench.run().unmatched.reference == 100
    bench.write(Side.RIGHT, *(("a", number) for number in range(50, 100)), at_ms=DAY_MS)
    status = bench.run()
    assert (status.verdict, status.divergences.total) == ("PENDING", 0)
    assert "no safe start" in status.reason
    status = bench.run(bench.restarted())
    assert (status.verdict, status.divergences.total) == ("PENDING", 0)


def test_offsets_begin_where_they_say() -> None:
    bench = Bench(spec=SPEC + "start: {at: offsets, reference: {0: 5}, candidate: {0: 2}}\n")
    bench.write(Side.LEFT, *(("a", number) for number in range(10)), at_ms=0)
    bench.write(Side.RIGHT, ("x", 1), ("x", 2), *(("a", number) for number in range(5, 10)), at_ms=DAY_MS)
    status = bench.run(bench.started())
    assert (status.verdict, status.matched) == ("EQUIVALENT", 5)
    assert status.events.reference == 5


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        ("{0: 3}", "`start.candidate` asks for offset 3 of partition 0, but the partition ends at 2"),
        ("{0: 1, 1: 0}", "`start.candidate` must name every partition, and partition 1 does not exist"),
        ("{1: 0}", "`start.candidate` must name every partition"),
        ("{0: 0}", "asks for offset 0 of partition 0, but the first that can be read is 1"),
    ],
)
def test_offsets_that_kafka_does_not_have_are_no_safe_start(candidate: str, reason: str) -> None:
    bench = Bench(spec=SPEC + f"start: {{at: offsets, reference: {{0: 0}}, candidate: {candidate}}}\n")
    bench.write(Side.RIGHT, ("a", 1), ("a", 2))
    bench.source.retain(Side.RIGHT, 0, 1)
    assert reason in bench.refused().reason


def test_a_reference_that_ran_for_months_and_a_candidate_of_today_agree_from_an_event_time_on(
    timed: Bench,
) -> None:
    _write(timed, Side.LEFT, range(200), at_ms=0)
    _write(timed, Side.RIGHT, range(105, 200), at_ms=90 * DAY_MS)
    status = timed.run()
    assert (status.verdict, status.matched) == ("EQUIVALENT", 90)
    assert (status.accounts.reference.before_start, status.accounts.candidate.before_start) == (110, 5)
    assert _accounts_add_up(status)
    status = timed.run(timed.restarted())
    assert (status.verdict, status.matched, status.accounts.reference.before_start) == ("EQUIVALENT", 90, 110)
    _write(timed, Side.LEFT, range(200, 250))
    _write(timed, Side.RIGHT, range(201, 250))
    status = timed.run()
    assert (status.verdict, status.divergences.by_kind["missing"]) == ("DIVERGED", 1)


def _without_a_late_beginning(unit: int, written_ms: int) -> Bench:
    """The reference wrote 112 before 90, and Kafka does not have that any more; `from` is 110."""
    start = 1_767_225_600 * unit
    bench = Bench(spec=SPEC + f"start: {{at: event_time, field: ts, from: {start + 110}}}\n")
    for side, written in ((Side.LEFT, written_ms), (Side.RIGHT, 1_767_226_000_000)):
        for n in (112, 90, *range(100, 112), *range(113, 140)):
            event = {"k": "a", "n": n, "ts": start + n}
            bench.source.append(side, 0, orjson.dumps(event), written)
    bench.source.retain(Side.LEFT, 0, 1)
    return bench


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000])
def test_what_may_be_gone_behind_the_start_is_never_a_difference(unit: int) -> None:
    bench = _without_a_late_beginning(unit, written_ms=1_767_226_000_000)
    for start in (bench.started, bench.restarted):
        status = bench.run(start())
        assert (status.verdict, status.divergences.by_kind["extra"]) == ("INCONCLUSIVE", 1)
        assert (
            "what Kafka no longer has below offset 1 of test.reference partition 0 (reference) may lie"
            in status.reason
        )
    assert all(report.tainted for report in bench.reports().values())


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000])
def test_what_was_left_before_the_start_by_its_own_time_and_by_kafkas_is_a_sure_start(unit: int) -> None:
    bench = _without_a_late_beginning(unit, written_ms=1_767_225_500_000)
    assert bench.run(bench.started()).verdict == "DIVERGED"


def test_a_start_that_is_not_sure_passes_while_nothing_differs(timed: Bench) -> None:
    _write(timed, Side.LEFT, range(200))
    _write(timed, Side.RIGHT, range(105, 200))
    timed.source.retain(Side.LEFT, 0, 50)
    assert timed.run(timed.started()).verdict == "EQUIVALENT"
    _write(timed, Side.LEFT, range(200, 210))
    _write(timed, Side.RIGHT, range(201, 210))
    assert timed.run(timed.restarted()).verdict == "INCONCLUSIVE"


def test_what_is_overdue_may_be_in_a_partition_of_which_nothing_is_left() -> None:
    spec = EVENT_TIME.replace("{per_key: [k]}", "unordered") + "overdue: {after: 1s, proves: true}\n"
    bench = Bench(spec=spec, source=MemorySource(partitions=2))
    bench.source.append(Side.LEFT, 1, orjson.dumps({"k": "a", "n": 1, "ts": 150}), 1000)
    bench.source.retain(Side.LEFT, 1, 1)
    bench.source.append(Side.RIGHT, 1, orjson.dumps({"k": "a", "n": 1, "ts": 150}), 1000)
    for at_ms in (1000, 2500, 9000):
        for side in Side:
            bench.source.append(side, 0, orjson.dumps({"k": "b", "n": at_ms, "ts": 200}), at_ms)
        bench.clock.advance(10)
        status = bench.run()
    assert (status.verdict, status.divergences.by_kind["extra"]) == ("INCONCLUSIVE", 1)
    position = status.holes[0].position
    assert position is not None
    assert position.partition == 1


def test_an_event_without_the_field_of_the_start_is_undecodable(timed: Bench) -> None:
    timed.write(Side.LEFT, ("a", 1))
    status = timed.run()
    assert status.accounts.reference.undecodable == 1
    assert status.undecodable[0].reason == "field `ts`, that tells what lies before the start, is missing"
    assert _accounts_add_up(status)


def test_retention_that_may_have_taken_events_behind_the_cut_is_no_safe_start(timed: Bench) -> None:
    _write(timed, Side.LEFT, range(200))
    _write(timed, Side.RIGHT, range(130, 200))
    timed.source.retain(Side.LEFT, 0, 120)
    status = timed.run()
    assert (status.verdict, status.divergences.total) == ("PENDING", 0)
    assert (
        "the reference is read from offset 120 in partition 0 on, and the first event there is not"
        in status.reason
    )
    status = timed.run(timed.restarted())
    assert (status.verdict, status.divergences.total) == ("PENDING", 0)


def test_a_difference_that_is_not_saved_since_no_start_is_safe_is_not_promised() -> None:
    bench = Bench(EVENT_TIME + "checks: [{id: one, once: [n], horizon: 1h}]\n", source=MemorySource(2))

    def write(side: Side, partition: int, key: str, time: int) -> None:
        bench.source.append(side, partition, orjson.dumps({"k": key, "n": time, "ts": time}))

    for _ in range(9):
        write(Side.RIGHT, 1, "old", 50)
    bench.source.retain(Side.RIGHT, 1, 9)
    for side in Side:
        write(side, 0, "a", 150)
    assert bench.run().verdict == "EQUIVALENT"
    write(Side.LEFT, 0, "a", 160)
    write(Side.RIGHT, 0, "a", 170)
    for side in Side:
        write(side, 0, "a", 180)
    write(Side.RIGHT, 0, "a", 180)
    write(Side.RIGHT, 1, "b", 190)
    for start in (lambda: None, bench.restarted):
        start()
        status, worker = bench.finds("PENDING", "no safe start"), bench.at_work
        assert worker is not None
        assert (status.difference_awaits, status.divergences.total) == ([], 2)
        assert "announced once" not in status.model_dump_json(), "no difference, and no violation of a check"
        told = len(bench.publisher.published)
        for _ in range(9):
            worker.step()
        assert len(bench.publisher.published) == told, "a beat tells it, and no round"


@pytest.mark.parametrize(
    ("left", "account"),
    [
        pytest.param({"k": "noise", "n": 0, "ts": 0}, "ignored", id="ignored"),
        pytest.param({"k": "a", "n": 0}, "undecodable", id="without the time"),
        pytest.param({"n": 0, "ts": 0}, "undecodable", id="no event"),
    ],
)
def test_a_restart_does_not_vouch_for_a_beginning_of_which_no_event_was_left(
    left: dict[str, Any], account: str
) -> None:
    bench = Bench(EVENT_TIME + "kinds: {noise: {where: {k: noise}, ignore: true}, event: {}}\n" + BUDGET)
    _write(bench, Side.LEFT, range(130))
    bench.source.append(Side.LEFT, 0, orjson.dumps(left))
    bench.source.retain(Side.LEFT, 0, 130)
    status = bench.run()
    assert getattr(status.accounts.reference, account) == 1
    bench.restarted()
    _write(bench, Side.LEFT, range(130, 200))
    _write(bench, Side.RIGHT, range(120, 200))
    for start in (lambda: None, bench.restarted):
        start()
        status = bench.run()
        assert (status.verdict, status.divergences.total) == ("PENDING", 0)
        assert "no safe start: the reference is read from offset 130 in partition 0 on" in status.reason


def test_the_state_of_a_version_that_saved_no_unread_beginnings_is_gone_on_with() -> None:
    bench = Bench(EVENT_TIME)
    _write(bench, Side.LEFT, range(200))
    _write(bench, Side.RIGHT, range(105, 200))
    bench.source.retain(Side.LEFT, 0, 50)
    bench.run()
    stored = bench.storage.stored
    older = checkpoint.encode({**checkpoint.decode(stored.head), "start": None})
    bench.storage.stored = stored._replace(head=older)
    bench.restarted()
    for side in Side:
        _write(bench, side, range(200, 210))
    status = bench.run()
    assert (status.verdict, status.matched) == ("EQUIVALENT", 100)


def test_texts_are_times_where_the_start_is_one() -> None:
    spec = SPEC + "start: {at: event_time, field: n, from: 2026-01-01T00:00:00Z}\n"
    bench = Bench(spec=spec)
    for side, first in ((Side.LEFT, "2025-12-31T23:59:59.999Z"), (Side.RIGHT, "2026-01-01T00:30:00+01:00")):
        for text in (first, "2026-01-01T01:00:00+01:00"):
            bench.source.append(side, 0, orjson.dumps({"k": "a", "n": text}))
    status = bench.run()
    assert (status.verdict, status.matched) == ("EQUIVALENT", 1)
    assert status.accounts.reference.before_start == status.accounts.candidate.before_start == 1


def _days(bench: Bench, side: Side, days: range, *, at_ms: int = 0) -> None:
    for day in days:
        bench.write(side, ("day", day), ("a", day * 2), ("a", day * 2 + 1), at_ms=at_ms)


def test_a_reference_that_ran_for_months_and_a_candidate_of_today_agree_from_a_barrier_on() -> None:
    bench = Bench(spec=BARRIER)
    _days(bench, Side.LEFT, range(90))
    status = bench.finds("PENDING", "no safe start yet: no barrier has come")
    assert (status.health.status, _accounts_add_up(status)) == ("ok", True)
    bench.run(bench.restarted())
    bench.write(Side.RIGHT, ("a", -1), at_ms=DAY_MS)
    _days(bench, Side.RIGHT, range(80, 90), at_ms=DAY_MS)
    status = bench.run()
    assert (status.verdict, status.matched) == ("EQUIVALENT", 30)
    assert (status.accounts.reference.before_start, status.accounts.candidate.before_start) == (240, 1)
    assert _accounts_add_up(status)
    status = bench.run(bench.restarted())
    assert (status.verdict, status.matched, status.accounts.reference.before_start) == ("EQUIVALENT", 30, 240)


def test_records_that_are_lost_of_a_partition_added_before_the_start_end_no_search_for_it() -> None:
    bench = Bench(spec=BARRIER)
    _days(bench, Side.LEFT, range(3))
    bench.run()
    bench.source.add_partition(Side.LEFT)
    bench.run()
    bench.source.append(Side.LEFT, 1, orjson.dumps({"k": "b", "n": 0}))
    bench.source.retain(Side.LEFT, 1, 1)
    bench.run()
    _days(bench, Side.RIGHT, range(3))
    status = bench.run()
    assert status.waiting_for is not None
    assert "no barrier has come" in status.waiting_for
    bench.source.append(Side.LEFT, 1, orjson.dumps({"k": "day", "n": 2}))
    status = bench.finds("INCONCLUSIVE", "partition 1 (reference) was added")
    assert (status.waiting_for, _accounts_add_up(status)) == (None, True)


@pytest.mark.parametrize("spec", [EVENT_TIME, BARRIER])
def test_reading_may_begin_later_where_the_start_is_a_cut(spec: str) -> None:
    bench = Bench(spec=spec)
    for number in range(200):
        for side in Side:
            bench.source.append(side, 0, orjson.dumps({"k": "day", "n": number, "ts": number}), number)
    bench.source.read_from_ms = 50
    status = bench.run(bench.started())
    assert (status.events.reference, status.accounts.reference.before_start) in {(150, 60), (150, 0)}
    assert (status.matched, status.divergences.total) == (150 - status.accounts.reference.before_start, 0)
