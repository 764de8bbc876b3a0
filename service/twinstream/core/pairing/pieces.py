"""The data of pairing: two pieces of events, and the pairs among them (see `pairing`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twinstream.core.events import Letter, Side

ALIGNMENT_BUDGET = 200
"""The most differences an alignment searches: bounds one of 10,000 events to about a second."""


class Item(NamedTuple):
    """An event of a piece: its place there, its letter, and its route at this node of the order."""

    place: int
    letter: Letter
    route: Any


Items = Sequence[Item]
Related = Callable[[Side, int, Side, int], bool]
"""Whether two events of the pieces, each named by side and place, are dependent."""


Places = tuple[list[int], list[int]]
"""Places of events on either side."""


@dataclass
class Pairing:
    """The places of equal events on both sides, and of those without a partner, by side.

    `rest` are differences, `tail` are events that may still get a partner. `clean` counts the pairs behind
    the last difference, `epochs` the complete epochs there that are not empty.
    """

    pairs: list[tuple[int, int]] = field(default_factory=list)
    rest: Places = field(default_factory=lambda: ([], []))
    tail: Places = field(default_factory=lambda: ([], []))
    clean: int = 0
    epochs: int = 0

    @property
    def different(self) -> bool:
        """Whether there is a difference."""
        return any(self.rest)

    def include(self, part: Pairing) -> None:
        """Add a part that lies behind all earlier ones; the caller sets `clean`."""
        self.pairs += part.pairs
        for side in Side:
            self.rest[side].extend(part.rest[side])
            self.tail[side].extend(part.tail[side])


def count_behind(pairs: Iterable[tuple[int, int]], places: Sequence[Sequence[int]]) -> int:
    """The number of pairs behind all of these places of either side."""
    last = [max(of_side, default=-1) for of_side in places]
    return sum(1 for i, j in pairs if i > last[0] and j > last[1])
