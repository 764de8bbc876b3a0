"""A pipeline that retries, however it does, is compared as one that never had to.

A failure prints the seed of everything that is random.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.oracle import Wrote, attempts_agree, batch_counts, matching
from tests.support.retries import (
    Pipeline,
    Reader,
    Row,
    Value,
    any_order,
    order_by_key,
    reading,
    replays,
)
from tests.support.searching import examples
from tests.support.streams import LEFT, RIGHT
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.arrivals.replays import Alike, Replays, WrittenRow
from twinstream.core.arrivals.replays_state import merged
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side

seeds = st.integers(0, 2**32)
Batches = list[list[Value]]
Change = Callable[[random.Random, Batches], None]


class World(NamedTuple):
    """Two outputs by batches, and what both topics hold after all retries."""

    order: str
    horizon: int
    partitions: int
    batches: dict[Side, Batches]
    logs: dict[Side, list[Row]]

    @property
    def rows(self) -> dict[Side, int]:
        return {side: sum(map(len, batches)) for side, batches in self.batches.items()}


def nothing(_rng: random.Random, _batches: Batches) -> None: ...


def world(rng: random.Random, change: Change = nothing) -> World:
    """Two pipelines with the same output but for a change to the candidate's; each retries in its own way."""
    keyed = rng.random() < 0.5
    order = "{per_key: [k]}" if keyed else "unordered"
    values = [{"k": rng.randrange(4), "n": rng.randrange(3)} for _ in range(rng.randrange(1, 30))]
    partitions = rng.randrange(1, 4)
    horizon = rng.randrange(1, 5)
    batches = {side: cut(rng, values if keyed else rng.sample(values, len(values))) for side in Side}
    change(rng, batches[RIGHT])
    logs = {}
    for side in Side:
        pipeline = Pipeline(rng, order_by_key if keyed else any_order, horizon, partitions, keyed)
        for number, batch in enumerate(batches[side]):
            pipeline.write(number, batch)
        logs[side] = pipeline.log
    return World(order, horizon, partitions, batches, logs)


def cut(rng: random.Random, values: Sequence[Value]) -> Batches:
    """The values in batches, some of which are empty."""
    places = sorted(rng.randrange(len(values) + 1) for _ in range(rng.randrange(5)))
    return [list(values[a:b]) for a, b in zip([0, *places], [*places, len(values)], strict=True)]


def compared(
    world: World,
    rng: random.Random,
    *,
    stops: random.Random | None = None,
    watch: Callable[[Comparison], None] | None = None,
) -> Reader:
    """Both topics, read as a source may deliver them."""
    reader = Reader(replays(world.order, world.horizon), world.partitions)
    for side, rows in reading(rng, world.logs):
        reader.read(side, rows)
        if stops is not None and stops.random() < 0.3:
            reader.restart()
        if watch is not None:
            watch(reader.comparison)
    reader.end()
    return reader


def without_retries(world: World) -> Comparison:
    """The outcome where each row was written once."""
    reader = Reader(world.order, known=False)
    for side in Side:
        reader.read(side, [Row(None, value) for batch in world.batches[side] for value in batch])
    reader.end()
    return reader.comparison


def some_fault(rng: random.Random, batches: Batches) -> None:
    """A row is lost, is doubled, or has another value."""
    batch = rng.choice([batch for batch in batches if batch])
    place = rng.randrange(len(batch))
    match rng.randrange(3):
        case 0:
            del batch[place]
        case 1:
            batch.insert(place, batch[place])
        case 2:
            batch[place] = {**batch[place], "n": 99}


def double_all(_rng: random.Random, batches: Batches) -> None:
    batches[:] = [[value for value in batch for _ in range(2)] for batch in batches]


@pytest.mark.parametrize("change", [nothing, some_fault, double_all])
@given(seed=seeds, restarts=st.booleans())
def test_behind_any_retries_and_restarts_the_answer_is_that_without_them(
    change: Change, seed: int, restarts: bool
) -> None:
    rng = random.Random(seed)
    made = world(rng, change)
    reader, plain = compared(made, rng, stops=rng if restarts else None), without_retries(made)
    assert reader.comparison.diverged == plain.diverged == (change is not nothing)
    assert reader.reasons() == []
    if made.order == "unordered" or change is nothing:
        assert reader.comparison.matched == plain.matched
    check_replayed(reader, made)


class Looks:
    """Topics that are written while they are read, and looked at; their last partition stays idle."""

    def __init__(self, made: World, rng: random.Random) -> None:
        self.reader = Reader(replays(made.order, made.horizon), made.partitions + 1)
        self.rng, self.logs = rng, {side: list(made.logs[side]) for side in Side}
        self.written: dict[Side, list[Row]] = {side: [] for side in Side}
        self.asked = 0
        self.ends: list[tuple[int, dict[Side, Counter[int]]]] = []

    def write(self, count: int) -> None:
        side = self.rng.choice(list(Side))
        self.written[side] += self.logs[side][:count]
        del self.logs[side][:count]

    def look(self) -> None:
        """The next look is requested; it is made at once, or just before the one behind it is requested."""
        self.make()
        self.asked += 1
        self.reader.comparison.arrivals.note_request(self.asked)
        if self.rng.random() < 0.5:
            self.make()

    def make(self) -> None:
        ends = {side: Counter(row.partition for row in self.written[side]) for side in Side}
        if self.asked > len(self.ends):
            self.ends.append((self.asked, ends))

    def read(self, count: int) -> None:
        """The next rows of a partition are read."""
        side, partition = self.rng.choice(list(Side)), self.rng.randrange(self.reader.partitions)
        rows = [row for row in self.written[side] if row.partition == partition]
        at = self.reader.intake.positions[side][partition]
        self.reader.read(side, rows[at : at + count])
        self.note_read(side)

    def note_read(self, side: Side) -> None:
        positions = Counter(self.reader.intake.positions[side])
        read = [number for number, ends in self.ends if ends[side] <= positions]
        self.reader.comparison.arrivals.note_read(side, max(read, default=0))

    def step(self) -> None:
        action, count = self.rng.choice([self.write, self.read, self.read]), self.rng.randrange(1, 5)
        action(count)
        if self.rng.random() < 0.3:
            self.look()

    def rest(self) -> None:
        """All is written and read, and looked at behind that."""
        for side in Side:
            self.written[side] += self.logs[side]
        self.logs = {side: [] for side in Side}
        while any(
            sum(self.reader.intake.positions[side].values()) < len(self.written[side]) for side in Side
        ):
            self.read(9)
        for _ in range(2):
            self.look()
        for side in Side:
            self.note_read(side)


@pytest.mark.parametrize("change", [nothing, some_fault])
@given(seed=seeds, restarts=st.booleans())
def test_beside_an_idle_partition_looks_close_all_batches_but_the_last_however_late_they_are_read(
    change: Change, seed: int, restarts: bool
) -> None:
    rng = random.Random(seed)
    made = world(rng, change)
    looks = Looks(made, rng)
    for _ in range(rng.randrange(100)):
        looks.step()
        if restarts and rng.random() < 0.1:
            looks.reader.restart()
        assert looks.reader.reasons() == []
        assert not (looks.reader.comparison.diverged and change is nothing)
    looks.rest()
    reader = looks.reader
    for one in reader.comparison.retries or ():
        open_batches = [batch for (_, _, batch), _ in one.open()]
        assert len(open_batches) <= 1
    reader.end()
    assert reader.comparison.diverged == (change is not nothing)
    assert reader.reasons() == []
    check_replayed(reader, made)


def check_replayed(reader: Reader, made: World) -> None:
    """What is called replayed is all that was written more than once."""
    for side in Side:
        assert reader.replayed(side) == len(made.logs[side]) - made.rows[side]


# -- numbers with a tolerance ------------------------------------------------------------------------------

TOLERANT = {
    "{per_key: [k]}": "{per_key: [k]}\nequality: {tolerance: {v: {abs: 0.5}}}",
    "unordered": "unordered\nidentity: [k]\nequality: {tolerance: {v: {abs: 0.5}}}",
}


def noisy(rng: random.Random, made: World) -> World:
    """The same world, in which equal rows have numbers that are less than 0.5 away from each other.

    Numbers of other rows are 10 away: so closeness is transitive, and which rows are equal is beyond doubt.
    """
    noise = rng.choice([rng.random, lambda: 0.25])

    def noised(value: Value) -> Value:
        return {"k": value["k"], "v": value["n"] * 10 + noise() * 0.4}

    logs = {side: [row._replace(value=noised(row.value)) for row in made.logs[side]] for side in Side}
    batches = {side: [[noised(one) for one in batch] for batch in made.batches[side]] for side in Side}
    return made._replace(order=TOLERANT[made.order], logs=logs, batches=batches)


@given(seeds, st.booleans())
def test_retries_that_differ_within_the_tolerance_change_nothing(seed: int, restarts: bool) -> None:
    rng = random.Random(seed)
    made = noisy(rng, world(rng))
    reader = compared(made, rng, stops=rng if restarts else None)
    assert reader.reasons() == []
    assert not reader.comparison.diverged
    assert reader.comparison.matched == made.rows[LEFT]
    check_replayed(reader, made)


def spoil(rng: random.Random, log: list[Row]) -> list[Row]:
    """Another execution of some batch, or another attempt of a task, wrote one row that no other did."""
    first = rng.choice([row for row in log if row.attempt is not None and row.attempt.execution == "last"])
    assert first.attempt is not None
    other = {"execution": "bad"} if rng.random() < 0.5 else {"attempt": 99}
    bad = Row(first.attempt._replace(**other), {**first.value, "n": 77}, first.partition)
    place = next(at for at, row in enumerate(log) if row.attempt and row.attempt.batch == first.attempt.batch)
    return [*log[:place], bad, *log[place:]]


def never_diverged(comparison: Comparison) -> None:
    assert not comparison.diverged


@given(seeds, st.booleans(), st.booleans())
def test_a_retry_that_differs_by_more_than_any_tolerance_is_a_hole_and_never_a_difference(
    seed: int, restarts: bool, tolerant: bool
) -> None:
    rng = random.Random(seed)
    made = world(rng)
    made = made._replace(logs={**made.logs, RIGHT: spoil(rng, made.logs[RIGHT])})
    made = noisy(rng, made) if tolerant else made
    reader = compared(made, rng, stops=rng if restarts else None, watch=never_diverged)
    assert not reader.comparison.diverged
    assert ["several times with different rows" in reason for reason in reader.reasons()] == [True]


@given(seeds)
def test_where_attempts_agree_all_of_them_wrote_what_stands_within_the_tolerance(seed: int) -> None:
    rng = random.Random(seed)
    replays, stands, attempts = Replays(RIGHT, 10), [], []
    for number in range(rng.randrange(1, 5)):
        writes = Attempt("q", 1, f"e{rng.randrange(2)}", 0, number)
        values = [rng.randrange(6) for _ in range(rng.randrange(1, 5))]
        attempts.append(values)
        for offset, value in enumerate(values):
            record = b"%d %d" % (value, rng.randrange(2))
            if replays.feed(WrittenRow(writes, b"form", (0, offset), Alike(record, record, close))):
                stands.append(value)
    replays.end()
    for values in attempts if replays.take_closed().agreed else ():
        assert len(matching(values, stands, lambda one, other: abs(one - other) <= 1)) == len(values)


def close(one: bytes, other: bytes) -> bool:
    return abs(int(one.split()[0]) - int(other.split()[0])) <= 1


# -- one side, by the definition ---------------------------------------------------------------------------


class Plain:
    """One query of a side: every row is kept, and all is counted anew with each.

    A batch is closed when the last row of each partition, expected or shown up, is of a
    later one. Then it is a hole if its attempts do not agree. A row that raises what a closed one wrote opens
    it again, unless it is a hole.
    """

    def __init__(self, expected: Iterable[int]) -> None:
        self._rows: list[tuple[int, int, Wrote]] = []
        self._last = dict.fromkeys(expected, -1)
        self._open: set[int] = set()
        self.holes: list[int] = []

    def take(self, batch: int, partition: int, wrote: Wrote) -> bool:
        """Take a row; whether it is new."""
        before = self._wrote(batch)
        self._last[partition] = batch
        self._rows.append((batch, partition, wrote))
        raised = batch_counts(self._wrote(batch)).total() > batch_counts(before).total()
        if not before or (raised and batch not in self.holes):
            self._open.add(batch)
        self.finish(min(self._last.values()) - 1)
        return raised

    def finish(self, last: float) -> None:
        """All batches up to this one are closed."""
        closed = sorted(number for number in self._open if number <= last)
        self._open.difference_update(closed)
        self.holes += [one for one in closed if not attempts_agree(self._wrote(one))]

    def _wrote(self, batch: int) -> list[Wrote]:
        return [wrote for number, _, wrote in self._rows if number == batch]


letters = st.sampled_from([b"a", b"b"])
wrotes = st.builds(Wrote, st.sampled_from("ef"), st.integers(0, 1), st.integers(0, 1), letters)
rows_of_a_query = st.tuples(st.integers(0, 2), st.integers(0, 1), wrotes)


OPENED_AGAIN = [
    (0, 0, Wrote("e", 1, 0, b"b")),
    0,
    (0, 1, Wrote("e", 1, 1, b"a")),
    (1, 1, Wrote("e", 0, 0, b"a")),
]
"""A finished batch that is opened again waits for all partitions, not only for that of the new row."""
GOES_BACK = [
    (1, 1, Wrote("e", 0, 0, b"b")),
    (2, 0, Wrote("e", 0, 0, b"a")),
    (0, 0, Wrote("e", 0, 0, b"a")),
    (1, 1, Wrote("e", 0, 1, b"a")),
    (2, 1, Wrote("e", 0, 0, b"a")),
]
"""A partition that was past a batch goes back to an earlier one: the batch may be written again there."""


@examples(300)
@example([], OPENED_AGAIN)
@example([], GOES_BACK)
@given(
    st.sampled_from([[], [0, 1]]),
    st.lists(st.one_of(rows_of_a_query, rows_of_a_query, st.sampled_from(["restart", 0, 1])), max_size=16),
)
def test_what_is_new_and_which_batches_are_holes_is_told_by_the_definition(
    expected: list[int], steps: list[Any]
) -> None:
    plain, replays, found = Plain(expected), Replays(RIGHT, 10), []
    replays.expect(expected)
    states = [replays.state()]
    for offset, step in enumerate([*steps, "end"]):
        if step == "restart":
            states.append(replays.state(whole=False))
            replays = Replays(RIGHT, 10)
            replays.restore(merged([{"sides": [state]} for state in states])["sides"][0])
        elif step == "end":
            replays.end()
            plain.finish(inf)
        elif isinstance(step, int):
            replays.finish("q", step)
            plain.finish(step)
        else:
            batch, partition, wrote = step
            attempt = Attempt("q", batch, wrote.execution, wrote.task, wrote.attempt)
            row = WrittenRow(attempt, wrote.letter, (partition, offset))
            assert replays.feed(row) == plain.take(*step)
        found += [hole.batch[2] for hole in replays.take_closed().holes if hole.batch is not None]
        assert found == plain.holes
