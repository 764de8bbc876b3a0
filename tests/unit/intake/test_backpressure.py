"""What is behind is read first, and what runs ahead of it waits, from the first record on."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest

from loadtest.memory import MemorySource
from tests.support.registry import Registry, running
from tests.support.workers import SPEC, Bench
from twinstream.core.events import Side
from twinstream.explain.divergence import NAMES
from twinstream.intake.backpressure import POLL_SECONDS
from twinstream.ports import Batch, Gap

SIDES = pytest.mark.parametrize("slow", list(Side))
LEAD = SPEC + "limits: {lead: 60s}\n"
LEAD_AND_TWO_BATCHES = 60 + 2 * 10


class SlowSource(MemorySource):
    """A source of which one side brings nothing while it is `slow`; it notes how long it was to wait."""

    slow: Side | None = None
    patience: float | None = None

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:
        self.patience = timeout
        return () if side is self.slow else super().poll(side, timeout)


def an_event_a_second(bench: Bench, side: Side, seconds: int) -> None:
    for number in range(seconds):
        bench.write(side, ("a", number), at_ms=1_000_000 + 1000 * number)


def opened(slow: Side, *, ends_known: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[Bench, SlowSource]:
    source = SlowSource(batch=10)
    source.slow = slow
    if not ends_known:
        monkeypatch.setattr(source, "ends", lambda: {side: {} for side in Side})
    return Bench(spec=LEAD, source=source), source


@pytest.mark.parametrize("ends_known", [True, False])
@SIDES
def test_a_side_waits_for_one_of_which_nothing_was_read_yet(
    slow: Side, ends_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, source = opened(slow, ends_known=ends_known, monkeypatch=monkeypatch)
    worker = bench.started()
    for side in Side:
        an_event_a_second(bench, side, 600)
    bench.run(worker, steps=100)
    assert worker.comparison.unmatched(slow.other) == LEAD_AND_TWO_BATCHES
    source.slow = None
    status = bench.run(worker, steps=200)
    assert (status.verdict, status.matched, status.holes) == ("EQUIVALENT", 600, [])


@SIDES
def test_an_empty_side_holds_nobody_up(slow: Side) -> None:
    bench = Bench(spec=LEAD, source=MemorySource(batch=10))
    worker = bench.started()
    an_event_a_second(bench, slow.other, 600)
    bench.run(worker, steps=100)
    assert worker.comparison.unmatched(slow.other) == 600


@SIDES
def test_a_side_that_was_read_to_its_end_holds_nobody_up_until_it_has_more(slow: Side) -> None:
    source = SlowSource(batch=10)
    bench = Bench(spec=LEAD, source=source)
    worker = bench.started()
    for side in Side:
        an_event_a_second(bench, side, 10)
    bench.run(worker, steps=10)
    an_event_a_second(bench, slow.other, 600)
    bench.run(worker, steps=20)
    read = worker.comparison.accounts[slow.other].consumed
    assert read > 200
    source.slow = slow
    an_event_a_second(bench, slow, 600)
    bench.run(worker, steps=20)
    assert worker.comparison.accounts[slow.other].consumed == read


@SIDES
def test_a_side_that_was_read_before_a_restart_waits_for_one_that_was_not(slow: Side) -> None:
    source = SlowSource(batch=10)
    bench = Bench(spec=LEAD, source=source)
    worker = bench.started()
    an_event_a_second(bench, slow.other, 600)
    bench.run(worker, steps=10)
    source.slow = slow
    an_event_a_second(bench, slow, 600)
    worker = bench.restarted()
    read = worker.comparison.accounts[slow.other].consumed
    bench.run(worker, steps=100)
    assert worker.comparison.accounts[slow.other].consumed <= read + LEAD_AND_TWO_BATCHES


def test_the_two_sides_never_wait_for_each_other() -> None:
    bench = Bench(spec=SPEC + "limits: {lead: 60s, unmatched_events: 1000}\n", source=MemorySource(batch=50))
    for number in range(2000):  # The candidate is a day ahead in time, the reference in what waits.
        bench.write(Side.LEFT, ("x", number), ("a", number), at_ms=1000 * number)
        bench.write(Side.RIGHT, ("a", number), at_ms=30_000 + number)
    status = bench.run(steps=400)
    assert (status.events.reference, status.events.candidate) == (4000, 2000)


@SIDES
def test_what_a_side_that_was_read_to_its_end_waits_for_is_read(slow: Side) -> None:
    source = SlowSource(batch=50)
    bench = Bench(spec=SPEC + "limits: {unmatched_events: 1000}\n", source=source)
    bench.write(slow.other, *(("x", number) for number in range(300)))
    bench.write(slow, *(("a", number) for number in range(250)))
    bench.run(steps=50)
    bench.write(slow.other, *(("a", number) for number in range(250)))
    status = bench.run(steps=50)
    assert (status.matched, status.holes) == (250, [])


@SIDES
def test_a_side_that_is_not_read_on_while_the_other_has_nothing_is_told(slow: Side) -> None:
    bench = Bench(spec=SPEC + "limits: {unmatched_events: 100}\n", source=MemorySource(batch=10))
    worker = bench.started()
    bench.write(slow, *(("x", number) for number in range(50)), at_ms=2000)
    bench.write(slow.other, *(("a", number) for number in range(40)), at_ms=2000)
    bench.run(worker, steps=20)
    bench.write(slow, *(("a", number) for number in range(40)), at_ms=2000)
    status = bench.run(worker, steps=20)
    why = f"unmatched events take more than half of a limit, and the {NAMES[slow.other]} has no more records"
    told = f"the {NAMES[slow]} is not read on: {why}; if it writes none, raise `limits`"
    assert (status.health.reasons, status.holes) == ([told], [])
    bench.write(slow.other, *(("x", number) for number in range(50)), at_ms=2000)
    status = bench.run(worker, steps=50)
    assert (status.matched, status.health.reasons, status.holes) == (90, [], [])


def test_where_one_side_waits_the_other_is_waited_for() -> None:
    source = SlowSource(batch=1000)
    source.slow = Side.RIGHT
    bench = Bench(spec=SPEC + "limits: {unmatched_events: 3000}\n", source=source)
    worker = bench.started()
    bench.write_both(*(("a", number) for number in range(5000)))
    bench.run(worker, steps=20)
    assert (worker.comparison.unmatched(Side.LEFT), source.patience) == (2000, POLL_SECONDS)
    source.slow = None
    status = bench.run(worker, steps=50)
    assert (status.verdict, status.matched, status.holes) == ("EQUIVALENT", 5000, [])


def test_a_round_that_asks_for_no_records_is_followed_by_a_pause() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "k", "type": "string"}]}
    with running(Registry(schemas={7: {"schema": json.dumps(schema)}}, trouble=503)) as registry:
        avro = f"candidate: {{topic: test.candidate, decode: {{format: avro, registry: '{registry.url}'}}}}"
        spec = LEAD.replace("candidate: {topic: test.candidate}", avro)
        bench = Bench(spec=spec, source=MemorySource(batch=10))
        worker = bench.worker()
        an_event_a_second(bench, Side.LEFT, 600)
        bench.source.append(Side.RIGHT, 0, b"\0\0\0\0\x07\x02a", 1_000_000)
        pauses: list[float] = []

        def stopping(seconds: float) -> bool:
            pauses.append(seconds)
            return len(pauses) > 50

        worker.run(stopping)
        assert worker.comparison.unmatched(Side.LEFT) <= LEAD_AND_TWO_BATCHES
        assert pauses[-10:] == [POLL_SECONDS] * 10


@pytest.mark.parametrize("seed", range(12))
def test_however_partitions_are_filled_and_sides_are_slow_no_limit_is_reached(seed: int) -> None:
    print(f"seed {seed}")
    draw = random.Random(seed)
    source = SlowSource(partitions=draw.randint(1, 8), batch=draw.choice((10, 50, 100)))
    bench = Bench(spec=SPEC + "limits: {unmatched_events: 2000}\n", source=source)
    source.create_anew(Side.RIGHT, partitions=draw.randint(1, 8))
    partitions = {side: len(source.topics()[side].ends) for side in Side}
    count, keys = 8_000, draw.choice((3, 50))
    for number in range(count):
        record = b'{"k": %d, "n": %d}' % (number % keys, number)
        for side in Side:
            source.append(side, number % keys % partitions[side], record, 1000 + 100 * number)
    worker = bench.started()
    while sum(account.consumed for account in worker.comparison.accounts) < 2 * count:
        source.slow = draw.choice((None, *Side))
        bench.run(worker, steps=draw.randint(1, 50))
    source.slow = None
    status = bench.settled(worker)
    assert (status.verdict, status.matched, status.holes) == ("EQUIVALENT", count, [])


@SIDES
def test_a_side_that_fills_half_of_the_limit_is_not_read_on_though_the_other_has_nothing(slow: Side) -> None:
    bench = Bench(spec=SPEC + "limits: {unmatched_events: 1000}\n", source=MemorySource(batch=100))
    worker = bench.started()
    bench.write(slow.other, *(("a", number) for number in range(2000)))
    bench.run(worker, steps=50)
    assert worker.comparison.unmatched(slow.other) == 600
