"""The data of pairing: two pieces of events, and the pairs among them (see `pairing`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


@dataclass
class Pairing:
    """The places of equal events on both sides, and of those without a partner.

    `*_rest` are differences, `*_tail` are events that may still get a partner. `clean` counts the pairs
    behind the last difference, `epochs` the complete epochs there that are not empty.
    """

    pairs: list[tuple[int, int]] = field(default_factory=list)
    left_rest: list[int] = field(default_factory=list)
    right_rest: list[int] = field(default_factory=list)
    left_tail: list[int] = field(default_factory=list)
    right_tail: list[int] = field(default_factory=list)
    clean: int = 0
    epochs: int = 0

    @property
    def different(self) -> bool:
        """Whether there is a difference."""
        return bool(self.left_rest or self.right_rest)

    def include(self, part: Pairing) -> None:
        """Add a part that lies behind all earlier ones; the caller sets `clean`."""
        self.pairs += part.pairs
        self.left_rest += part.left_rest
        self.right_rest += part.right_rest
        self.left_tail += part.left_tail
        self.right_tail += part.right_tail
