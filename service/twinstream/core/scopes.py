"""After a difference: set aside, meet again, compare, go on.

When step 2 of matching proves a difference in a lane, the lane is set aside as a `Scope`: its events of both
sides are collected and take no part in matching, all other lanes go on. The two collected pieces are
aligned, and what is in no pair is the difference:

- an event left over on both sides has changed places (`reordered`): alignment leaves the fewest such events;
- two leftovers with one identity are one event that `changed`;
- a leftover of the left only is `missing`, of the right only `extra`, or `duplicate` when it is a surplus
  copy of an event that matched.

The scope closes where the sides *meet again*: at a run of `MEETING_RUN` equal events, or at the end of both.
What lies behind is fed to matching again. Until it closes its explanation is provisional.

Source: DiffStream stops at the first difference (section 4.2); going on is ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

from twinstream.core.alignment import Alignment, align
from twinstream.core.events import Canonical, Event, Side

MEETING_RUN = 16
"""Equal events in a row after which two pieces have met again: long enough that chance does not make it."""

ALIGNMENT_BUDGET = 200
"""Differences looked for in one scope: bounds an alignment of 10,000 events to about a second."""

Kind = Literal["missing", "extra", "changed", "reordered", "duplicate"]
Identity = Callable[[bytes], Hashable]
Recent = Callable[[bytes], bool]


class Finding(NamedTuple):
    """One difference: its kind, its event on either side, and the events that prove it."""

    kind: Kind
    left: Event | None
    right: Event | None
    witness: tuple[tuple[Side, Event], ...]


class Explanation(NamedTuple):
    """What two pieces have in common and where they differ.

    `matched` are the pairs of equal events. The pieces are explained up to `left_end` and `right_end`. `met`
    tells that they end in a run of equal events.
    """

    findings: list[Finding]
    matched: list[tuple[Event, Event]]
    left_end: int
    right_end: int
    met: bool


class Scope:
    """A lane that is set aside: the two pieces collected so far, and their explanation.

    `tainted` tells that it was opened behind a hole. A `lost` scope outgrew its limit: it collects nothing
    any more, and its events stay unmatched. `example` is the record of one event of the lane.
    """

    def __init__(self, lane: Hashable, canonical: Canonical, *, tainted: bool) -> None:
        self.lane = lane
        self.tainted = tainted
        self.pieces: tuple[list[Event], list[Event]] = ([], [])
        self.lost = False
        self.example = b""
        self.findings: list[Finding] = []
        self._canonical = canonical
        self._contents: tuple[list[bytes], list[bytes]] = ([], [])
        self._explained_at = 0

    def __len__(self) -> int:
        return len(self.pieces[0]) + len(self.pieces[1])

    def add(self, side: Side, event: Event) -> None:
        """Collect one more event of the lane."""
        if not self.lost:
            self.pieces[side].append(event)
            self.example = event[0][3]

    def lose(self) -> None:
        """Give up: drop the pieces, keep the explanation found so far."""
        self.lost = True
        self.pieces = ([], [])
        self._contents = ([], [])

    def due(self) -> bool:
        """Whether enough has come since the last explanation to make another one worth its cost.

        Small scopes are explained whenever they grew, large ones after a growth by an eighth, so that the
        work stays proportional to the events.
        """
        grown = len(self) - self._explained_at
        return grown > 0 and grown * 8 >= len(self) - 512

    def explain(self, *, ended: bool, identity: Identity | None, recent: Recent) -> Explanation:
        """Align the pieces and name the differences.

        `ended`: no more will come, so the tails are differences, too. `recent` tells whether a content
        matched lately.
        """
        self._explained_at = len(self)
        left, right = (self._contents_of(side) for side in Side)
        alignment = align(left, right, ALIGNMENT_BUDGET, whole=ended)
        naming = _Naming(self.pieces, (left, right), alignment, recent)
        self.findings = naming.findings(identity)
        matched = [(self.pieces[Side.LEFT][i], self.pieces[Side.RIGHT][j]) for i, j in alignment.pairs]
        return Explanation(self.findings, matched, alignment.left_end, alignment.right_end, _meets(alignment))

    def tails(self, explanation: Explanation) -> tuple[list[Event], list[Event]]:
        """What lies behind the explained part, by side."""
        return self.pieces[0][explanation.left_end :], self.pieces[1][explanation.right_end :]

    def _contents_of(self, side: Side) -> list[bytes]:
        contents = self._contents[side]
        contents.extend(self._canonical(event[0][1]) for event in self.pieces[side][len(contents) :])
        return contents


def _meets(alignment: Alignment) -> bool:
    """Whether the explained pieces end in a run of equal events that is long enough."""
    run = alignment.pairs[-MEETING_RUN:]
    if len(run) < MEETING_RUN:
        return False
    at_end = run[-1] == (alignment.left_end - 1, alignment.right_end - 1)
    return at_end and run[-1][0] - run[0][0] == run[-1][1] - run[0][1] == MEETING_RUN - 1


class _Naming:
    """Gives each leftover of an alignment its kind and witness."""

    def __init__(
        self,
        pieces: tuple[Sequence[Event], Sequence[Event]],
        contents: tuple[Sequence[bytes], Sequence[bytes]],
        alignment: Alignment,
        recent: Recent,
    ) -> None:
        self._left, self._right = pieces
        self._contents = contents
        self._pairs = alignment.pairs
        self._recent = recent
        self._copies = {contents[1][r] for _, r in alignment.pairs}
        self._leftover_left = _gaps((left for left, _ in alignment.pairs), alignment.left_end)
        self._leftover_right = _gaps((right for _, right in alignment.pairs), alignment.right_end)

    def findings(self, identity: Identity | None) -> list[Finding]:
        moved = self._partners(lambda side, index: self._contents[side][index])
        found = [((left, right), self._finding("reordered", left, right)) for left, right in moved]
        if identity is not None:
            record = (self._left, self._right)
            changed = self._partners(lambda side, index: identity(record[side][index][0][3]))
            found += [((left, right), self._finding("changed", left, right)) for left, right in changed]
        found += [((left, left), self._finding("missing", left, None)) for left in self._leftover_left]
        found += [
            ((right, right), self._finding(self._surplus(right), None, right))
            for right in self._leftover_right
        ]
        return [finding for _, finding in sorted(found, key=lambda entry: entry[0])]

    def _partners(self, key: Callable[[Side, int], Hashable]) -> list[tuple[int, int]]:
        """Pair leftovers of both sides that have one key, oldest first; they are no leftovers any more."""
        waiting: dict[Hashable, deque[int]] = {}
        for index in self._leftover_left:
            waiting.setdefault(key(Side.LEFT, index), deque()).append(index)
        partners = [
            (queue.popleft(), index)
            for index in self._leftover_right
            if (queue := waiting.get(key(Side.RIGHT, index)))
        ]
        paired_left, paired_right = {left for left, _ in partners}, {right for _, right in partners}
        self._leftover_left = [index for index in self._leftover_left if index not in paired_left]
        self._leftover_right = [index for index in self._leftover_right if index not in paired_right]
        return partners

    def _surplus(self, right: int) -> Kind:
        content = self._contents[Side.RIGHT][right]
        if content in self._copies or self._recent(self._right[right][0][1]):
            return "duplicate"
        return "extra"

    def _finding(self, kind: Kind, left: int | None, right: int | None) -> Finding:
        here = None if left is None else self._left[left]
        there = None if right is None else self._right[right]
        return Finding(kind, here, there, self._witness(left, right))

    def _witness(self, left: int | None, right: int | None) -> tuple[tuple[Side, Event], ...]:
        """The pair whose order to the leftover proves the difference; none where only the end proves it."""
        for other_left, other_right in self._pairs:
            if left is not None and right is not None:
                proves = (other_left < left) != (other_right < right)
            else:
                proves = other_left > left if left is not None else other_right > (right or 0)
            if proves:
                return (Side.LEFT, self._left[other_left]), (Side.RIGHT, self._right[other_right])
        return ()


def _gaps(taken: Iterable[int], end: int) -> list[int]:
    """The positions below `end` that are not taken."""
    return sorted(set(range(end)).difference(taken))


def explain_partnerless(
    left: Sequence[Event], right: Sequence[Event], identity: Identity | None, recent: Recent
) -> list[Finding]:
    """Name events that are proven to have no partner; no two of them are equal, nor in an order."""
    contents = ([event[0][1] for event in left], [event[0][1] for event in right])
    nothing = Alignment([], len(left), len(right), exhausted=False)
    return _Naming((left, right), contents, nothing, recent).findings(identity)
