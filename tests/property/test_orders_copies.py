"""Barriers with a copy in each partition, against a plain reading of what they mean.

A side's partitions are put together as the definition says: the epoch of an event is the number of copies
that its partition has delivered; a barrier stands behind its epoch as soon as every partition has delivered a
copy; and what a partition delivers of later epochs waits until then.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracle import PlainMatcher, equivalent
from tests.support.orders import Event, dependent, spec_of
from tests.support.streams import LEFT, RIGHT, Driver, record, waiting_events
from twinstream.core.events import Side

BARRIER = "e"


class Arrival(NamedTuple):
    """An event of a side, or a barrier, from one partition."""

    side: Side
    partition: int
    event: Event


class Scattered(NamedTuple):
    """Two streams over some partitions each, as they come."""

    inner: Any
    partitions: tuple[int, int]
    arrivals: list[Arrival]

    @property
    def order(self) -> Any:
        return {"barrier": [BARRIER], "inner": self.inner, "copies": "per_partition"}

    def driver(self, **more: Any) -> Driver:
        driver = Driver(spec_of(self.order, **more))
        for side in Side:
            driver.comparison.expect_partitions(side, range(self.partitions[side]))
        return driver


class Assembly:
    """One side put together: `take` gives what may be compared now, `waiting` counts what may not yet."""

    def __init__(self, partitions: int) -> None:
        self._queues: list[deque[Event]] = [deque() for _ in range(partitions)]
        self.ignored = 0

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues))

    def take(self, partition: int, event: Event) -> list[Event]:
        self._queues[partition].append(event)
        ready = self._of_this_epoch()
        while all(queue and queue[0]["type"] == BARRIER for queue in self._queues):
            copies = [queue.popleft() for queue in self._queues]
            self.ignored += len(copies) - 1
            ready += [copies[0], *self._of_this_epoch()]
        return ready

    def _of_this_epoch(self) -> list[Event]:
        """What waits in front of the next copy of a barrier, in each partition."""
        ready = []
        for queue in self._queues:
            while queue and queue[0]["type"] != BARRIER:
                ready.append(queue.popleft())
        return ready


@st.composite
def scattered(draw: st.DrawFn) -> Scattered:
    inner = draw(st.sampled_from(["unordered", {"per_key": ["k"]}]))
    event = st.fixed_dictionaries({"type": st.just("a"), "k": st.integers(0, 3), "v": st.integers(0, 1)})
    left = draw(st.lists(st.lists(event, max_size=4), min_size=1, max_size=4))
    right = [list(epoch) for epoch in left]
    for _ in range(draw(st.integers(0, 2))):
        _spoil(draw, right, draw(event))
    numbered = draw(st.booleans())
    partitions = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    queues = {
        (side, partition): queue
        for side, epochs in ((LEFT, left), (RIGHT, right))
        for partition, queue in enumerate(_scatter(draw, epochs, partitions[side], inner, numbered))
    }
    arrivals = []
    while rest := [place for place, queue in queues.items() if queue]:
        side, partition = draw(st.sampled_from(rest))
        arrivals.append(Arrival(side, partition, queues[side, partition].popleft()))
    return Scattered(inner, partitions, arrivals)


def _spoil(draw: st.DrawFn, epochs: list[list[Event]], event: Event) -> None:
    """Lose, add or move an event, or lose a barrier."""
    number = draw(st.integers(0, len(epochs) - 1))
    epoch, other = epochs[number], epochs[draw(st.integers(0, len(epochs) - 1))]
    fault = draw(st.sampled_from(["lose", "add", "move", "merge"]))
    if fault == "add":
        epoch.append(event)
    elif fault == "merge":
        if number + 1 < len(epochs):
            epoch += epochs.pop(number + 1)
    elif epoch:
        lost = epoch.pop(draw(st.integers(0, len(epoch) - 1)))
        if fault == "move":
            other.append(lost)


def _scatter(
    draw: st.DrawFn, epochs: list[list[Event]], partitions: int, inner: Any, numbered: bool
) -> list[deque[Event]]:
    """Epochs over partitions: events of a key stay in one, others stand anywhere."""
    queues: list[deque[Event]] = [deque() for _ in range(partitions)]
    for number, epoch in enumerate(epochs):
        if number:
            for queue in queues:
                queue.append({"type": BARRIER, **({"n": number} if numbered else {})})
        for event in epoch:
            place = draw(st.integers(0, partitions - 1)) if inner == "unordered" else event["k"] % partitions
            queues[place].append(event)
    return queues


def letter(event: Event) -> frozenset[tuple[str, Any]]:
    return frozenset(event.items())


@given(scattered(), st.booleans())
def test_after_every_prefix_the_engine_says_what_the_assembled_streams_say(
    world: Scattered, restarts: bool
) -> None:
    driver = world.driver()
    sides = [Assembly(count) for count in world.partitions]
    plain = PlainMatcher[Event](lambda a, b: dependent(world.order, a, b), lambda a, b: a == b)
    for side, partition, event in world.arrivals:
        driver.feed(side, [record(event)], partition=partition)
        for ready in sides[side].take(partition, event):
            plain.feed(side, ready)
        if restarts:
            driver.restart()
        comparison = driver.comparison
        assert comparison.diverged == plain.diverged
        assert [account.ignored for account in comparison.accounts] == [side.ignored for side in sides]
        if not plain.diverged:
            assert [comparison.unmatched(side) for side in Side] == [
                len(plain.unmatched[side]) + sides[side].waiting for side in Side
            ]
        assert [len(waiting_events(comparison, side)) for side in Side] == [
            comparison.unmatched(side) for side in Side
        ]


@given(scattered(), st.integers(1, 5))
def test_at_the_end_the_engine_says_what_the_definition_says(world: Scattered, look_every: int) -> None:
    driver = world.driver()
    sides = [Assembly(count) for count in world.partitions]
    streams: tuple[list[Event], list[Event]] = ([], [])
    for number, (side, partition, event) in enumerate(world.arrivals):
        driver.feed(side, [record(event)], partition=partition)
        streams[side].extend(sides[side].take(partition, event))
        if number % look_every == 0:
            driver.comparison.review()
    driver.end()
    same = equivalent(streams[0], streams[1], lambda a, b: dependent(world.order, a, b), letter)
    assert driver.comparison.diverged is not same
    assert bool(driver.findings()) is not same
    assert driver.comparison.holes == []
    for side in Side:
        accounts = dict(vars(driver.comparison.accounts[side]))
        assert accounts.pop("consumed") == driver.comparison.matched + sum(accounts.values())


@given(scattered(), st.lists(st.booleans(), min_size=1, max_size=6), st.booleans())
def test_where_a_comparison_halts_does_not_depend_on_the_runs(
    world: Scattered, cuts: list[bool], ends: bool
) -> None:
    outcomes = []
    for way in (cuts, [True]):
        driver = world.driver(on_divergence="halt")
        for side, partition, events in _runs(world.arrivals, way):
            driver.feed(side, events, partition=partition)
        if ends:
            driver.end()
        driver.comparison.review()
        found = [*driver.findings(), *driver.comparison.provisional()]
        outcomes.append(
            (
                driver.comparison.diverged,
                driver.comparison.matched,
                driver.comparison.accounts,
                [driver.waiting(side) for side in Side],
                [divergence.finding for divergence in found],
            )
        )
    assert outcomes[0] == outcomes[1]


def _runs(arrivals: list[Arrival], cuts: list[bool]) -> list[tuple[Side, int, list[bytes]]]:
    """Consecutive arrivals of one partition in runs, cut further where `cuts` (repeated) says so."""
    runs: list[tuple[Side, int, list[bytes]]] = []
    for place, (side, partition, event) in enumerate(arrivals):
        if not runs or runs[-1][:2] != (side, partition) or cuts[place % len(cuts)]:
            runs.append((side, partition, []))
        runs[-1][2].append(record(event))
    return runs
