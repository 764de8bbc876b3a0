"""The sample of what waits: the oldest, bounded, masked, and sent when it has changed."""

from __future__ import annotations

import re

import orjson

from tests.support.workers import SPEC, Bench
from twinstream.core.events import Side
from twinstream.reporting.unmatched_sample import SAMPLE_BYTES, SAMPLE_EVENTS
from twinstream.status.comparison import UnmatchedSample


def samples(bench: Bench) -> list[UnmatchedSample]:
    return [one for one in bench.publisher.published if isinstance(one, UnmatchedSample)]


def offsets(sample: UnmatchedSample, side: str = "reference") -> list[int]:
    return [event.position.offset for event in sample.events if event.side == side]


def test_the_oldest_of_each_side_are_told_in_their_order(bench: Bench) -> None:
    bench.write(Side.LEFT, *[(f"l{number}", number) for number in range(SAMPLE_EVENTS + 50)])
    bench.write(Side.RIGHT, ("r", 1))
    bench.run()
    last = samples(bench)[-1]
    assert offsets(last) == list(range(SAMPLE_EVENTS))
    assert offsets(last, "candidate") == [0]
    assert (last.events[0].scope, last.events[0].kind) == ({"k": "l0"}, "event")


def test_values_are_masked_as_those_of_divergences() -> None:
    bench = Bench(SPEC.replace("show: [k, n]", "show: [k]"))
    bench.write(Side.LEFT, ("a", 5))
    bench.run()
    value = samples(bench)[-1].events[0].value
    assert value["k"] == "a"
    assert re.fullmatch("‹number, #[0-9a-f]{8}›", value["n"])


def test_large_events_are_told_only_so_far(bench: Bench) -> None:
    for number in range(9):
        record = orjson.dumps({"k": f"l{number}", "n": "x" * (SAMPLE_BYTES // 4)})
        bench.source.append(Side.LEFT, 0, record, 0)
    bench.source.append(Side.RIGHT, 0, orjson.dumps({"k": "r", "n": "x" * 2 * SAMPLE_BYTES}), 0)
    bench.run()
    last = samples(bench)[-1]
    assert offsets(last) == [0, 1, 2]
    assert offsets(last, "candidate") == [0]


def test_a_sample_is_sent_when_it_has_changed(bench: Bench) -> None:
    bench.write(Side.LEFT, ("a", 1), ("b", 1))
    bench.run()
    count = len(samples(bench))
    bench.run()
    assert len(samples(bench)) == count
    bench.write(Side.RIGHT, ("a", 1))
    bench.run()
    assert len(samples(bench)) == count + 1
    assert offsets(samples(bench)[-1]) == [1]


def test_an_event_that_the_other_side_has_passed_is_overdue(bench: Bench) -> None:
    bench.write(Side.LEFT, ("a", 1), at_ms=1000)
    bench.write_both(("b", 1), at_ms=2000)
    bench.run()
    assert [event.overdue for event in samples(bench)[-1].events] == [False]
    bench.write_both(("b", 2), at_ms=100_000)
    bench.run()
    status = bench.run()
    assert status.suspicions == 1
    assert [event.overdue for event in samples(bench)[-1].events] == [True]
