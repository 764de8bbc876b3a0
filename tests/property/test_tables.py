"""Rows that replace each other, against a plain fold of both whole streams into tables.

Two versions consume one input in batches of their own, and write the rows that a batch has touched. The value
of a key depends on the set of consumed input records alone, so both versions agree about each prefix. A row
may come several times, and may be left out if its value is the same as before; a crash writes the last batch
again. A version may lose some input records: that is the fault to be found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.hearing import Hearing
from tests.support.searching import examples
from tests.support.streams import SPEAKING, Driver, record
from tests.support.tables import Pair
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.spec.decode.deletions import deletion
from twinstream.spec.load import loads

BY_INPUT = SPEAKING + "emits: {upsert: {key: [k], settled_by: input}}\noverdue: {clock: input}\n"
RECORDED = SPEAKING + "emits: {upsert: {key: [k], settled_by: input}}\n"
COMPLETE = SPEAKING + "emits: {complete: {key: [k], settled_by: input}}\noverdue: {clock: input}\n"
BY_WATERMARK = (
    SPEAKING
    + "emits: {upsert: {key: [k, end], settled_by: {watermark: end}}}\n"
    + "overdue: {clock: input, window_end: end}\n"
)
INPUTS, OUTPUTS, KEYS, LENGTH, WINDOW_MS = 2, 2, 3, 12, 4
Place = tuple[int, int]
"""Partition and offset of an input record."""
Key = Any
Table = dict[Key, int]


class Job:
    """What a version computes: `key_of` an input record, and the value of a key after some records.

    `whole`: each batch writes all rows of the table.
    """

    whole = False

    def key_of(self, place: Place) -> Key:
        return (place[0] + 2 * place[1]) % KEYS

    def value(self, key: Key, consumed: Iterable[Place]) -> int | None:
        """A small sum, so that it often stays; every fifth record takes the key away or brings it back."""
        mine = [place for place in consumed if self.key_of(place) == key]
        gone = sum(1 for _, offset in mine if offset % 5 == 4) % 2
        return None if gone or not mine else sum(offset for _, offset in mine) % 3

    def row(self, key: Key, value: int | None) -> bytes:
        if value is not None:
            return record({"k": key, "v": value})
        made = deletion(str(key).encode())
        assert made is not None
        return made

    def table(self, consumed: Iterable[Place]) -> Table:
        consumed = list(consumed)
        found = {key: self.value(key, consumed) for key in map(self.key_of, consumed)}
        return {key: value for key, value in found.items() if value is not None}


class Whole(Job):
    """The same in complete mode."""

    whole = True


class Spelled(Job):
    """The same with the key of a deletion in an object, as a text."""

    def row(self, key: Key, value: int | None) -> bytes:
        made = deletion(record({"k": str(key)}))
        assert made is not None
        return made if value is None else super().row(key, value)


class Windows(Job):
    """The same in windows of event time, which ascends in each input partition."""

    def key_of(self, place: Place) -> Key:
        return place[1] % KEYS, (place[1] // WINDOW_MS + 1) * WINDOW_MS

    def row(self, key: Key, value: int | None) -> bytes:
        if value is not None:
            return record({"k": key[0], "end": key[1], "v": value})
        made = deletion(record({"k": key[0], "end": key[1]}))
        assert made is not None
        return made


@dataclass
class Version:
    """One version: the input that it loses, how far it is, and what it wrote and said."""

    job: Job
    loses: frozenset[Place]
    skips_unchanged: bool
    batch: int = 0
    run: int = 0
    consumed: list[int] = field(default_factory=lambda: [0] * INPUTS)
    watermark_ms: int | None = None
    topic: dict[int, list[tuple[bytes, int | None]]] = field(default_factory=lambda: defaultdict(list))
    read: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    said: list[Finished] = field(default_factory=list)
    wrote: dict[Key, int | None] = field(default_factory=dict)
    last: list[tuple[Key, int | None]] = field(default_factory=list)

    @property
    def seen(self) -> set[Place]:
        places = {(partition, offset) for partition, end in enumerate(self.consumed) for offset in range(end)}
        return places - self.loses

    def work(self, sizes: list[int], spread: int, *, says: bool) -> None:
        """One micro-batch: the rows of the keys that it touches, some of them twice, then its record."""
        before, watermark_ms = self.seen, min(self.consumed)
        for partition, size in enumerate(sizes):
            self.consumed[partition] = min(LENGTH, self.consumed[partition] + size)
        touched = sorted(set(map(self.job.key_of, self.seen - before)), key=str, reverse=spread % 2 == 1)
        if self.job.whole:
            self._write_table(spread)
            if says:
                self.say()
            return
        self.last = self.last if not touched else []
        for key in touched:
            value = self.job.value(key, self.seen)
            if self.skips_unchanged and self.wrote.get(key) == value:
                continue
            self.wrote[key] = value
            if spread > 1:
                self.last.append((key, self.job.value(key, before)))
            self.last.append((key, value))
        self.watermark_ms = watermark_ms
        self.batch += 1
        if touched:
            self._write()
        if says:
            self.say()

    def _write_table(self, spread: int) -> None:
        """All rows of the table."""
        table = sorted(self.job.table(self.seen).items(), reverse=spread % 2 == 1)
        self.last = list(table)
        self.batch += 1
        self._write()

    def _write(self) -> None:
        for key, value in self.last:
            mark = self.batch if self.job.whole else None
            self.topic[_spot(key)].append((self.job.row(key, value), mark))

    def say(self) -> None:
        consumed = {("in", partition): offset for partition, offset in enumerate(self.consumed)}
        written = {partition: len(self.topic[partition]) for partition in range(OUTPUTS)}
        self.said.append(Finished("q", str(self.run), self.batch, consumed, self.watermark_ms, written))

    def crash(self) -> None:
        """The last batch is written again, and said again by the next run of the query."""
        self.run += 1
        self._write()
        if self.batch:
            self.say()

    def close(self) -> None:
        """Consume the rest, then finish two batches without input, as an idle query does."""
        for _ in range(3):
            self.work([LENGTH] * INPUTS, 0, says=True)


def _spot(key: Key) -> int:
    return int((key if isinstance(key, int) else key[0]) % OUTPUTS)


class World(Hearing):
    """Two versions, and a matcher that reads them."""

    def __init__(self, file: str, job: Job, loses: list[frozenset[Place]], skips: list[bool]) -> None:
        self.job = job
        self.versions = [Version(job, *fault) for fault in zip(loses, skips, strict=True)]
        super().__init__(self.versions, Driver(loads(file)), OUTPUTS)

    def act(self, action: tuple[Any, ...]) -> None:
        match action:
            case "work", side, sizes, spread, says:
                self.versions[side].work(sizes, spread, says=says)
            case ("read all",):
                self.read_all()
            case "crash", side:
                self.versions[side].crash()
        super().act(action)
        self.check_accounts()

    def read_all(self) -> None:
        super().read_all()
        self.check_accounts()

    def check_accounts(self) -> None:
        """Every row is in exactly one account; what is unmatched is what is held."""
        comparison = self.driver.comparison
        for side in Side:
            account = comparison.accounts[side]
            settled = comparison.matched + account.superseded + account.divergent
            assert account.consumed == settled + len(self.driver.held(side))

    def found(self) -> set[Key]:
        """The keys of all differences."""
        found = set()
        for divergence in self.driver.findings():
            value = self.driver.codec.decode(divergence.finding.event[0][3])
            found.add((value["k"], value["end"]) if "end" in value else value["k"])
        return found

    def differing(self) -> set[Key]:
        """The keys in which the two whole tables differ."""
        left, right = (self.job.table(version.seen) for version in self.versions)
        return {key for key in left.keys() | right.keys() if left.get(key) != right.get(key)}

    def lost(self) -> set[Key]:
        """The keys of the input records that one version alone has lost."""
        return set(map(self.job.key_of, self.versions[0].loses ^ self.versions[1].loses))


sides = st.sampled_from(Side)
sizes = st.lists(st.integers(0, 4), min_size=INPUTS, max_size=INPUTS)
actions = st.one_of(
    st.tuples(st.just("work"), sides, sizes, st.integers(0, 3), st.booleans()),
    st.tuples(st.just("read"), sides, st.integers(0, OUTPUTS - 1), st.integers(1, 12)),
    st.tuples(st.just("read all")),
    st.tuples(st.just("hear"), sides, st.integers(1, 3)),
    st.tuples(st.just("crash"), sides),
    st.tuples(st.just("restart"), sides),
)
places = st.sampled_from([(partition, offset) for partition in range(INPUTS) for offset in range(LENGTH)])
lost = st.one_of(st.just(frozenset[Place]()), st.frozensets(places, max_size=2))
losses = st.one_of(st.just([frozenset[Place]()] * 2), st.tuples(lost, lost).map(list))
"""The input that each version loses; in half of all examples none."""
skips = st.tuples(st.booleans(), st.booleans())


def run(world: World, steps: list[tuple[Any, ...]]) -> None:
    for step in steps:
        world.act(step)
        assert world.found() <= world.lost()
    for version in world.versions:
        version.close()
    world.read_all()
    assert not world.driver.comparison.holes


def fall_again(world: World) -> None:
    """Both versions write their last batch with input once more; nothing of it is new."""
    before = len(world.driver.findings())
    for version in world.versions:
        version.crash()
        world.read_all()
    assert len(world.driver.findings()) == before


def check_what_is_found(world: World, steps: list[tuple[Any, ...]]) -> None:
    """All keys in which the tables differ are found, and none in which nothing was lost; nothing is held."""
    run(world, steps)
    assert world.differing() <= world.found() <= world.lost()
    assert world.driver.comparison.diverged == bool(world.found())
    fall_again(world)
    assert [world.driver.held(side) for side in Side] == [[], []]


@examples(300)
@given(losses, skips, st.lists(actions, max_size=60))
def test_the_input_settles_every_key_and_finds_those_in_which_the_tables_differ(
    loses: list[frozenset[Place]], skipping: tuple[bool, bool], steps: list[tuple[Any, ...]]
) -> None:
    world = World(BY_INPUT, Job(), loses, list(skipping))
    check_what_is_found(world, steps)


@examples(300)
@given(losses, st.lists(actions, max_size=60))
def test_whole_tables_of_one_input_are_compared_and_differ_where_they_differ(
    loses: list[frozenset[Place]], steps: list[tuple[Any, ...]]
) -> None:
    world = World(COMPLETE, Whole(), loses, [False, False])
    check_what_is_found(world, steps)


@examples(300)
@given(losses, st.lists(actions, max_size=60))
def test_the_watermark_settles_closed_windows_and_the_end_all_others(
    loses: list[frozenset[Place]], steps: list[tuple[Any, ...]]
) -> None:
    world = World(BY_WATERMARK, Windows(), loses, [False, False])
    run(world, steps)
    assert not any(
        event[0][3] for side in Side for event in world.driver.comparison.tables.rows[side]
        if world.driver.codec.decode(event[0][3])["end"] <= LENGTH - WINDOW_MS
    )  # fmt: skip
    world.driver.end()
    assert world.found() == world.differing()
    assert world.driver.comparison.diverged == bool(world.differing())
    world.check_accounts()


@examples(200)
@given(st.lists(st.tuples(sides, st.integers(0, KEYS - 1), st.integers(0, 3)), max_size=40), st.data())
def test_the_end_of_recorded_input_compares_the_two_whole_tables(
    rows: list[tuple[Side, int, int]], data: st.DataObject
) -> None:
    """A value of 0 is a deletion."""
    world = World(
        SPEAKING + "emits: {upsert: {key: [k], settled_by: input}}\n", Job(), [frozenset()] * 2, [False] * 2
    )
    tables: tuple[Table, Table] = ({}, {})
    for side, key, value in rows:
        world.driver.feed(side, [world.job.row(key, value or None)])
        tables[side].pop(key, None)
        if value:
            tables[side][key] = value
        if data.draw(st.integers(0, 5)) == 0:
            world.driver.restart()
        world.check_accounts()
    world.driver.end()
    left, right = tables
    assert world.found() == {key for key in left.keys() | right.keys() if left.get(key) != right.get(key)}
    assert world.driver.comparison.diverged == (left != right)
    world.check_accounts()


BARRIERS = SPEAKING.replace("order: unordered\n", "") + (
    "kinds: {night: {where: {k: night}}, row: {}}\n"
    "order: {barrier: night, inner: INNER}\n"
    "emits: {upsert: {key: [k], settled_by: barrier}}\n"
)
epochs = st.lists(st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(0, 3)), max_size=6), max_size=5)


def deltas(epochs: list[list[tuple[int, int]]]) -> list[dict[int, int]]:
    """By epoch, the last row of each key; a deletion (0) only of a key that was there."""
    there: set[int] = set()
    found = []
    for epoch in epochs:
        last = dict(epoch)
        found.append({key: value for key, value in last.items() if value or key in there})
        there = (there | {key for key, value in last.items() if value}) - {
            k for k, v in last.items() if not v
        }
    return found


@examples(300)
@given(epochs, epochs, st.data())
def test_a_barrier_compares_the_last_rows_of_each_key_before_it(
    reference: list[list[tuple[int, int]]], candidate: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    if data.draw(st.booleans()):  # The same, as another trigger writes it: only the last rows of each epoch.
        candidate = [list(dict(epoch).items()) for epoch in reference]
    file = BARRIERS.replace("INNER", data.draw(st.sampled_from(["unordered", "{per_key: [k]}"])))
    jobs = Job(), data.draw(st.sampled_from([Job(), Spelled()]))
    world = World(file, jobs[0], [frozenset()] * 2, [False] * 2)
    night = record({"k": "night"})
    streams = [
        [row for epoch in of for row in [*(job.row(key, value or None) for key, value in epoch), night]]
        for job, of in zip(jobs, (reference, candidate), strict=True)
    ]
    while any(streams):
        side = data.draw(st.sampled_from([side for side in Side if streams[side]]))
        world.driver.feed(side, [streams[side].pop(0)])
        if data.draw(st.integers(0, 7)) == 0:
            world.driver.restart()
        world.driver.comparison.review()
        world.check_accounts()
    world.driver.end()
    assert world.driver.comparison.diverged == (deltas(reference) != deltas(candidate))
    world.check_accounts()


values = st.one_of(st.none(), st.integers(0, 2))


@examples(300)
@given(st.lists(st.tuples(values, values), min_size=1, max_size=5), st.data())
def test_what_the_tables_hold_in_the_end_names_the_last_difference_at_any_pace(
    written: list[tuple[int | None, int | None]], data: st.DataObject
) -> None:
    """For each input a version writes a value of one key, its deletion (0), or nothing."""
    tables, words = [0, 0], [list[str](), list[str]()]
    for consumed, rows in enumerate(written, 1):
        for side, value in zip(Side, rows, strict=True):
            name = "LR"[side]
            row = "" if value is None else f"{name}:a={value or '-'} "
            words[side].append(f"{row}{name}!{consumed}")
            tables[side] = tables[side] if value is None else value
    steps = list(map(iter, words))
    pair = Pair()
    for side in data.draw(st.permutations([*Side] * len(written))):
        pair.go_on(next(steps[side]))
    if tables[0] != tables[1]:
        kind = "changed" if all(tables) else "missing" if tables[0] else "extra"
        assert pair.driver.findings()[-1].finding.kind == kind
