"""The clock of event time on pipelines that keep up: what was dropped is told, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.streams import Driver, record, spec
from twinstream.core.events import Side

AFTER, IDLE, JUMP = 10, 30, 3600
SPEC = (
    f"overdue: {{clock: event_time, field: t, unit: s, after: {AFTER}s, idle_after: {IDLE}s, "
    f"max_jump: {JUMP}s, proves: true}}\n"
)
PARTITIONS = 2
LENGTH = 20
Row = tuple[int, int]
"""Number and time of an event."""


@dataclass
class Output:
    """What a version writes, in its order, and how far that is written and read."""

    rows: list[Row]
    spread: int
    topic: list[list[Row]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    read: list[int] = field(default_factory=lambda: [0] * PARTITIONS)

    def write(self, count: int) -> None:
        for number, time in self.rows[:count]:
            self.topic[(number * self.spread) % PARTITIONS].append((number, time))
        del self.rows[:count]


class World:
    def __init__(self, outputs: list[Output]) -> None:
        self.outputs = outputs
        self.driver = Driver(spec("unordered", SPEC))
        for side in Side:
            self.driver.comparison.expect_partitions(side, range(PARTITIONS))
        self.now = 0.0

    def act(self, action: tuple[Any, ...]) -> None:
        what, side, number, amount = action
        if what == "write":
            self.outputs[side].write(amount)
        elif what == "read":
            self.read(side, number, amount)
        elif what == "restart":
            self.driver.restart()
        else:
            self.now += amount * 10
        self.look()

    def read(self, side: Side, partition: int, count: int) -> None:
        output = self.outputs[side]
        first = output.read[partition]
        rows = output.topic[partition][first : first + count]
        if rows:
            output.read[partition] += len(rows)
            self.driver.offsets[side] = first
            records = [record({"n": n, "t": time}) for n, time in rows]
            self.driver.feed(side, records, [time * 1000 for _, time in rows], partition)

    def look(self) -> None:
        at_end = []
        for side in Side:
            positions = dict(enumerate(self.outputs[side].read))
            ends = dict(enumerate(map(len, self.outputs[side].topic)))
            self.driver.comparison.look(side, positions, ends, self.now)
            at_end.append(positions == ends)
        self.driver.comparison.survey((at_end[0], at_end[1]))

    def finish(self, writing: list[Output]) -> None:
        for output in writing:
            output.write(10**6)
        for side in Side:
            for partition in range(PARTITIONS):
                self.read(side, partition, 10**6)
        self.look()

    def proven(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {"missing": set(), "extra": set()}
        for divergence in self.driver.findings():
            value = self.driver.codec.decode(divergence.finding.event[0][3])
            found[divergence.finding.kind].add(value["n"])
        return found


numbers = st.integers(0, LENGTH - 1)
jitters = st.lists(st.integers(0, AFTER - 1), min_size=LENGTH, max_size=LENGTH)
times = st.lists(st.integers(0, 100), min_size=LENGTH, max_size=LENGTH)
drops = st.frozensets(numbers, max_size=3)
actions = st.tuples(
    st.sampled_from(("write", "write", "read", "read", "read", "restart", "wait")),
    st.sampled_from(Side),
    st.integers(0, PARTITIONS - 1),
    st.integers(1, 8),
)


def output(moments: list[int], late: list[int], dropped: frozenset[int], spread: int) -> Output:
    """A version that is late by less than `AFTER`, and ends with an event in each partition, long after."""
    order = sorted(range(LENGTH), key=lambda number: (moments[number] + late[number], number))
    rows = [(number, moments[number]) for number in order if number not in dropped]
    closing = [(LENGTH + number, 1000 + number) for number in range(2 * PARTITIONS)]
    return Output([*rows, *closing], spread)


@examples(200)
@given(times, jitters, jitters, drops, drops, st.integers(1, 2), st.lists(actions, max_size=60))
def test_exactly_what_was_dropped_is_told(
    moments: list[int],
    late: list[int],
    later: list[int],
    by_reference: frozenset[int],
    by_candidate: frozenset[int],
    spread: int,
    steps: list[tuple[Any, ...]],
) -> None:
    world = World([output(moments, late, by_reference, 1), output(moments, later, by_candidate, spread)])
    allowed = {"missing": by_candidate - by_reference, "extra": by_reference - by_candidate}
    for step in steps:
        world.act(step)
        assert all(places <= allowed[kind] for kind, places in world.proven().items())
    world.finish(world.outputs)
    for _ in range(2):
        world.now += IDLE
        world.look()
    if spread == 1:
        assert world.proven() == allowed
    assert all(places <= allowed[kind] for kind, places in world.proven().items())


@given(times, jitters, jitters, st.sampled_from(Side), st.lists(actions, max_size=60))
def test_a_side_that_stops_anywhere_makes_nothing_overdue(
    moments: list[int],
    late: list[int],
    later: list[int],
    stopped: Side,
    steps: list[tuple[Any, ...]],
) -> None:
    world = World([output(moments, jitter, frozenset(), 1) for jitter in (late, later)])
    for step in steps:
        world.act(step)
    world.finish([world.outputs[stopped.other]])
    for _ in range(3):
        world.now += 10 * IDLE
        world.look()
    assert world.proven() == {"missing": set(), "extra": set()}
    assert world.driver.comparison.surveyed.suspicions == 0
