"""The checks of one comparison: feeds their properties, counts what these find, and says what is certain.

Each side of a check has a tally. A violation counts if no hole of its side lies before it, and a look has
vouched for the input it was read from (see `accounting.proven`); any other is counted, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twinstream.core.accounts import Hole
from twinstream.core.arrivals.run import Run
from twinstream.core.checks import memory
from twinstream.core.checks.property import BARRIER, Declared, Finding, Lacking, Property, Row
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side, in_kafka

FIRST_KEPT = 5
"""Violations kept with their places, the first ones: all are counted."""


@dataclass
class Tally:
    """What was found of a check in one side.

    `rows` were judged, or control records; `violations` counts those that violate it, `first` are the first
    of them. `certain_at` is the moment of the first violation that counts, `doubt` the first row that could
    not be judged.
    """

    rows: int = 0
    violations: int = 0
    first: list[Finding] = field(default_factory=list)
    certain_at: int | None = None
    doubt: Finding | None = None

    def note(self, finding: Finding, certain_at: int | None) -> None:
        """Count a finding; `certain_at` is the moment from which it counts, None if it never does."""
        if finding.doubt:
            self.doubt = self.doubt or finding
            return
        self.violations += 1
        if len(self.first) < FIRST_KEPT:
            self.first.append(finding)
        if self.certain_at is None:
            self.certain_at = certain_at

    def state(self) -> list[Any]:
        """The tally as plain data."""
        doubt = None if self.doubt is None else list(self.doubt)
        return [self.rows, self.violations, list(map(list, self.first)), self.certain_at, doubt]

    @classmethod
    def of(cls, state: Sequence[Any]) -> Tally:
        """The tally of a state."""
        rows, violations, first, certain_at, doubt = state
        kept = [Finding(*one) for one in first]
        return cls(rows, violations, kept, certain_at, None if doubt is None else Finding(*doubt))


class Watched(NamedTuple):
    """One check at work on one side: `number` is its place in the file."""

    number: int
    tally: Tally
    judge: Property


class Checks:
    """The declared checks of both sides. `holes` are those that taint what is behind them, as they grow."""

    def __init__(self, declared: Sequence[Declared], holes: Sequence[Hole]) -> None:
        self._holes = holes
        self._sides = {
            side: [
                Watched(number, Tally(), check.made())
                for number, check in enumerate(declared)
                if side in check.sides
            ]
            for side in Side
        }

    def __bool__(self) -> bool:
        return any(self._sides.values())

    def of(self, side: Side) -> list[Watched]:
        """The checks that look at a side, in the order of the file."""
        return self._sides[side]

    def certain(self) -> frozenset[tuple[Side, int]]:
        """The sides and numbers of the checks that a violation counts against, once it is vouched for."""
        return frozenset(
            (side, watched.number)
            for side in Side
            for watched in self._sides[side]
            if watched.tally.certain_at is not None
        )

    # -- feeding -------------------------------------------------------------------------------------------

    def expect(self, side: Side, partitions: int) -> None:
        """Set the number of partitions of the topic of a side."""
        for watched in self._sides[side]:
            watched.judge.expect(partitions)
        self.expect_rows(side, partitions)

    def expect_rows(self, side: Side, partitions: int) -> None:
        """Set the number of partitions of a side that have rows, as far as is known."""
        for watched in self._sides[side]:
            watched.judge.expect_rows(partitions)

    def take(self, side: Side, run: Run, moment: int) -> None:
        """Judge the rows of a run, which have `facts`; `moment` is that of the driver.

        A fact is None if the check is not about the row. Complexity: O(1) a row and check, about 0.5 µs.
        """
        if run.facts is None:
            return
        certain_at = None if self._tainted(side) else moment
        marks = run.marks or [None] * len(run.facts)
        for watched in self._sides[side]:
            tally, judge = watched.tally, watched.judge
            for place, facts in enumerate(run.facts):
                fact = facts[watched.number]
                if fact is None:
                    continue
                tally.rows += fact is not BARRIER
                offset = in_kafka(run.offsets[place])
                row = Row(run.partition, offset, run.timestamps_ms[place], fact, marks[place])
                finding = _lacking(row) if isinstance(fact, Lacking) else judge.take(row)
                if finding is not None:
                    tally.note(finding, certain_at)

    def hear(self, side: Side, fact: Finished, moment: int) -> None:
        """Judge a control record of a side."""
        for watched in self._sides[side]:
            watched.tally.rows += watched.judge.of_records and fact.written is not None
            self._note(side, watched, watched.judge.hear(fact), moment)

    def hear_earlier(self, side: Side, fact: Finished) -> None:
        """Note a control record from before the start, by which later ones are judged."""
        for watched in self._sides[side]:
            for _ in watched.judge.hear(fact):
                pass

    def look(self, side: Side, positions: Mapping[int, int], moment: int) -> None:
        """Judge the rows that waited for control records; all rows below these offsets were taken."""
        for watched in self._sides[side]:
            self._note(side, watched, watched.judge.look(positions), moment)

    def _note(self, side: Side, watched: Watched, findings: Iterable[Finding], moment: int) -> None:
        certain_at = None if self._tainted(side) else moment
        for finding in findings:
            watched.tally.note(finding, certain_at)

    def _tainted(self, side: Side) -> bool:
        return next(self.holes(side), None) is not None

    def holes(self, side: Side) -> Iterator[Hole]:
        """The holes of the input of a side, behind which no violation counts."""
        return (hole for hole in self._holes if hole.side is None or hole.side is side)

    def disown(self, vouched_at: int) -> None:
        """Let no violation count that was found behind a moment: its input may be of another topic."""
        for watched in (*self._sides[Side.LEFT], *self._sides[Side.RIGHT]):
            certain_at = watched.tally.certain_at
            if certain_at is not None and certain_at > vouched_at:
                watched.tally.certain_at = None

    # -- state ---------------------------------------------------------------------------------------------

    def state(self, *, whole: bool) -> list[list[Any]]:
        """The state as plain data, by side and check; see `Property.state`."""
        return [
            [[watched.tally.state(), watched.judge.state(whole=whole)] for watched in self._sides[side]]
            for side in Side
        ]

    def restore(self, state: Sequence[Sequence[Sequence[Any]]]) -> None:
        """Take over a whole state."""
        for side, rows in zip(Side, state, strict=True):
            for place, (tally, own) in enumerate(rows):
                watched = self._sides[side][place]
                watched.judge.restore(own)
                self._sides[side][place] = watched._replace(tally=Tally.of(tally))


def _lacking(row: Row) -> Finding:
    return Finding(row.partition, row.offset, row.fact.reason, doubt=True)


def merged(states: Sequence[Sequence[Sequence[Sequence[Any]]]]) -> list[list[list[Any]]]:
    """Several states of `Checks`, the first of them whole, as one whole state."""
    found = []
    for side, last in enumerate(states[-1]):
        found.append([[tally, {**own}] for tally, own in last])
        for place, (_, own) in enumerate(found[side]):
            if "memory" in own:
                own["memory"] = memory.merged([state[side][place][1]["memory"] for state in states])
    return found
