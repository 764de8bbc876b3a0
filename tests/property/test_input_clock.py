"""The clock of the input proves exactly what was dropped, whatever comes when, and nothing before it may."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.hearing import Hearing
from tests.support.searching import examples
from tests.support.streams import SPEAKING, Driver, record
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.spec.load import loads

SPEC = SPEAKING + "overdue: {clock: input}\n"
INPUTS, OUTPUTS = 2, 2
LENGTH = 12
Place = tuple[int, int]
"""Partition and offset of an input record."""
Written = tuple[bytes, str]

ALL = frozenset((partition, offset) for partition in range(INPUTS) for offset in range(LENGTH))


@dataclass
class Version:
    """One version: what it drops, how far it has consumed, what it wrote and said."""

    drops: frozenset[Place]
    stops_after: int
    batch: int = 0
    run: int = 0
    consumed: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(INPUTS), 0))
    topic: dict[int, list[Written]] = field(default_factory=lambda: defaultdict(list))
    read: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    said: list[Finished] = field(default_factory=list)

    def work(self, sizes: list[int], spread: int, *, says: bool) -> None:
        """One micro-batch: output first, in some order over the partitions, then the control record."""
        if self.batch >= self.stops_after:
            return
        places = []
        for partition, size in enumerate(sizes):
            first = self.consumed[partition]
            self.consumed[partition] = min(LENGTH, first + size)
            places += [(partition, offset) for offset in range(first, self.consumed[partition])]
        for place in places:
            if place not in self.drops:
                value = record({"p": place[0], "o": place[1]})
                self.topic[(sum(place) + spread) % OUTPUTS].append((value, f"in:{place[0]}:{place[1]}"))
        if says:
            self.said.append(self._fact())
        self.batch += 1

    def _fact(self) -> Finished:
        consumed = {("in", partition): offset for partition, offset in self.consumed.items()}
        written = {partition: len(rows) for partition, rows in self.topic.items()}
        return Finished("q", str(self.run), self.batch, consumed, None, written)

    def close(self) -> None:
        """A last batch without input, as an idle query finishes one."""
        if self.batch < self.stops_after:
            self.work([LENGTH] * INPUTS, 0, says=True)


class World(Hearing):
    """Two versions, and a matcher that reads them."""

    def __init__(self, drops: list[frozenset[Place]], stops: list[int]) -> None:
        self.versions = [Version(drop, stop) for drop, stop in zip(drops, stops, strict=True)]
        super().__init__(self.versions, Driver(loads(SPEC)), OUTPUTS)

    def act(self, action: tuple[Any, ...]) -> None:
        match action:
            case "work", side, sizes, spread, says:
                self.versions[side].work(sizes, spread, says=says)
            case "restart query", side:
                self.versions[side].run += 1
        super().act(action)

    def proven(self) -> dict[str, set[Place]]:
        found: dict[str, set[Place]] = {"missing": set(), "extra": set()}
        for divergence in self.driver.findings():
            assert divergence.late is None
            value = self.driver.codec.decode(divergence.finding.event[0][3])
            found[divergence.finding.kind].add((value["p"], value["o"]))
        return found


sides = st.sampled_from(Side)
sizes = st.lists(st.integers(0, 5), min_size=INPUTS, max_size=INPUTS)
actions = st.one_of(
    st.tuples(st.just("work"), sides, sizes, st.integers(0, 1), st.booleans()),
    st.tuples(st.just("read"), sides, st.integers(0, OUTPUTS - 1), st.integers(1, 6)),
    st.tuples(st.just("hear"), sides, st.integers(1, 3)),
    st.tuples(st.just("restart query"), sides),
    st.tuples(st.just("restart"), sides),
)
dropped = st.frozensets(st.sampled_from(sorted(ALL)), max_size=4)


def expected(world: World) -> dict[str, set[Place]]:
    """What one version alone has dropped."""
    reference, candidate = (version.drops for version in world.versions)
    return {"missing": set(candidate - reference), "extra": set(reference - candidate)}


@examples(200)
@given(dropped, dropped, st.lists(actions, max_size=60))
def test_exactly_what_was_dropped_is_proven_and_nothing_before_its_time(
    by_reference: frozenset[Place], by_candidate: frozenset[Place], steps: list[tuple[Any, ...]]
) -> None:
    world = World([by_reference, by_candidate], [10**6, 10**6])
    allowed = expected(world)
    for step in steps:
        world.act(step)
        for kind, places in world.proven().items():
            assert places <= allowed[kind]
    for version in world.versions:
        version.close()
    world.read_all()
    assert world.proven() == allowed
    assert world.driver.comparison.diverged == any(allowed.values())
    assert [world.driver.held(side) for side in Side] == [[], []]
    assert not world.driver.comparison.holes


@given(dropped, sides, st.integers(0, 3), st.lists(actions, max_size=60))
def test_a_version_that_stops_makes_nothing_overdue_that_it_has_not_consumed(
    drops: frozenset[Place], stopped: Side, batches: int, steps: list[tuple[Any, ...]]
) -> None:
    """The stopped version may have written a part of its last batch, and said nothing of it."""
    world = World([frozenset(), frozenset()], [10**6, 10**6])
    world.versions[stopped].drops = drops
    world.versions[stopped].stops_after = batches
    for step in steps:
        world.act(step)
    for version in world.versions:
        version.close()
    world.read_all()
    consumed = world.versions[stopped].consumed
    allowed = {place for place in drops if place[1] < consumed[place[0]]}
    kind, other = ("extra", "missing") if stopped is Side.LEFT else ("missing", "extra")
    assert world.proven()[kind] <= allowed
    assert world.proven()[other] == set()
    assert world.driver.comparison.surveyed.suspicions == 0
