"""Differences as they are booked, and the halves of those that may be completed yet (see `unpaired`)."""

from __future__ import annotations

from typing import NamedTuple

from twinstream.core.accounting.unpaired import Reach
from twinstream.core.diagnosis.findings import Finding


class Divergence(NamedTuple):
    """A finding, numbered from 0 in the order in which they were found; -1 while it is provisional.

    `first` is how it was found at first: an event that was missing and turned up elsewhere is found again
    under its number, as an event that changed places. A tainted one lies behind a hole and decides nothing.
    `late` is by how many seconds of Kafka time its partner came later, if it came after all.
    """

    finding: Finding
    tainted: bool
    first: Finding
    number: int = -1
    late: float | None = None


class Half(NamedTuple):
    """A leftover of one side as a difference, and the moment when it was proven.

    `reach` is up to where its other half may come; that may be anywhere where it is not given.
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


def tainted(half: Half) -> Half:
    """The half as one that decides nothing."""
    return half._replace(divergence=half.divergence._replace(tainted=True))


def weight(half: Half) -> int:
    """The bytes of the events that a leftover holds."""
    finding = half.finding
    held = (event for _, event in (*finding.events, *finding.witness) if event is not None)
    return sum(len(event[0][1]) + len(event[0][3]) for event in held)
