"""A look at everything that waits: what is overdue, what is oldest, what it weighs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from twinstream.core.events import Event, Side
from twinstream.core.overdue import Stalls


@dataclass
class Survey:
    """What one look at everything unmatched found.

    `first_open` is the smallest unmatched offset by side and partition, `oldest_ms` the smallest timestamp of
    an unmatched event, `suspicions` the number of overdue events that are not proven to have no partner,
    `held_bytes` the size of the records that wait, by side.
    """

    first_open: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    oldest_ms: int | None = None
    suspicions: int = 0
    held_bytes: list[int] = field(default_factory=lambda: [0, 0])

    def note(self, side: Side, event: Event) -> None:
        """Count one unmatched event."""
        first = self.first_open[side]
        if event[2] < first.get(event[1], event[2] + 1):
            first[event[1]] = event[2]
        if self.oldest_ms is None or event[3] < self.oldest_ms:
            self.oldest_ms = event[3]
        self.held_bytes[side] += len(event[0][3])


@dataclass(frozen=True)
class Judge:
    """Tells which unmatched events of one side are overdue.

    `limit_ms` is the age from which one is; `proven_before_ms` the arrival before which being overdue proves
    that no partner comes (None: it never does).
    """

    stalls: Stalls
    limit_ms: int
    proven_before_ms: int | None

    def overdue(self, waiting: Iterable[tuple[Event, int]], survey: Survey) -> list[Event]:
        """The events that are proven to have no partner; those only suspected are counted in `survey`.

        Copies of a form that has not been unmatched-free for long are suspected, too: a lost one could hide
        behind fresh ones.
        """
        proven = []
        for event, since_ms in waiting:
            if self.stalls.age_ms(event[3]) >= self.limit_ms:
                if self.proven_before_ms is not None and event[3] <= self.proven_before_ms:
                    proven.append(event)
                else:
                    survey.suspicions += 1
            elif since_ms < event[3] and type(event[0][0]) is bytes and self._long_waiting(since_ms):
                survey.suspicions += 1
        return proven

    def _long_waiting(self, since_ms: int) -> bool:
        return self.stalls.age_ms(since_ms) >= self.limit_ms
