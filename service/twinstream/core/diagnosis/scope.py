"""After a difference: set aside, meet again, compare, go on.

When step 2 of matching proves a difference, the part of the order that it touches is set aside as a `Scope`:
a lane, the open epoch, else a whole node. Its events of both sides are collected and take no part in
matching, while all other events do. The two collected pieces are paired under their order (see `pairing`),
and the events in no pair are the difference (see `findings`).

The scope closes where the sides *meet again*: behind the last difference after a run of `MEETING_RUN` equal
events or after an equal epoch, at the barrier behind its own epoch, or at the end of both. The events that it
did not settle are fed to matching again. Until it closes its explanation is provisional.

Its content decides where it closes, never the time of a look: see `looks`. A scope that outgrows its limit is
*lost*. Its findings so far are booked, as when it closes: they support the verdict. All its other events, and
those that still come, are only counted, and stay unmatched for good.

| state      | a new event                  | is compared | next state                            |
| ---------- | ---------------------------- | ----------- | ------------------------------------- |
| gathering  | matches, or is collected     | no          | collecting, at the end of its epoch   |
| collecting | is collected                 | yes         | closed where the sides meet, or lost  |
| lost       | is dropped, and counted      | no          | closed at a barrier that both wrote   |

Source: DiffStream stops at the first difference (section 4.2); going on is ours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import cache, partial
from itertools import count, takewhile
from typing import Any, NamedTuple, TypeVar, overload

from twinstream.core.diagnosis.findings import (
    AreDependent,
    Finding,
    Letters,
    Naming,
    Recent,
    explain_partnerless,
)
from twinstream.core.diagnosis.looks import MEETING_RUN, Look, Looks
from twinstream.core.diagnosis.resync import Lengths
from twinstream.core.events import (
    OFFSET,
    PARTITION,
    TIMESTAMP_MS,
    Event,
    Letter,
    PartitionOffset,
    Side,
    place_in_side,
)
from twinstream.core.matching.index import Index, route_at
from twinstream.core.order import BARRIER, Epochs, Lanes, Order, Pairwise, Ruled
from twinstream.core.pairing.pairing import pair
from twinstream.core.pairing.pieces import ALIGNMENT_BUDGET, Item, Pairing
from twinstream.core.proofs import Needs, Proof, place_of
from twinstream.core.relation import IdentityOf, Relation

TAIL_SEEN = 64
"""Events of a tail that are searched for the other half of one that changed."""

PROVING = 16
"""Events of each partition that are searched for a proof of a difference under rules."""

NAMING_COST = 16
"""The cost of naming an event, in steps of an alignment."""

T = TypeVar("T", bound=Hashable)


class Explanation(NamedTuple):
    """The pairs and the differences of two pieces.

    `matched` are the pairs of equal events, `tails` the events by side that are neither paired nor a
    difference yet, with those not looked at. `met`: enough equal events follow the last difference. `places`
    are the last offsets looked at, by side and partition, and `newest_ms` is the latest time of an event.
    """

    findings: list[Finding]
    matched: list[tuple[Event, Event]]
    tails: tuple[list[Event], list[Event]]
    met: bool
    places: tuple[dict[int, int], dict[int, int]]
    newest_ms: int


NOTHING = Explanation([], [], ([], []), met=False, places=({}, {}), newest_ms=0)


class State(Enum):
    """The states of a scope, which decide what happens to a new event; see the table above."""

    GATHERING = "gathering"
    COLLECTING = "collecting"
    LOST = "lost"


STEPS = {
    (State.COLLECTING, "gather"): State.GATHERING,
    (State.GATHERING, "collect"): State.COLLECTING,
    (State.COLLECTING, "collect"): State.COLLECTING,
    (State.GATHERING, "lose"): State.LOST,
    (State.COLLECTING, "lose"): State.LOST,
}
"""The next state by state and step; no other steps are possible."""


class Scope:
    """A part of the order that is set aside: the two pieces collected so far, and their explanation.

    `owner` is the index that it was set aside from, `order` that of its events, at `depth` in their routes.
    `tainted`: its proof lies behind a hole. `needs`: the batches whose attempts must agree before it counts
    (None, if unknown, stands for all open ones). `disputed`: its differences may all be known ones.
    `moment` is when its difference was proven. `example` is one of its events. `dropped` are the events that
    it does not keep; the caller takes them. `cost` is that of the last explanation, in steps of an alignment,
    and `explained_as` its number among all. `kept_at` is its size when it was passed and stayed open.
    """

    def __init__(self, owner: Index, order: Order, depth: int, relation: Relation) -> None:
        self.owner, self.order, self.depth = owner, order, depth
        self.tainted = False
        self.needs: Needs | None = None
        self.disputed = False
        self.moment = 0
        self.pieces: tuple[list[Event], list[Event]] = ([], [])
        self.dropped: tuple[list[Event], list[Event]] = ([], [])
        self._state = State.COLLECTING
        self.example: Event
        self.findings: list[Finding] = []
        self._letter = relation.letter
        self.cost = self.explained_as = 0
        self._items = _LazyItems(self.pieces[0], self._item), _LazyItems(self.pieces[1], self._item)
        self._looks = Looks(order, self._items, tolerant=relation.close is not None)
        self._explained_at = 0
        self.kept_at = 0

    def __len__(self) -> int:
        return len(self.pieces[0]) + len(self.pieces[1])

    @property
    def gathering(self) -> bool:
        """Whether other events of its part of the order may still match."""
        return self._state is State.GATHERING

    @property
    def lost(self) -> bool:
        """Whether it was given up."""
        return self._state is State.LOST

    def step(self, step: str) -> None:
        """Take a step: `gather` other events, `collect` every event from here on, or `lose` them all."""
        self._state = STEPS[self._state, step]

    def first_place(self) -> tuple[int, int, int]:
        """The place of its first event: side, partition and offset."""
        places = ((side, event[PARTITION], event[OFFSET]) for side in Side for event in self.pieces[side])
        return min(places, default=(0, 0, 0))

    def proofs(self, relation: Relation) -> list[Proof]:
        """The proofs of its difference, each sufficient by itself; none where they are unknown.

        In a sequence the proof is the first event of both sides. Under rules it is two dependent events,
        neither of which has an equal one before the other. Between barriers it is the first event of a side
        and the barrier of the other that it cannot pass; that is known once the scope no longer gathers. With
        a tolerance all events of a bag decide which one is left over, so there only barriers prove.
        """
        left, right = self.pieces
        if isinstance(self.order, Lanes) and left and right:
            return [[place_of(Side.LEFT, left[0]), place_of(Side.RIGHT, right[0])]]
        if isinstance(self.order, Ruled | Pairwise):
            return list(_crossing(self._firsts(Side.LEFT), self._firsts(Side.RIGHT), relation))
        if not isinstance(self.order, Epochs) or self.gathering:
            return []
        ends = [_first(filter(self._is_barrier, piece)) for piece in self.pieces]
        firsts = list(map(_first, self.pieces))
        if relation.close is not None:
            firsts = [
                first if first is None or relation.dependent(first, first) else end
                for first, end in zip(firsts, ends, strict=True)
            ]
        return [
            [place_of(side, first), place_of(side.other, end)]
            for side, first, end in zip(Side, firsts, reversed(ends), strict=True)
            if first is not None and end is not None and not relation.equal(first, end)
        ]

    def _firsts(self, side: Side) -> list[Event]:
        """The first events of a piece in each partition, as they were written."""
        seen: Counter[int] = Counter()
        firsts = []
        for event in sorted(self.pieces[side], key=place_in_side):
            seen[event[PARTITION]] += 1
            if seen[event[PARTITION]] <= PROVING:
                firsts.append(event)
        return firsts

    def _is_barrier(self, event: Event) -> bool:
        return self.route(event) is BARRIER

    def oldest_ms(self) -> int:
        """The time at which the first of its events was written."""
        return min(event[TIMESTAMP_MS] for piece in self.pieces for event in piece)

    def begin(self, side: Side, events: Sequence[Event]) -> None:
        """Add the unmatched events of a part that has just been set aside."""
        if events:
            self.pieces[side].extend(events)
            self.example = events[-1]

    def add(self, side: Side, event: Event) -> None:
        """Add an event; a lost scope drops it."""
        if self.lost:
            self.dropped[side].append(event)
        else:
            self.pieces[side].append(event)
            self.example = event

    def absorb(self, part: Scope) -> None:
        """Take over a scope that lies within this one; this one has no events yet.

        A lost one has only its dropped events left; its findings are booked.
        """
        self.example = part.example
        for side in Side:
            self.dropped[side].extend(part.dropped[side])
            self.pieces[side].extend(part.pieces[side])
        if not part.lost:
            self._count_as(part)

    def give(self, side: Side, events: Sequence[Event], scope: Scope) -> None:
        """Move some events to a scope that has just opened; they go before its own events of that side."""
        given = set(map(id, events))
        scope._count_as(self)
        scope.pieces[side][:0] = events
        self.pieces[side][:] = [event for event in self.pieces[side] if id(event) not in given]
        self._items[side].forget()
        self._explained_at = 0

    def _count_as(self, part: Scope) -> None:
        """Count like a part: its proof proves this whole scope."""
        if not part.tainted:
            self.tainted, self.needs = False, part.needs
        self.disputed = self.disputed or part.disputed
        self.moment = min(self.moment, part.moment)

    def lose(self, booked: Explanation) -> None:
        """Give up: drop the pieces except for the booked events, and collect no more events."""
        self.step("lose")
        self.findings = []
        kept = {id(event) for pair in booked.matched for event in pair}
        kept.update(id(event) for finding in booked.findings for _, event in finding.events)
        for side in Side:
            self.dropped[side].extend(event for event in self.pieces[side] if id(event) not in kept)
            self.pieces[side].clear()
            self._items[side].forget()

    def show(self, explanation: Explanation) -> None:
        """Show an explanation of all events so far as the provisional one."""
        self.findings = explanation.findings
        self._explained_at = len(self)

    @property
    def grown(self) -> int:
        """The number of events that have come since the last explanation."""
        return len(self) - self._explained_at

    @property
    def is_new(self) -> bool:
        """Whether it was never explained."""
        return not self._explained_at

    def next_look(self, ended: tuple[bool, bool], limit: int) -> Look | None:
        """The next look at the pieces; None until more events have come.

        No more events of a side that has `ended` come to this scope.
        """
        if self.gathering or self.lost:
            return None
        return self._looks.next(ended, limit)

    def put_in_order(self) -> None:
        """Sort the events of each side as they were written, whenever they came here."""
        for items, piece in zip(self._items, self.pieces, strict=True):
            items.forget()
            piece.sort(key=place_in_side)

    def route(self, event: Event) -> Any:
        """The route of an event at the depth of this scope."""
        return route_at(event, self.depth)

    def explain(
        self, relation: Relation, recent: Recent, *, whole: bool, lengths: Lengths | None = None
    ) -> Explanation:
        """Pair the pieces, or their first `lengths` events, and name the differences.

        `whole`: no more events will come to this scope, so one without a partner is a difference. `recent`
        decides whether an event is a copy.
        """
        left, right = (self._items[side][: lengths and lengths[side]] for side in Side)
        pairing = pair(self.order, left, right, self._related(relation.dependent), whole=whole)
        contents = [item.letter for item in left], [item.letter for item in right]
        differences = min(sum(map(len, pairing.rest)), ALIGNMENT_BUDGET)
        self.cost = differences * differences // 2 + NAMING_COST * (len(left) + len(right))
        met = pairing.clean >= MEETING_RUN or pairing.epochs > 0
        named = pairing if met else _with_moved(pairing, contents)
        if not met and relation.identity is not None:
            named = _with_changed(named, contents, self._identities(relation.identity))
        naming = Naming(self.pieces, contents, named, relation.dependent)
        found = naming.findings(relation.identity, recent)
        matched = [(self.pieces[Side.LEFT][i], self.pieces[Side.RIGHT][j]) for i, j in pairing.pairs]
        tails = (
            [self.pieces[0][i] for i in pairing.tail[0]] + self.pieces[0][len(left) :],
            [self.pieces[1][j] for j in pairing.tail[1]] + self.pieces[1][len(right) :],
        )
        looked = self.pieces[0][: len(left)], self.pieces[1][: len(right)]
        newest_ms = max((event[TIMESTAMP_MS] for piece in looked for event in piece), default=0)
        return Explanation(found, matched, tails, met, (_last_of(looked[0]), _last_of(looked[1])), newest_ms)

    def explain_lost(self, relation: Relation, recent: Recent, lengths: Lengths) -> Explanation:
        """The explanation with which it is given up, of its first `lengths` events.

        They may end before the barrier that proves the difference, or before the equal one of an event that
        was found alone. Then the events of that epoch without an equal one in it are the findings, as far as
        these lengths go.
        """
        explanation = self.explain(relation, recent, whole=False, lengths=lengths)
        cut_off = cache(lambda side: _Letters(self._epoch_from(side, lengths[side])))
        found = [
            finding
            for finding in explanation.findings
            if finding.partner is not None or self._letter(finding.event) not in cut_off(finding.side.other)
        ]
        if not found and (explanation.findings or isinstance(self.order, Epochs)):
            left, right = (self._alone_in_epoch(side, lengths[side]) for side in Side)
            found = explain_partnerless(left, right, relation.letter, relation.identity, recent)
        return explanation._replace(findings=found or explanation.findings)

    def _alone_in_epoch(self, side: Side, length: int) -> list[Event]:
        """The first events of a piece, up to a barrier, without an equal one up to the other's barrier."""
        other = _Letters(self._epoch_from(side.other, 0))
        own = self._epoch_from(side, 0)[:length]
        return [self.pieces[side][item.place] for item in own if item.letter not in other]

    def _epoch_from(self, side: Side, place: int) -> list[Item]:
        """The items of a piece from a place on, up to a barrier."""
        items = self._items[side]
        rest = (items[at] for at in range(place, len(items)))
        return list(takewhile(lambda item: item.route is not BARRIER, rest))

    def _related(self, dependent: AreDependent) -> Callable[[Side, int, Side, int], bool]:
        pieces = self.pieces
        return lambda side, one, other, another: dependent(pieces[side][one], pieces[other][another])

    def _identities(self, identity: IdentityOf) -> Callable[[Side, int], Hashable]:
        return lambda side, place: identity(self.pieces[side][place][0][3])

    def _item(self, place: int, event: Event) -> Item:
        return Item(place, self._letter(event), self.route(event))

    # -- state ---------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state as plain data, without its owner and its order."""
        return {
            "places": [[[event[PARTITION], event[OFFSET]] for event in piece] for piece in self.pieces],
            "tainted": self.tainted,
            "needs": None if self.needs is None else list(map(list, sorted(self.needs))),
            "disputed": self.disputed,
            "moment": self.moment,
            "lost": self.lost,
            "gathering": self.gathering,
        }

    def restore(self, state: Mapping[str, Any], held: Sequence[Mapping[PartitionOffset, Event]]) -> None:
        """Take over the `state`; `held` are the unmatched events of each side, by place."""
        self.tainted, self.disputed, self.moment = state["tainted"], state["disputed"], state["moment"]
        if state["needs"] is not None:
            self.needs = frozenset((Side(side), name, number) for side, name, number in state["needs"])
        if state["gathering"]:
            self.step("gather")
        for side in Side:
            for partition, offset in state["places"][side]:
                self.pieces[side].append(held[side][partition, offset])
        if state["lost"]:
            self.lose(NOTHING)


class _Letters:
    """The letters of some items. No set: near letters that are equal may differ in what else they equal."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._by_hash: defaultdict[int, list[Letter]] = defaultdict(list)
        for item in items:
            self._by_hash[hash(item.letter)].append(item.letter)

    def __contains__(self, letter: Letter) -> bool:
        return letter in self._by_hash.get(hash(letter), ())


class _LazyItems(Sequence[Item]):
    """The items of a piece, made once and as far as they are asked for: a piece may be far ahead."""

    def __init__(self, piece: Sequence[Event], item_of: Callable[[int, Event], Item]) -> None:
        self._piece, self._item_of = piece, item_of
        self._made: list[Item] = []

    def __len__(self) -> int:
        return len(self._piece)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        made = self._made
        end = place.indices(len(self))[1] if isinstance(place, slice) else place + 1
        if end > len(made):
            made.extend(map(self._item_of, count(len(made)), self._piece[len(made) : end]))
        return made[place]

    def forget(self) -> None:
        """Make all items again, since the piece has changed other than by growing."""
        self._made.clear()


def _crossing(left: Sequence[Event], right: Sequence[Event], relation: Relation) -> Iterator[Proof]:
    """Pairs of dependent events, neither of which has an equal one before the other of the pair.

    An equal event behind the other would cross: it would depend on the event that it follows, and the two
    sides would have the two in opposite orders.
    """
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            if relation.dependent(one, other) and not (
                any(relation.equal(one, before) for before in right[: j + 1])
                or any(relation.equal(before, other) for before in left[:i])
            ):
                yield [place_of(Side.LEFT, one), place_of(Side.RIGHT, other)]


def _with_moved(pairing: Pairing, contents: Letters) -> Pairing:
    """The pairing, in which events of a tail that are the other half of a difference are differences, too.

    No other event of a tail is a difference yet. This is for naming alone: until the sides have met again,
    the other half of an event that changed places is in a tail.
    """
    found = [
        _halves(
            pairing.tail[side],
            contents[side].__getitem__,
            Counter(map(contents[side.other].__getitem__, pairing.rest[side.other])),
        )
        for side in Side
    ]
    return _differing(pairing, found)


def _with_changed(pairing: Pairing, contents: Letters, identity: Callable[[Side, int], Hashable]) -> Pairing:
    """The pairing, in which events of a tail that share the identity of a difference are differences, too.

    This is for naming alone, and for differences that have no other half yet. The other half of an event that
    changed is among the next events: the search goes no further.
    """
    rest = pairing.rest
    moved = {contents[0][i] for i in rest[0]} & {contents[1][j] for j in rest[1]}
    about = [
        Counter(identity(side, place) for place in rest[side] if contents[side][place] not in moved)
        for side in Side
    ]
    lacking = about[0] - about[1], about[1] - about[0]
    found: list[list[int]] = []
    for side in Side:
        named = set(rest[side])
        left_over = [place for place in pairing.tail[side][:TAIL_SEEN] if place not in named]
        found.append(_halves(left_over, partial(identity, side), lacking[side.other]))
    return _differing(pairing, found)


def _halves(tail: Iterable[int], content: Callable[[int], T], wanted: Counter[T]) -> list[int]:
    """The places of a tail whose content is wanted, each content as often as it is wanted."""
    found = []
    for place in tail if wanted else ():
        if wanted[content(place)] > 0:
            wanted[content(place)] -= 1
            found.append(place)
    return found


def _differing(pairing: Pairing, found: Sequence[list[int]]) -> Pairing:
    """The pairing with more places of either side among the differences."""
    return replace(pairing, rest=(pairing.rest[0] + found[0], pairing.rest[1] + found[1]))


def _first(events: Iterable[Event]) -> Event | None:
    return min(events, key=place_in_side, default=None)


def _last_of(events: Iterable[Event]) -> dict[int, int]:
    """The last offset in each partition."""
    last: dict[int, int] = {}
    for event in events:
        last[event[PARTITION]] = max(event[OFFSET], last.get(event[PARTITION], event[OFFSET]))
    return last
