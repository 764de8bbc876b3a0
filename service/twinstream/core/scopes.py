"""After a difference: set aside, meet again, compare, go on.

When step 2 of matching proves a difference, the part of the order that it touches is set aside as a `Scope`:
a lane, the open epoch, else a whole node. Its events of both sides are collected and take no part in
matching, everything else goes on. The two collected pieces are paired under their order (see `pairing`), and
what is in no pair is the difference (see `findings`).

The scope closes where the sides *meet again*: behind the last difference after a run of `MEETING_RUN` equal
events or after an equal epoch, at the barrier behind its own epoch, or at the end of both. What it did not
settle is fed to matching again. Until it closes its explanation is provisional.

A scope that outgrows its limit is *lost*. What it has found by then is booked, as when it closes: it is what
stands for the verdict. All else that it has and gets is only counted, and stays unmatched for good.

Source: DiffStream stops at the first difference (section 4.2); going on is ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from twinstream.core.events import Canonical, Event, Side
from twinstream.core.findings import Dependent, Finding, Identity, Recent, name_findings
from twinstream.core.meeting import Meeting
from twinstream.core.orders import Lanes, Order
from twinstream.core.pairing import ALIGNMENT_BUDGET, Item, Pairing, pair
from twinstream.core.rules import Rules

if TYPE_CHECKING:
    from twinstream.core.index import Index

MEETING_RUN = 16
"""Equal events in a row after which two pieces have met again: long enough that chance does not make it."""


TAIL_SEEN = 64
"""Events of a tail that are looked at for the other half of one that changed."""

NAMING_COST = 16
"""To name what an event is costs about so many steps of an alignment."""

T = TypeVar("T", bound=Hashable)


class Explanation(NamedTuple):
    """What two pieces have in common and where they differ.

    `matched` are the pairs of equal events, `tails` what is neither paired nor a difference yet, by side.
    `met` tells that enough equal events follow the last difference.
    """

    findings: list[Finding]
    matched: list[tuple[Event, Event]]
    tails: tuple[list[Event], list[Event]]
    met: bool


NOTHING = Explanation([], [], ([], []), met=False)


class Scope:
    """A part of the order that is set aside: the two pieces collected so far, and their explanation.

    `owner` is the index that it was set aside from, `order` that of its events, at `depth` in their routes.
    `tainted` tells that it was opened behind a hole, `disputed` that it may hold known differences only;
    `moment` is when its difference was proven. `example` is one of its events. `dropped` is what it had or
    got and does not keep; it is the caller's to take. `cost` is that of the last explanation, in steps of an
    alignment, and `explained_as` its number among all. `kept_at` is its size when it was passed and stayed
    open.
    """

    def __init__(self, owner: Index, order: Order, depth: int, canonical: Canonical) -> None:
        self.owner, self.order, self.depth = owner, order, depth
        self.tainted = False
        self.disputed = False
        self.moment = 0
        self.pieces: tuple[list[Event], list[Event]] = ([], [])
        self.dropped: tuple[list[Event], list[Event]] = ([], [])
        self.lost = False
        self.example: Event | None = None
        self.findings: list[Finding] = []
        self._canonical = canonical
        self.cost = self.explained_as = 0
        self._items: tuple[list[Item], list[Item]] = ([], [])
        self._meeting: Meeting | None = Meeting(MEETING_RUN) if isinstance(order, Lanes) else None
        self._explained_at = 0
        self._looked_met = False
        self.kept_at = 0

    def __len__(self) -> int:
        return len(self.pieces[0]) + len(self.pieces[1])

    def oldest_ms(self) -> int:
        """When the first of its events was written."""
        return min(event[3] for piece in self.pieces for event in piece)

    def add(self, side: Side, event: Event) -> None:
        """Collect one more event; a lost scope drops it."""
        if self.lost:
            self.dropped[side].append(event)
        else:
            self.pieces[side].append(event)
            self.example = event

    def absorb(self, part: Scope) -> None:
        """Take over a scope that lies within this one; nothing was added to this one yet.

        A lost one has nothing left but what it dropped; what it has found is booked.
        """
        self.example = part.example
        for side in Side:
            self.dropped[side].extend(part.dropped[side])
        if part.lost:
            return
        self.tainted = self.tainted and part.tainted
        self.disputed = self.disputed or part.disputed
        self.moment = min(self.moment, part.moment)
        for side in Side:
            self.pieces[side].extend(part.pieces[side])

    def lose(self, booked: Explanation) -> None:
        """Give up: drop the pieces but for what is booked of them, and collect nothing any more."""
        self.lost, self.findings = True, []
        kept = {id(event) for pair in booked.matched for event in pair}
        kept.update(id(event) for finding in booked.findings for _, event in finding.events)
        for dropped, piece in zip(self.dropped, self.pieces, strict=True):
            dropped.extend(event for event in piece if id(event) not in kept)
        self.pieces = ([], [])
        self._items = ([], [])
        self._meeting = None

    @property
    def grown(self) -> int:
        """How many events have come since the last explanation."""
        return len(self) - self._explained_at

    def pressing(self) -> bool:
        """Whether a scope that has grown is to be explained at once.

        It was never, or it is a sequence whose sides may have met now. (Where they looked so before and had
        not, as pieces do that repeat themselves, as many more events are waited for as make a row.)

        Complexity: O(1) for each event that came since the last call.
        """
        if not self._explained_at:
            return True
        for side in Side:
            self._items_of(side)
        likely = self._meeting is not None and self._meeting.likely
        self._looked_met = self._looked_met and likely
        return likely and (not self._looked_met or self.grown >= MEETING_RUN)

    def route(self, event: Event) -> Any:
        """The route of an event at the depth of this scope."""
        route: Any = event[0][0]
        for _ in range(self.depth):
            route = route[1]
        return route

    def explain(self, rules: Rules, recent: Recent, *, whole: bool) -> Explanation:
        """Pair the pieces and name the differences.

        `whole`: no more will come to this scope, so what has no partner is a difference. `recent` tells
        whether a content matched lately.
        """
        self._explained_at = len(self)
        left, right = (self._items_of(side) for side in Side)
        pairing = pair(self.order, left, right, self._related(rules.dependent), whole=whole)
        if rules.close is not None:
            pairing.part(lambda i, j: not rules.equal(self.pieces[0][i], self.pieces[1][j]))
        contents = [item.letter for item in left], [item.letter for item in right]
        self.cost = _cost(pairing) + NAMING_COST * len(self)
        met = _meets(pairing)
        self._looked_met = self._meeting is not None and self._meeting.likely and not met
        named = pairing if met else _with_moved(pairing, contents)
        if not met and rules.identity is not None:
            named = _with_changed(named, contents, self._identities(rules.identity))
        self.findings = name_findings(self.pieces, contents, named, rules.dependent, rules.identity, recent)
        matched = [(self.pieces[Side.LEFT][i], self.pieces[Side.RIGHT][j]) for i, j in pairing.pairs]
        tails = (
            [self.pieces[0][i] for i in pairing.left_tail],
            [self.pieces[1][j] for j in pairing.right_tail],
        )
        return Explanation(self.findings, matched, tails, met)

    def _related(self, dependent: Dependent) -> Callable[[Side, int, Side, int], bool]:
        pieces = self.pieces
        return lambda side, one, other, another: dependent(pieces[side][one], pieces[other][another])

    def _identities(self, identity: Identity) -> Callable[[Side, int], Hashable]:
        return lambda side, place: identity(self.pieces[side][place][0][3])

    def _items_of(self, side: Side) -> list[Item]:
        items, piece = self._items[side], self.pieces[side]
        for place in range(len(items), len(piece)):
            event = piece[place]
            item = Item(place, self._canonical(event[0][1]), self.route(event))
            items.append(item)
            if self._meeting is not None:
                self._look_for_a_meeting(side, item)
        return items

    def _look_for_a_meeting(self, side: Side, item: Item) -> None:
        """Take the next event of a side, if all of them are of one sequence."""
        first = self._items[Side.LEFT] or self._items[Side.RIGHT]
        if type(item.route) is bytes or item.route != first[0].route:
            self._meeting = None
        elif self._meeting is not None:
            self._meeting.add(side, item.letter)


def _with_moved(pairing: Pairing, contents: tuple[list[bytes], list[bytes]]) -> Pairing:
    """The pairing with what has come of a tail as a difference, too, where it is the other half of one.

    Nothing else of a tail is a difference yet. It is for naming alone: until the sides have met again, the
    other half of an event that changed places stands in a tail.
    """
    tails = [(contents[0][i] for i in pairing.left_tail), (contents[1][j] for j in pairing.right_tail)]
    left = _halves(pairing.left_tail, tails[0], Counter(contents[1][j] for j in pairing.right_rest))
    right = _halves(pairing.right_tail, tails[1], Counter(contents[0][i] for i in pairing.left_rest))
    return replace(pairing, left_rest=[*pairing.left_rest, *left], right_rest=[*pairing.right_rest, *right])


def _with_changed(
    pairing: Pairing, contents: tuple[list[bytes], list[bytes]], identity: Callable[[Side, int], Hashable]
) -> Pairing:
    """The pairing with what has come of a tail as a difference, too, where it is about the thing of one.

    It is for naming alone, and for differences that have no other half yet. The other half of an event that
    changed is among the next to come: further on it is not looked for.
    """
    rest = pairing.left_rest, pairing.right_rest
    moved = {contents[0][i] for i in rest[0]} & {contents[1][j] for j in rest[1]}
    about = [
        Counter(identity(side, place) for place in rest[side] if contents[side][place] not in moved)
        for side in Side
    ]
    lacking = about[0] - about[1], about[1] - about[0]
    found: list[list[int]] = []
    for side, tail in zip(Side, (pairing.left_tail, pairing.right_tail), strict=True):
        wanted, named = lacking[side.other], set(rest[side])
        left_over = [place for place in tail[:TAIL_SEEN] if place not in named] if wanted else []
        found.append(_halves(left_over, [identity(side, place) for place in left_over], wanted))
    return replace(pairing, left_rest=[*rest[0], *found[0]], right_rest=[*rest[1], *found[1]])


def _halves(tail: Iterable[int], contents: Iterable[T], wanted: Counter[T]) -> list[int]:
    """The places of a tail that hold what is wanted, each as often as it is."""
    found = []
    for place, content in zip(tail, contents, strict=True) if wanted else ():
        if wanted[content] > 0:
            wanted[content] -= 1
            found.append(place)
    return found


def _cost(pairing: Pairing) -> int:
    differences = min(len(pairing.left_rest) + len(pairing.right_rest), ALIGNMENT_BUDGET)
    return differences * differences // 2


def _meets(pairing: Pairing) -> bool:
    return pairing.clean >= MEETING_RUN or pairing.epochs > 0
