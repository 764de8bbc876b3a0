"""Each check finds what a plain reading of the whole stream finds, however it is cut, heard and restarted.

The plain reading (`Expected`) sees all rows in the order in which they were read, and all control records at
once. It remembers everything, and forgets nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import orjson
from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.streams import SPEAKING
from twinstream.checkpoints import format as checkpoint
from twinstream.core.arrivals.run import Run
from twinstream.core.checks.checks import FIRST_KEPT, Tally
from twinstream.core.checks.key_partition import key_hash
from twinstream.core.clocks.input import Finished
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.state.merge import merged
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import Sweep, begin_sweep, delta, snapshot, sweeping
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.checks import FactReader
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.decode.deletions import deletion
from twinstream.spec.load import loads

PARTITIONS, ROWS, HORIZON_MS = 3, 60, 500
MINUTE_MS = 60_000
CHECKS = """\
checks:
  - {id: once, once: [k, start], horizon: 500ms}
  - {id: ascending, ascending: seq, per: [k]}
  - {id: placed, key_partition: [k]}
  - {id: windows, windows: {start: start, end: end, length: 1m}}
  - {id: complete, not_null: [k, views], types: {views: integer}}
  - {id: closed, closed_windows: {end: end}}
  - {id: watermark, watermark: never_back}
"""
SPEC = SPEAKING + CHECKS
SMALL = SPEC.replace("horizon: 500ms", "horizon: 500ms, keys: 4")
IDS = ("once", "ascending", "placed", "windows", "complete", "closed", "watermark")
SIDE = Side.RIGHT
seeds = st.integers(0, 2**32 - 1)


class Row(NamedTuple):
    """A row with the batch that wrote it; without a value it is a deletion."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: dict[str, Any]
    batch: int = 0

    @property
    def record(self) -> bytes | None:
        return orjson.dumps(self.value) if self.value else deletion(self.key)


@dataclass
class Topic:
    """A topic as a faulty version writes it, batch by batch, with the control records of its batches."""

    rows: list[list[Row]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    said: list[Finished] = field(default_factory=list)

    @classmethod
    def drawn(cls, random: Random) -> Topic:
        topic = cls()
        at_ms, watermark, batch, run = 1_000, 0, 0, 0
        while sum(map(len, topic.rows)) < ROWS:
            for _ in range(random.randrange(8)):
                at_ms += random.randrange(120)
                topic._write(random, at_ms, watermark)
            if random.random() < 0.9:
                written = {p: len(rows) for p, rows in enumerate(topic.rows) if rows or random.random() < 0.3}
                topic.said.append(Finished("q", str(run), batch, {}, watermark, written, at=len(topic.said)))
                run += random.random() < 0.1
            batch += 1
            watermark += random.choice((0, MINUTE_MS, MINUTE_MS, 2 * MINUTE_MS, -MINUTE_MS))
        return topic

    def _write(self, random: Random, at_ms: int, watermark: int) -> None:
        name = random.choice("abcdef")
        key = random.choice((name.encode(),) * 8 + (None, b"other"))
        partition = 0 if key is None else key_hash(key) % PARTITIONS
        if random.random() < 0.1:
            partition = random.randrange(PARTITIONS)
        start = watermark + random.choice((0, 0, 0, 1, -1, -2, -3)) * MINUTE_MS
        value = {
            "k": name,
            "seq": random.choice((at_ms, at_ms, at_ms, at_ms - 200)),
            "start": start + random.choice((0, 0, 0, 0, 1)),
            "end": start + random.choice((1,) * 8 + (2,)) * MINUTE_MS,
            "views": random.choice((1, 2, 3, 4.0, 2.5, None, "5")),
        }
        if random.random() < 0.1:
            del value["views"]
        at_ms -= random.randrange(50)
        self.rows[partition].append(Row(partition, len(self.rows[partition]), at_ms, key, value))


class Expected:
    """What a plain reading finds: by check the places of the violations, in the order of reading."""

    def __init__(self, topic: Topic, log: list[Row]) -> None:
        self._topic, self._log = topic, log
        judges: dict[str, Callable[[int], bool]] = {
            "once": self._second,
            "ascending": self._smaller,
            "placed": self._misplaced,
            "windows": self._window,
            "complete": self._incomplete,
            "closed": self._late,
        }
        self.places = {
            name: [(log[n].partition, log[n].offset) for n in range(len(log)) if judge(n)]
            for name, judge in judges.items()
        }
        self.places["watermark"] = list(self._back())

    def _before(self, n: int, *fields: str) -> Row | None:
        """The row of the same values of the fields that was read last before."""
        own = [self._log[n].value[name] for name in fields]
        alike = (row for row in reversed(self._log[:n]) if [row.value[name] for name in fields] == own)
        return next(alike, None)

    def _second(self, n: int) -> bool:
        before = self._before(n, "k", "start")
        return before is not None and abs(self._log[n].timestamp_ms - before.timestamp_ms) <= HORIZON_MS

    def _smaller(self, n: int) -> bool:
        row, before = self._log[n], self._before(n, "k")
        together = before is not None and before.partition == row.partition
        return together and before is not None and row.value["seq"] < before.value["seq"]

    def _misplaced(self, n: int) -> bool:
        row, before = self._log[n], self._before(n, "k")
        right = row.key is not None and key_hash(row.key) % PARTITIONS == row.partition
        return not right or (before is not None and before.partition != row.partition)

    def _window(self, n: int) -> bool:
        start, end = self._log[n].value["start"], self._log[n].value["end"]
        return end - start != MINUTE_MS or start % MINUTE_MS != 0

    def _incomplete(self, n: int) -> bool:
        return self._log[n].value.get("views") not in (1, 2, 3, 4.0)

    def _late(self, n: int) -> bool:
        row, counted = self._log[n], list(self._counted())
        return any(
            earlier.batch < last.batch
            and (last.written or {}).get(row.partition, 0) <= row.offset
            and (earlier.watermark_ms or 0) >= row.value["end"]
            for last in counted
            for earlier in counted
        )

    def _counted(self) -> list[Finished]:
        """The control records: none is of an earlier run here."""
        return self._topic.said

    def _back(self) -> list[tuple[int, int]]:
        said = self._topic.said
        pairs = pairwise(said)
        return [(0, now.at or 0) for one, now in pairs if (now.watermark_ms or 0) < (one.watermark_ms or 0)]


@dataclass
class Saved:
    read: list[int]
    heard: int
    log: int
    states: list[bytes]


class Reader:
    """A matcher that reads the topic in some order, saves at times, and falls at times."""

    def __init__(self, spec: str, topic: Topic, random: Random) -> None:
        self._spec, self._topic, self._random = loads(spec), topic, random
        self._codec = Codec(self._spec)
        self._facts = FactReader(self._spec, self._codec)
        self._read, self._heard, self.log = [0] * PARTITIONS, 0, list[Row]()
        self.comparison = self._begun()
        self._saved = Saved(list(self._read), 0, 0, [self._state(snapshot(self.comparison))])

    def _begun(self) -> Comparison:
        comparison = Comparison(rules_of(self._spec, self._codec))
        comparison.expect_partitions(SIDE, range(PARTITIONS))
        comparison.checks.expect(SIDE, PARTITIONS)
        return comparison

    def run(self) -> None:
        while self._unread() or self._heard < len(self._topic.said):
            act = self._random.choice(
                (self._take, self._take, self._take, self._hear, self._look, self._save)
            )
            act()
            if self._random.random() < 0.05:
                self._fall()
        self._look()

    def _unread(self) -> list[int]:
        return [p for p, rows in enumerate(self._topic.rows) if self._read[p] < len(rows)]

    def _take(self) -> None:
        if not (left := self._unread()):
            return
        partition = self._random.choice(left)
        first = self._read[partition]
        rows = self._topic.rows[partition][first : first + self._random.randint(1, 6)]
        records = [row.record for row in rows]
        forms, _ = self._codec.forms(records, SIDE)
        facts = self._facts.facts(records, [row.key for row in rows], forms, SIDE)
        columns = ([row.offset for row in rows], [row.timestamp_ms for row in rows])
        marks = [row.batch for row in rows] if self.comparison.tells_batches else None
        self.comparison.feed(SIDE, Run(forms, partition, *columns, 0.0, marks=marks, facts=facts))
        self._read[partition] += len(rows)
        self.log += rows

    def _hear(self) -> None:
        for fact in self._topic.said[self._heard : self._heard + self._random.randint(1, 4)]:
            self.comparison.note_finished(SIDE, fact)
            self._heard += 1

    def _look(self) -> None:
        self.comparison.checks.look(SIDE, dict(enumerate(self._read)), 0)

    def _save(self) -> None:
        states = self._saved.states
        if self._random.random() < 0.2:
            states = [self._state(snapshot(self.comparison))]
        elif self._random.random() < 0.5:
            states = [*states, self._state(delta(self.comparison))]
        else:
            states = [*states, self._state(delta(self.comparison)), *self._swept()]
        self._saved = Saved(list(self._read), self._heard, len(self.log), states)

    def _swept(self) -> list[bytes]:
        """Deltas that make all states before them unnecessary."""
        begin_sweep(self.comparison)
        parts = [self._state(delta(self.comparison, Sweep(8, first=True)))]
        while sweeping(self.comparison):
            parts.append(self._state(delta(self.comparison, Sweep(8, first=False))))
        return parts

    @staticmethod
    def _state(state: dict[str, Any]) -> bytes:
        return checkpoint.encode(state)

    def _fall(self) -> None:
        saved = self._saved
        first, *others = map(checkpoint.decode, saved.states)
        self.comparison = self._begun()
        restore(self.comparison, merged(first, others), self._codec.form_again, 0.0)
        self._read, self._heard = list(saved.read), saved.heard
        del self.log[saved.log :]

    def tally(self, name: str) -> Tally:
        names = [check.id for check in self._spec.all_checks]
        return self.comparison.checks.of(SIDE)[names.index(name)].tally


@given(seeds)
@examples(100)
def test_every_check_finds_what_a_plain_reading_finds(seed: int) -> None:
    random = Random(seed)
    topic = Topic.drawn(random)
    reader = Reader(SPEC, topic, random)
    reader.run()
    expected = Expected(topic, reader.log).places
    found = {name: reader.tally(name).violations for name in IDS}
    assert found == {name: len(places) for name, places in expected.items()}
    for name in IDS:
        first = [(one.partition, one.offset) for one in reader.tally(name).first]
        if name == "closed":  # It is told when the control records are heard.
            assert set(first) <= set(expected[name])
            assert len(first) == min(FIRST_KEPT, len(expected[name]))
        else:
            assert first == expected[name][:FIRST_KEPT]
        assert reader.tally(name).rows == (len(topic.said) if name == "watermark" else len(reader.log))


@given(seeds)
@examples(100)
def test_a_second_row_beyond_what_is_remembered_is_a_doubt_and_never_passed_over(seed: int) -> None:
    random = Random(seed)
    topic = Topic.drawn(random)
    reader = Reader(SMALL, topic, random)
    reader.run()
    tally, expected = reader.tally("once"), Expected(topic, reader.log).places["once"]
    assert tally.violations <= len(expected)
    assert tally.violations == len(expected) or tally.doubt is not None


# -- rows that replace each other --------------------------------------------------------------------------

UPDATES = """\
version: 1
name: test
reference: {topic: r}
candidate: {topic: c}
kinds: {night: {where: {night: true}}, row: {}}
emits: {upsert: {key: [k], settled_by: barrier, intermediate: {monotone: [v, w], final_after_settled: true}}}
order: {barrier: night, inner: unordered, copies: per_partition}
equality: {ignore: [seen]}
"""
TABLES = """\
version: 1
name: test
reference: {topic: r}
candidate: {topic: c}
emits: {complete: {key: [k], settled_by: input, intermediate: {monotone: [v]}}}
order: unordered
"""


def key_of(name: str) -> tuple[int, bytes]:
    """The partition and the Kafka key of a key."""
    return ord(name) % PARTITIONS, name.encode()


class Updates(Topic):
    """A topic in update mode: rows, deletions, and now and then a barrier in every partition."""

    @classmethod
    def drawn(cls, random: Random) -> Updates:
        topic = cls()
        for _ in range(2 * ROWS):
            partition, key = key_of(name := random.choice("abcd"))
            value = {"k": name, "v": random.randrange(3), "w": 1.0, "seen": random.random()}
            if random.random() < 0.1:
                topic._append(partition, key, {})
            elif random.random() < 0.15:
                for one in range(PARTITIONS):
                    topic._append(one, None, {"night": True})
            else:
                topic._append(partition, key, value)
        return topic

    def _append(self, partition: int, key: bytes | None, value: dict[str, Any]) -> None:
        self.rows[partition].append(Row(partition, len(self.rows[partition]), 0, key, value))


def smaller(before: list[Row], row: Row) -> bool:
    """Whether a row is smaller than the last one of its key, behind its last deletion."""
    own = [one for one in before if one.key == row.key]
    return bool(row.value and own and own[-1].value and row.value["v"] < own[-1].value["v"])


def unsettled(before: list[Row], row: Row) -> bool:
    """Whether a row changes what the last barrier of its partition has settled of its key."""
    table: dict[bytes | None, Any] = {}
    settled: dict[bytes | None, Any] = {}
    for one in before:
        if one.key is None:
            settled |= {key: value for key, value in table.items() if value is not None or key in settled}
        else:
            table[one.key] = one.value.get("v")
    return row.key in settled and settled[row.key] != row.value.get("v")


def never(_before: list[Row], _row: Row) -> bool:
    """Whether a row has a smaller `w`: they are all the same."""
    return False


@given(seeds)
@examples(100)
def test_intermediate_rows_that_get_smaller_and_changes_of_settled_keys_are_found(seed: int) -> None:
    random = Random(seed)
    topic = Updates.drawn(random)
    reader = Reader(UPDATES, topic, random)
    reader.run()
    names = {
        "monotone.v": smaller,
        "monotone.w": never,
        "final_after_settled": unsettled,
    }
    rows = [row for row in reader.log if row.key is not None]
    for name, violates in names.items():
        tally = reader.tally(f"intermediate.{name}")
        expected = [
            (row.partition, row.offset)
            for row in rows
            if violates(topic.rows[row.partition][: row.offset], row)
        ]
        assert (tally.violations, tally.doubt, tally.rows) == (len(expected), None, len(rows))
        assert [(one.partition, one.offset) for one in tally.first] == expected[:FIRST_KEPT]


class WholeTables(Topic):
    """A topic in complete mode, whose last batch is now and then written again."""

    @classmethod
    def drawn(cls, random: Random) -> WholeTables:
        topic, batch = cls(), 0
        while sum(map(len, topic.rows)) < ROWS:
            table = {name: random.randrange(4) for name in "abcd" if random.random() < 0.7}
            for _ in range(random.choice((1, 1, 1, 2))):
                for name, value in table.items():
                    partition, key = key_of(name)
                    place = (partition, len(topic.rows[partition]), 0, key)
                    topic.rows[partition].append(Row(*place, {"k": name, "v": value}, batch))
            batch += 1
        return topic


@given(seeds)
@examples(50)
def test_tables_in_which_a_key_gets_smaller_from_one_to_the_next_are_found(seed: int) -> None:
    random = Random(seed)
    topic = WholeTables.drawn(random)
    reader = Reader(TABLES, topic, random)
    reader.run()
    table = {(row.batch, row.key): row.value["v"] for rows in topic.rows for row in rows}
    expected = []
    seen = set()
    for row in reader.log:
        before = table.get((row.batch - 1, row.key))
        if (row.batch, row.key) not in seen and before is not None and row.value["v"] < before:
            expected.append((row.partition, row.offset))
        seen.add((row.batch, row.key))
    tally = reader.tally("intermediate.monotone.v")
    assert (tally.violations, tally.doubt, tally.rows) == (len(expected), None, len(reader.log))
    assert [(one.partition, one.offset) for one in tally.first] == expected[:FIRST_KEPT]
