"""Runs that are paired as a whole end as those that go through the index, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.streams import LEFT, RIGHT, Driver, record, saved_again, spec
from twinstream.core.accounts import Hole
from twinstream.core.arrivals import whole_runs
from twinstream.core.events import Side

LENGTH = 90
KINDS = "kinds: {odd: {where: {k: b}}, event: {}}\n"
DROPPED = "equality: {ignore: [by]}\n"
FILES = [
    ("total", ""),
    ("unordered", KINDS),
    ("{per_key: [k]}", KINDS),
    ("unordered", DROPPED),
    ("{per_key: [k]}", f"{DROPPED}co_partitioned: true\n"),
]
MOVES = st.lists(st.tuples(st.integers(0, LENGTH - 1), st.integers(0, 3)), max_size=3)
FED = st.tuples(st.sampled_from(["left", "right"]), st.integers(0, 1), st.integers(1, 40))
RARE = st.sampled_from(["look", "glance", "save", "restart", "hole"])
STEP = FED | FED | FED | st.tuples(RARE, st.just(0), st.just(0))
LEASTS = [1, whole_runs.LEAST]
SIDES = {"left": LEFT, "right": RIGHT}


def written(partition: int, copies: int, moves: list[tuple[int, int]], *, dropped: bool) -> list[list[bytes]]:
    """The records of both sides in a partition; some are lost, changed, doubled or moved on the right."""
    left: list[dict[str, Any]] = [{"k": "ab"[partition], "v": number // copies} for number in range(LENGTH)]
    right = list(left)
    for place, what in moves:
        pair = right[place : place + 2]
        changed = [{**one, "v": -1} for one in pair[:1]] + pair[1:]
        right[place : place + 2] = [pair[1:], changed, pair + pair[:1], pair[::-1]][what]
    by = [{"by": side} for side in SIDES] if dropped else [{}, {}]
    return [[record(one | more) for one in values] for values, more in zip((left, right), by, strict=True)]


@pytest.mark.parametrize(("order", "more"), FILES)
@examples(400)
@given(
    least=st.sampled_from(LEASTS),
    copies=st.sampled_from([1, 1, 2]),
    moves=MOVES,
    steps=st.lists(STEP, max_size=40),
)
def test_a_whole_run_changes_nothing_but_the_work(
    order: str,
    more: str,
    least: int,
    copies: int,
    moves: list[tuple[int, int]],
    steps: list[tuple[str, int, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_runs, "LEAST", least)
        patch.setattr(whole_runs, "LEAST_IN_THE_MEAN", min(least, whole_runs.LEAST_IN_THE_MEAN))
        _compare(order, more, copies, moves, steps)


def _compare(
    order: str, more: str, copies: int, moves: list[tuple[int, int]], steps: list[tuple[str, int, int]]
) -> None:
    whole, single = (Driver(spec(order, more)) for _ in range(2))
    partitions = (0,) if order == "total" else (0, 1)
    dropped = more.startswith(DROPPED)
    rest = {one: written(one, copies, [] if one else moves, dropped=dropped) for one in partitions}
    last = [(side, partition, 2 * LENGTH) for partition in partitions for side in SIDES]
    for what, partition, count in [*steps, *last, ("look", 0, 0), ("end", 0, 0)]:
        records: Sequence[bytes] = ()
        if what in SIDES and partition in rest:
            side = SIDES[what]
            records, rest[partition][side] = rest[partition][side][:count], rest[partition][side][count:]
        for driver in (whole, single):
            if driver is single:
                driver.comparison.feeding.whole_runs = None
            _do(driver, what, partition, records)
        assert _at_once(whole) == _at_once(single)
        if what not in (*SIDES, "save", "glance"):
            assert _at_a_look(whole) == _at_a_look(single)


def _do(driver: Driver, what: str, partition: int, records: Sequence[bytes]) -> None:
    if records:
        first = driver.offsets[SIDES[what]]
        times = [(first + place) * 37 % 101 for place in range(len(records))]
        driver.feed(SIDES[what], records, times, partition)
        driver.comparison.review()
    elif what == "look":
        driver.look()
    elif what == "glance":
        driver.comparison.survey((False, False))
    elif what == "save":
        saved_again(driver.saved, driver.comparison)
    elif what == "hole":
        driver.comparison.hole(Hole("a stretch is lost"))
    elif what == "restart":
        driver.restart()
    elif what == "end":
        driver.end()


def _at_once(driver: Driver) -> list[Any]:
    """The answers that are due after each run."""
    comparison = driver.comparison
    diverged = [comparison.diverged, comparison.proven.at, comparison.in_dispute]
    return [*diverged, *map(comparison.unmatched, Side), list(map(vars, comparison.accounts))]


def _at_a_look(driver: Driver) -> list[Any]:
    """All that is told after a look."""
    comparison, survey = driver.comparison, driver.comparison.surveyed
    facts = [survey.first_open, survey.oldest_ms, survey.held_bytes]
    comparison.refresh()
    found = [
        (one.finding.kind, one.tainted, _place(one.finding.left), _place(one.finding.right))
        for one in (*comparison.provisional(), *driver.findings())
    ]
    ledger = comparison.ledger.state()
    ledger["recent"].sort()
    return [facts, found, ledger, [driver.held(side) for side in Side]]


def _place(event: Any) -> Any:
    return event and event[1:3]
