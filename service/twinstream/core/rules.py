"""What the comparison file fixes for matching, compiled: the dependence, the equality, and the bounds."""

from __future__ import annotations

from dataclasses import dataclass

from twinstream.core.event_time import EventTime
from twinstream.core.events import (
    Canonical,
    CanonicalForm,
    Close,
    Event,
    Exact,
    Exactly,
    Letter,
    Near,
    alike,
)
from twinstream.core.findings import Identity
from twinstream.core.known import KnownDifference
from twinstream.core.orders import Epochs, Order, dependent
from twinstream.core.passing import Input


@dataclass(frozen=True)
class Rules:
    """The rules of one comparison.

    `order` is the dependence. `canonical` maps contents to canonical form; where `close` is given, two
    records of one canonical form are equal only if it says so, and `exact` maps contents to what they are
    without a tolerance; else that is the canonical form. `identity` maps a record to the thing it is
    about. `passing` is the clock that says how far each side has come, None for Kafka's timestamps; `proves`
    tells whether the clock proves anything. Limits are in events but for `unmatched_bytes`. `replay_horizon`
    is in batches; without it every copy is an event. `hears`: the versions say themselves what they have
    finished. `co_partitioned`: equal events stand in partitions of one number, as the file asserts.
    `duplicate_horizon` is given where a known difference names `duplicate`: how many offsets of its
    partition a copy may stand behind an equal event (see `repeats`).
    """

    canonical: Canonical
    order: Order
    close: Close | None = None
    exact: Exactly | None = None
    identity: Identity | None = None
    known: tuple[KnownDifference, ...] = ()
    halt: bool = False
    proves: bool = False
    overdue_after_ms: int = 60_000
    passing: EventTime | Input | None = None
    unmatched_limit: int = 5_000_000
    unmatched_bytes: int = 2 << 30
    scope_limit: int = 10_000
    recent_matches: int = 100_000
    duplicate_horizon: int | None = None
    replay_horizon: int | None = None
    hears: bool = False
    co_partitioned: bool = False

    @property
    def copied(self) -> bool:
        """Whether barriers have a copy in each partition."""
        return isinstance(self.order, Epochs) and self.order.copies

    def form(self, event: Event) -> CanonicalForm:
        """The canonical form of an event."""
        return self.canonical(event[0][1])

    def letter(self, event: Event) -> Letter:
        """What is equal for equal events, and for no others."""
        form = self.form(event)
        return Exact(form) if self.close is None else Near(form, event, self.close, self.exactly)

    def exactly(self, content: bytes) -> Exact:
        """What contents have in common that are equal without a tolerance."""
        return Exact(self.canonical(content)) if self.exact is None else self.exact(content)

    def equal(self, one: Event, another: Event) -> bool:
        """Whether two events may match. Events whose contents are the same always may."""
        if one[0][1] == another[0][1]:
            return True
        if not alike(self.form(one), self.form(another)):
            return False
        return self.close is None or self.close(one[0][3], another[0][3])

    def dependent(self, one: Event, another: Event) -> bool:
        """Whether two events may not change places."""
        return dependent(self.order, one[0], another[0])
