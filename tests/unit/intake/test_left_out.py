"""A matcher that dies over one batch leaves it out as a hole, and goes on behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from tests.support.workers import SPEC, Bench
from twinstream.core.events import Side
from twinstream.intake.falls import FALLS_TO_LEAVE_OUT, Caution, Falls, Trail
from twinstream.status.comparison import ComparisonStatus

POISON = ("poison", 13)
LEFT_OUT = "the matcher fell 3 times while it took offset"


class Dies(BaseException):
    """The process of a matcher is gone."""


@dataclass
class Lives:
    """A matcher over all its lives: each dies when it reads poison."""

    bench: Bench
    falls: Falls = field(default_factory=Falls)
    deaths: int = 0

    def settled(self) -> ComparisonStatus:
        """The status of the first life that lasts."""
        for _ in range(5 * FALLS_TO_LEAVE_OUT):
            trail = Trail()
            self.bench.caution = Caution(trail, self.falls.left_out)
            worker = self.bench.restarted()
            worker._codec.forms = partial(_forms, worker._codec.forms)  # type: ignore[method-assign]
            try:
                return self.bench.settled(worker)
            except Dies:
                self.deaths += 1
                self.falls.fell_over(trail.stretch())
        raise AssertionError("it falls for ever")


def _forms(read: Callable[..., Any], records: Sequence[bytes | None], *more: Any) -> Any:
    """Read records, unless one of them is poison."""
    if any(b"poison" in (record or b"") for record in records):
        raise Dies
    return read(records, *more)


def poisoned(spec: str = SPEC) -> Bench:
    """Events that match and are saved; then three of the candidate, of which one kills who reads it."""
    bench = Bench(spec)
    bench.write_both(*(("a", number) for number in range(10)))
    bench.run(bench.started())
    bench.write(Side.LEFT, ("a", 10), ("a", 11))
    bench.write(Side.RIGHT, ("a", 10), POISON, ("a", 11))
    return bench


def test_a_batch_that_kills_a_matcher_is_a_hole_that_names_it_and_what_is_behind_it_is_compared() -> None:
    bench = poisoned()
    lives = Lives(bench)
    first = lives.settled()
    assert lives.deaths == FALLS_TO_LEAVE_OUT
    bench.write_both(*(("b", number) for number in range(20)))
    for status in (first, lives.settled()):
        (hole,) = status.holes
        place = "test.candidate partition 0 (candidate)"
        assert hole.reason == f"{LEFT_OUT}s 10–12 of {place}; they were left out"
        assert (hole.side, hole.position and hole.position.offset) == ("candidate", 10)
        assert (status.verdict, status.divergences.total) == ("INCONCLUSIVE", 0)
        account = status.accounts.candidate
        assert (account.consumed, account.undecodable) == (account.matched, 0)
    assert (status.matched, status.accounts.reference.consumed) == (30, 32)
    assert lives.deaths == FALLS_TO_LEAVE_OUT


@pytest.mark.parametrize("saved", [True, False])
def test_a_new_owner_that_knows_of_no_fall_has_the_hole_and_does_not_fall_for_ever(*, saved: bool) -> None:
    bench = poisoned()
    before = bench.storage.stored
    Lives(bench).settled()
    if not saved:
        bench.storage.stored = before
    another = Lives(bench)
    status = another.settled()
    assert another.deaths == (0 if saved else FALLS_TO_LEAVE_OUT)
    holes = 1 if saved else 2  # Kafka remembers that there had been one, too.
    assert (status.verdict, status.hole_count) == ("INCONCLUSIVE", holes)
    assert status.accounts.candidate.consumed == 10


def test_what_differs_behind_a_batch_that_is_left_out_decides_nothing() -> None:
    bench = poisoned()
    lives = Lives(bench)
    lives.settled()
    bench.write(Side.LEFT, ("c", 0))
    bench.write_both(*(("c", number) for number in range(1, 40)))
    status = lives.settled()
    assert (status.verdict, status.divergences.total) == ("INCONCLUSIVE", 1)


def test_what_differed_before_a_batch_that_is_left_out_stays_a_difference() -> None:
    bench = Bench()
    bench.write(Side.LEFT, ("c", 0))
    bench.write_both(*(("c", number) for number in range(1, 40)))
    assert bench.settled(bench.started()).verdict == "DIVERGED"
    bench.write(Side.RIGHT, POISON)
    status = Lives(bench).settled()
    assert (status.verdict, status.hole_count) == ("DIVERGED", 1)


def test_poison_on_both_sides_and_twice_on_one_is_left_out() -> None:
    bench = poisoned()
    bench.write(Side.LEFT, POISON)
    lives = Lives(bench)
    lives.settled()
    bench.write(Side.RIGHT, ("z", 0), POISON)
    status = lives.settled()
    assert sorted((hole.side, hole.position and hole.position.offset) for hole in status.holes) == [
        ("candidate", 10),
        ("candidate", 13),
        ("reference", 10),
    ]
    assert lives.deaths == 3 * FALLS_TO_LEAVE_OUT


def test_poison_before_a_start_that_is_not_found_yet_is_a_hole() -> None:
    barrier = SPEC.replace("order: {per_key: [k]}", "order: {barrier: day, inner: {per_key: [k]}}")
    bench = Bench(barrier + "kinds: {day: {where: {k: day}}, event: {}}\nstart: barrier\n")
    bench.write_both(("day", 1), ("a", 1))
    bench.write(Side.RIGHT, POISON)
    lives = Lives(bench)
    lives.settled()
    bench.write_both(("day", 2), ("a", 2), ("day", 3), ("a", 3), ("day", 4))
    status = lives.settled()
    assert (status.verdict, lives.deaths) == ("INCONCLUSIVE", FALLS_TO_LEAVE_OUT)
    assert [hole.reason.startswith(LEFT_OUT) for hole in status.holes] == [True]
