"""The relation between the events of a comparison: canonical form, equality, dependence and identity."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from twinstream.core.events import (
    CONTENT,
    FORM,
    RECORD,
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
from twinstream.core.order import Epochs, Order, dependent

IdentityOf = Callable[[bytes], Hashable]
"""Maps a record to the identity of its event: the thing that it is about."""


@dataclass(frozen=True)
class Relation:
    """How the events of one comparison relate to each other.

    `order` is the dependence. `canonical` maps contents to canonical form. Where a tolerance is declared,
    two records of one canonical form are equal only if `close` says so, and `exact` maps contents to their
    exact form; without one the exact form is the canonical form.
    """

    canonical: Canonical
    order: Order
    close: Close | None = None
    exact: Exactly | None = None
    identity: IdentityOf | None = None

    @property
    def copied(self) -> bool:
        """Whether barriers have a copy in each partition."""
        return isinstance(self.order, Epochs) and self.order.copies

    def form(self, event: Event) -> CanonicalForm:
        """The canonical form of an event."""
        return self.canonical(event[FORM][CONTENT])

    def letter(self, event: Event) -> Letter:
        """The letter of an event: equal for equal events, and for no others."""
        form = self.form(event)
        return Exact(form) if self.close is None else Near(form, event, self.close, self.exactly)

    def exactly(self, content: bytes) -> Exact:
        """The exact form of a content: the same for contents that are equal without a tolerance."""
        return Exact(self.canonical(content)) if self.exact is None else self.exact(content)

    def equal(self, one: Event, another: Event) -> bool:
        """Whether two events may match. Events whose contents are the same always may."""
        if one[FORM][CONTENT] == another[FORM][CONTENT]:
            return True
        if not alike(self.form(one), self.form(another)):
            return False
        return self.close is None or self.close(one[FORM][RECORD], another[FORM][RECORD])

    def dependent(self, one: Event, another: Event) -> bool:
        """Whether two events may not change places."""
        return dependent(self.order, one[FORM], another[FORM])
