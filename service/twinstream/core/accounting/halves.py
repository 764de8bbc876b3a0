"""Differences as they are booked, and the halves of those that may still be completed (see `unpaired`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twinstream.core.accounting.event_rows import EventReader, event_columns, pairs_of, rows_of
from twinstream.core.clocks.late import DroppedUnevenly
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import CONTENT, FORM, OFFSET, PARTITION, RECORD, TIMESTAMP_MS, Event, Side

REACH = 10_000
"""Offsets of its partition that an event may have moved beyond a scope to count as reordered."""


class Reach(NamedTuple):
    """The limits within which the other half of a leftover may come.

    `offsets` are by side and partition those up to which its scope was compared, `until_ms` is the latest
    time at which the other half may have been written.
    """

    offsets: tuple[Mapping[int, int], Mapping[int, int]]
    until_ms: float

    def includes(self, side: Side, event: Event) -> bool:
        """Whether an event of a side may be the other half."""
        end = self.offsets[side].get(event[PARTITION])
        return (end is None or event[OFFSET] <= end + REACH) and event[TIMESTAMP_MS] <= self.until_ms


class Divergence(NamedTuple):
    """A finding, numbered from 0 in the order of finding; -1 while it is provisional.

    `first` is the finding as it was first made: an event that was missing and turned up elsewhere is found
    again under its number, as an event that changed places. A tainted divergence lies behind a hole and
    decides nothing. `late` is the delay of its partner in seconds of Kafka time, if it came after all.
    `uneven` are the rows that the versions dropped as late, where that is its likely cause.
    """

    finding: Finding
    tainted: bool
    first: Finding
    number: int = -1
    late: float | None = None
    uneven: DroppedUnevenly | None = None


class Half(NamedTuple):
    """A leftover of one side as a difference, and the moment when it was proven.

    `reach` limits where its other half may come; None sets no limit.
    """

    divergence: Divergence
    moment: int
    reach: Reach | None = None

    @property
    def finding(self) -> Finding:
        """The leftover as it was found."""
        return self.divergence.finding

    def fits(self, other: Finding) -> bool:
        """Whether a leftover of the other side may be its other half."""
        return self.reach is None or self.reach.includes(other.side, other.event)

    def is_named_with(self, earlier: Half) -> bool:
        """Whether an earlier leftover of its identity is its other half: one of both is from a scope."""
        scoped = self.reach is not None or earlier.reach is not None
        return scoped and earlier.fits(self.finding) and self.fits(earlier.finding)


def tainted(half: Half) -> Half:
    """The half as one that decides nothing."""
    return half._replace(divergence=half.divergence._replace(tainted=True))


def weight(half: Half) -> int:
    """The bytes of the events that a leftover holds."""
    finding = half.finding
    held = (event for _, event in (*finding.events, *finding.witness) if event is not None)
    return sum(len(event[FORM][CONTENT]) + len(event[FORM][RECORD]) for event in held)


def state_of(halves: Sequence[Half]) -> dict[str, Any]:
    """Halves of one side as plain data."""
    return {
        **event_columns((half.finding.event for half in halves), timed=True),
        "witnesses": [event_columns(event for _, event in half.finding.witness) for half in halves],
        "kinds": [half.finding.kind for half in halves],
        "tainted": [half.divergence.tainted for half in halves],
        "numbers": [half.divergence.number for half in halves],
        "moments": [half.moment for half in halves],
        "reaches": [
            None if half.reach is None else [*map(pairs_of, half.reach.offsets), half.reach.until_ms]
            for half in halves
        ],
        "partners": [event_columns(filter(None, (half.finding.partner,))) for half in halves],
    }


def halves_of(side: Side, state: Mapping[str, Any], reader: EventReader) -> Iterator[Half]:
    """The halves of one side from their `state_of`."""
    names = ("witnesses", "kinds", "tainted", "numbers", "moments", "reaches", "partners")
    for event, row in zip(reader.events(state), rows_of(state, names), strict=True):
        witness, kind, tainted, number, moment, reach, partners = row
        proof = tuple(zip(Side, reader.events(witness), strict=False))
        partner = next(iter(reader.events(partners)), None)
        left, right = (event, partner) if side is Side.LEFT else (partner, event)
        finding = Finding(kind, left, right, proof)
        divergence = Divergence(finding, tainted, finding, number)
        yield Half(divergence, moment, None if reach is None else _reach_of(reach))


def _reach_of(state: Sequence[Any]) -> Reach:
    left, right, until_ms = state
    return Reach((dict(left), dict(right)), until_ms)
