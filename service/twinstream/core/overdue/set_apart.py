"""Set apart: the unmatched events that no clock judges one by one.

They take no part in matching, since they are in a scope, or wait for another partition of their side, or for
later rows of their key; or they are about to be set aside with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinstream.core.arrivals.barrier_copies import Copies
from twinstream.core.diagnosis.scope import Scope
from twinstream.core.events import Event, Side
from twinstream.core.matching.index import Index


@dataclass(frozen=True)
class SetApart:
    """The events set apart in the parts of one comparison.

    `copies` by side, where barriers have any; `rows` by side, where rows wait for later ones of their key.
    """

    index: Index
    scopes: Mapping[Scope, None]
    copies: tuple[Copies, ...]
    rows: Sequence[Iterable[Event]] = ()

    def of(self, side: Side) -> Iterator[Event]:
        """The events of a side that are set apart. Complexity: O(n) in them."""
        for scope in self.scopes:
            yield from scope.pieces[side]
        yield from self.index.gathered(side)
        if self.copies:
            yield from self.copies[side]
        if self.rows:
            yield from self.rows[side]

    def ids(self, side: Side) -> set[int]:
        """The object ids of these events."""
        return set(map(id, self.of(side)))
