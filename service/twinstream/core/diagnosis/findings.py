"""Names each difference (missing, extra, changed, reordered, duplicate) and finds the events that prove it.

- an event left over on both sides has changed places with one that depends on it (`reordered`): pairing
  leaves the fewest such events it can find;
- two leftovers that are alike, but further apart than their tolerance, are one event that `changed`, and so
  are two with one identity, wherever they are;
- an event left over only on the left is `missing`, only on the right `extra`, or `duplicate` if it is a
  surplus copy of another event;
- two tables differ by what they hold of a key, whichever row is new (see `tables.judging`).

The *witness* is the pair of equal events whose order relative to the leftover proves the difference.
"""

from __future__ import annotations

from bisect import bisect
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from math import inf
from typing import Literal, NamedTuple

from twinstream.core.events import Event, Exact, Letter, Near, Side
from twinstream.core.pairing.pieces import Pairing
from twinstream.core.relation import IdentityOf

Kind = Literal["missing", "extra", "changed", "reordered", "duplicate"]
KINDS: tuple[Kind, ...] = ("missing", "extra", "changed", "reordered", "duplicate")
KINDS_OF: tuple[tuple[Kind, ...], tuple[Kind, ...]] = (
    ("missing", "changed", "reordered"),
    ("extra", "changed", "reordered", "duplicate"),
)
"""The kinds of the differences in which an event of each side may be."""
Recent = Callable[[Event, Sequence[Event]], bool]
"""Whether a surplus event is a copy; the given events are paired ones that equal it exactly."""
AreDependent = Callable[[Event, Event], bool]
Witness = tuple[tuple[Side, Event], ...]
Letters = tuple[Sequence[Letter], Sequence[Letter]]
"""The letters of the events of both sides."""

WITNESS_SEARCH = 20_000
"""Pairs searched for a witness: it is nearly always among the first."""


class Finding(NamedTuple):
    """One difference: its kind, its event on either side, and the events that prove it."""

    kind: Kind
    left: Event | None
    right: Event | None
    witness: Witness

    @property
    def events(self) -> tuple[tuple[Side, Event | None], tuple[Side, Event | None]]:
        """Its event on each side."""
        return (Side.LEFT, self.left), (Side.RIGHT, self.right)

    @property
    def side(self) -> Side:
        """The side of `event`."""
        return Side.RIGHT if self.left is None else Side.LEFT

    @property
    def event(self) -> Event:
        """The left event if there is one, else the right one."""
        event = self.left or self.right
        assert event is not None, "a finding has an event on at least one side"
        return event

    @property
    def is_whole(self) -> bool:
        """Whether it has each event that its kind is about.

        Else it is a difference of tables, and lacks a row that one of them has held for longer.
        """
        if self.kind == "missing":
            return self.left is not None
        if self.kind in ("extra", "duplicate"):
            return self.right is not None
        return self.left is not None and self.right is not None

    @property
    def partner(self) -> Event | None:
        """The right event of a finding with events on both sides, else None."""
        return None if self.left is None else self.right


def explain_partnerless(
    left: Sequence[Event],
    right: Sequence[Event],
    letter: Callable[[Event], Letter],
    identity: IdentityOf | None,
    recent: Recent,
) -> list[Finding]:
    """Name events that are proven to have no partner; no two of them are equal."""
    letters = list(map(letter, left)), list(map(letter, right))
    alone = Pairing(rest=(list(range(len(left))), list(range(len(right)))))
    return Naming((left, right), letters, alone, lambda *_: False).findings(identity, recent)


class Naming:
    """Names the differences of two paired pieces."""

    def __init__(
        self,
        pieces: tuple[Sequence[Event], Sequence[Event]],
        letters: Letters,
        pairing: Pairing,
        dependent: AreDependent,
    ) -> None:
        self._pieces, self._letters, self._dependent = pieces, letters, dependent
        self._pairs = pairing.pairs
        self._paired: dict[Exact, list[Event]] = {}
        self._left, self._right = map(sorted, pairing.rest)

    def findings(self, identity: IdentityOf | None, recent: Recent) -> list[Finding]:
        """The differences in the order of their events; `recent` decides whether an event is a copy."""
        moved = self._partners(lambda side, place: self._letters[side][place])
        found = [((i, j), self._finding("reordered", i, j)) for i, j in moved]
        changed = self._alike()
        if identity is not None:
            changed += self._partners(lambda side, place: identity(self._pieces[side][place][0][3]))
        found += [((i, j), self._finding("changed", i, j)) for i, j in changed]
        found += [((i, i), self._finding("missing", i, None)) for i in self._left]
        self._note_originals()
        found += [((j, j), self._finding(self._surplus(j, recent), None, j)) for j in self._right]
        return [finding for _, finding in sorted(found, key=lambda entry: entry[0])]

    def _alike(self) -> list[tuple[int, int]]:
        """Pair leftovers that are alike but not equal, those between the same pairs first."""
        if not (self._left and self._right and isinstance(self._letters[0][self._left[0]], Near)):
            return []
        places = [sorted(pair[side] for pair in self._pairs) for side in Side]

        def form(side: Side, place: int) -> bytes:
            return _form(self._letters[side][place])

        between = self._partners(lambda side, place: (form(side, place), bisect(places[side], place)))
        return between + self._partners(form)

    def _partners(self, key: Callable[[Side, int], Hashable]) -> list[tuple[int, int]]:
        """Pair leftovers of both sides by key, oldest first; they are leftovers no more."""
        waiting: dict[Hashable, deque[int]] = {}
        for place in self._left:
            waiting.setdefault(key(Side.LEFT, place), deque()).append(place)
        partners = [
            (queue.popleft(), place)
            for place in self._right
            if (queue := waiting.get(key(Side.RIGHT, place)))
        ]
        paired_left, paired_right = {i for i, _ in partners}, {j for _, j in partners}
        self._left = [place for place in self._left if place not in paired_left]
        self._right = [place for place in self._right if place not in paired_right]
        return partners

    def _note_originals(self) -> None:
        """Find the paired events that a leftover may be a copy of."""
        letters = self._letters[Side.RIGHT]
        forms = {_form(letters[place]) for place in self._right}
        for _, j in self._pairs if forms else ():
            if _form(letters[j]) in forms:
                self._paired.setdefault(_exact(letters[j]), []).append(self._pieces[Side.RIGHT][j])

    def _surplus(self, place: int, recent: Recent) -> Kind:
        paired = self._paired.get(_exact(self._letters[Side.RIGHT][place]), ())
        return "duplicate" if recent(self._pieces[Side.RIGHT][place], paired) else "extra"

    def _finding(self, kind: Kind, left: int | None, right: int | None) -> Finding:
        """The finding about events at these places, with the pair whose order to them proves it.

        That pair stands behind a leftover, or between its two places; where only an end proves the
        difference, there is none.
        """
        here = None if left is None else self._pieces[Side.LEFT][left]
        there = None if right is None else self._pieces[Side.RIGHT][right]
        finding = Finding(kind, here, there, ())
        places = [inf if place is None else place for place in (left, right)]
        proving = ((i, j) for i, j in self._pairs if (i > places[0]) != (j > places[1]))
        for i, j in islice(proving, WITNESS_SEARCH):
            pair = self._pieces[Side.LEFT][i], self._pieces[Side.RIGHT][j]
            if self._dependent(finding.event, pair[finding.side]):
                return finding._replace(witness=((Side.LEFT, pair[0]), (Side.RIGHT, pair[1])))
        return finding


def _form(letter: Letter) -> bytes:
    """The canonical form of a letter, which alike letters share."""
    return letter.form if isinstance(letter, Near) else letter


def _exact(letter: Letter) -> Exact:
    """The exact form of a letter, which letters share that are equal without a tolerance."""
    return letter.exact if isinstance(letter, Near) else letter
