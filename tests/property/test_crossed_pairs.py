"""Equal events of many input records: exactly what was lost is proven, however rows and batches are cut."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.support.hearing import ALL, Hearing
from tests.support.searching import examples
from tests.support.streams import SPEAKING, Driver, record
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.core.overdue import crossed
from twinstream.spec.load import loads

INPUTS, OUTPUTS, LENGTH = 2, 3, 10
ENOUGH = crossed.KEPT
BAG = "order: unordered\n"
BY_KEY = "order: {per_key: [k]}\n"
CLOSE = BY_KEY + "equality: {tolerance: {v: {abs: 1}}}\n"
Row = tuple[int, int, int]
"""An output row: partition and offset of its input record, and its number among the rows of that."""

ROWS = [(p, o, n) for p in range(INPUTS) for o in range(LENGTH) for n in range(1 + (o % 4 == 0))]


def letter(row: Row) -> int:
    """Rows of few letters, so that nearly all are equal to others."""
    return (row[0] + row[1] // 3) % 2


class Version:
    """Writes the rows of each batch in any order; those of a key go to one partition."""

    def __init__(self, order: str, dropped: frozenset[Row]) -> None:
        self._order, self._dropped = order, dropped
        self.consumed = [0] * INPUTS
        self.topic: dict[int, list[tuple[bytes, Any]]] = defaultdict(list)
        self.read: dict[int, int] = defaultdict(int)
        self.said: list[Finished] = []
        self._batch = 0

    def work(self, sizes: list[int], seed: int, *, says: bool = True) -> None:
        before = list(self.consumed)
        self.consumed = [min(LENGTH, one + size) for one, size in zip(before, sizes, strict=True)]
        rows = [row for row in ROWS if before[row[0]] <= row[1] < self.consumed[row[0]]]
        rng = random.Random(seed)
        rng.shuffle(rows)
        for row in rows:
            if row not in self._dropped:
                value = {"k": letter(row)} | ({"v": rng.randint(0, 1)} if self._order == CLOSE else {})
                partition = rng.randrange(OUTPUTS) if self._order == BAG else letter(row)
                self.topic[partition].append((record(value), f"in:{row[0]}:{row[1]}"))
        if says:
            consumed = {("in", partition): offset for partition, offset in enumerate(self.consumed)}
            written = {partition: len(rows) for partition, rows in self.topic.items()}
            self.said.append(Finished("q", "r", self._batch, consumed, None, written))
        self._batch += 1


class World(Hearing):
    def __init__(self, order: str, lossy: Side, lost: frozenset[Row]) -> None:
        self.versions = [Version(order, lost if side is lossy else frozenset()) for side in Side]
        text = SPEAKING.replace(BAG, order) + "overdue: {clock: input}\n"
        super().__init__(self.versions, Driver(loads(text)), OUTPUTS)

    def act(self, action: tuple[Any, ...]) -> None:
        match action:
            case "work", side, sizes, seed, says:
                self.versions[side].work(sizes, seed, says=says)
            case "catch up", side:
                for partition in range(OUTPUTS):
                    self.read(side, partition, ALL)
                self.hear(side, ALL)
        super().act(action)

    def proven(self) -> Counter[tuple[bool, int]]:
        """The number of divergences by whether the reference lacks the event, and by letter."""
        findings = [divergence.finding for divergence in self.driver.findings()]
        decode = self.driver.codec.decode
        return Counter((found.left is None, decode(found.event[0][3])["k"]) for found in findings)


sides = st.sampled_from(Side)
actions = st.one_of(
    st.tuples(
        st.just("work"),
        sides,
        st.lists(st.integers(0, 6), min_size=INPUTS, max_size=INPUTS),
        st.integers(0, 99),
        st.booleans(),
    ),
    st.tuples(st.just("catch up"), sides),
    st.tuples(st.just("read"), sides, st.integers(0, OUTPUTS - 1), st.integers(1, 6)),
    st.tuples(st.just("hear"), sides, st.integers(1, 3)),
    st.tuples(st.just("restart"), sides),
)


@examples(400)
@given(
    st.sampled_from([BAG, BY_KEY, CLOSE]),
    sides,
    st.frozensets(st.sampled_from(ROWS), max_size=3),
    st.lists(actions, min_size=20, max_size=60),
    st.sampled_from([ENOUGH, 2, 0]),
)
def test_of_equal_events_exactly_as_many_are_proven_as_were_lost(
    order: str, lossy: Side, lost: frozenset[Row], steps: list[tuple[Any, ...]], kept: int
) -> None:
    world = World(order, lossy, lost)
    expected = Counter((lossy is Side.LEFT, letter(row)) for row in lost)
    with patch.object(crossed, "KEPT", kept):
        for step in steps:
            world.act(step)
            assert world.proven() <= expected
            assert kept < ENOUGH or lost or not world.driver.comparison.surveyed.suspicions
        for version in world.versions:
            version.work([LENGTH] * INPUTS, 0)
        world.read_all()
    assert world.proven() == expected
    assert world.driver.comparison.diverged == bool(lost)
    assert [world.driver.comparison.unmatched(side) for side in Side] == [0, 0]
    assert not world.driver.comparison.holes
