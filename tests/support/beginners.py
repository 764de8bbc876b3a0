"""Two versions that began at different places of their input, as one seed has it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from loadtest.memory import MemorySource
from tests.support.saying import TOPICS, VERSIONS, control_record
from tests.support.workers import Bench
from twinstream.core.events import Side
from twinstream.spec.decode.headers import input_header

LEFT, RIGHT = Side
INPUTS, LENGTH, OUTPUTS = 3, 60, 2
SPEC = (
    VERSIONS
    + """\
control: said
order: unordered
show: [p, n]
evidence: {matched: 1, seconds: 0}
start: {at: input}
overdue: {clock: input}
"""
)
Vector = dict[int, int]
Lost = frozenset[tuple[int, int]]


@dataclass
class Version:
    """One version: it consumes the input from `first` on in batches of any size, and makes rows of it."""

    rng: random.Random
    source: MemorySource
    side: Side
    first: Vector
    tells: bool
    lost: Lost = frozenset()
    consumed: Vector = field(init=False)
    batch: int = 0
    ends: list[Vector] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.consumed = dict(self.first)

    @property
    def done(self) -> bool:
        return all(offset == LENGTH for offset in self.consumed.values())

    def work(self) -> None:
        """One batch: rows in any order over the partitions of the output, then the control record."""
        before = dict(self.consumed)
        for place in self.consumed:
            self.consumed[place] = min(LENGTH, before[place] + self.rng.randrange(15))
        rows = [(place, n) for place in before for n in range(before[place], self.consumed[place])]
        for place, n in self.rng.sample(rows, len(rows)):
            if (place, n) not in self.lost:
                header = input_header("in", place, n)
                record = orjson.dumps({"p": place, "n": n})
                self.source.append(self.side, self.rng.randrange(OUTPUTS), record, 0, [header])
        written = {TOPICS[self.side]: self.source.ends()[self.side]}
        more = {"consumed_from": {"in": before}} if self.tells else {}
        consumed = {"in": dict(self.consumed)}
        self.source.say(
            control_record("12"[self.side], self.batch, consumed, written, rows=len(rows), **more)
        )
        self.batch += 1
        self.ends.append(dict(self.consumed))


@dataclass
class World:
    """Two versions in one seed: who began where, who works when, what of the input makes no row."""

    seed: int
    tells: bool
    losing: bool

    def __post_init__(self) -> None:
        rng = self.rng = random.Random(self.seed)
        self.source = MemorySource(partitions=OUTPUTS, batch=rng.choice([30, 1000]))
        lost = frozenset((rng.randrange(INPUTS), rng.randrange(LENGTH)) for _ in range(4))
        firsts = [{place: rng.randrange(40) for place in range(INPUTS)} for _ in Side]
        self.versions = [
            Version(
                random.Random(rng.random()),
                self.source,
                side,
                firsts[side],
                self.tells,
                lost if self.losing and side is RIGHT else frozenset(),
            )
            for side in Side
        ]

    def cut(self) -> Vector:
        """The start by its definition; as far as it is told, if batches do not tell where they began."""
        firsts = [one.first if self.tells else one.ends[0] for one in self.versions]
        return {place: max(first[place] for first in firsts) for place in range(INPUTS)}

    def steps(self) -> Iterator[None]:
        """Batches of both versions in any order; then the world stands still."""
        while working := [one for one in self.versions if not one.done]:
            for one in working:
                if self.rng.random() < 0.5:
                    one.work()
            yield

    def found(self, bench: Bench) -> set[tuple[int, int]]:
        rows = [report.reference or report.candidate for report in bench.reports().values()]
        return {(row["p"], row["n"]) for row in rows if row is not None}
