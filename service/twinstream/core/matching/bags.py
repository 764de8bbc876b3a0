"""Bags of numbers with a tolerance: earlier pairs are rearranged whenever that gives one more pair.

The events of a lane of a bag have one canonical form, but need not be close. They form a bipartite graph, and
we want a largest matching of it (see `tolerant`): then the number of events left over is a function of the
two sets, whatever the order of arrival. A new event matches an unmatched one that is close to it. Or it takes
the place of a matched one, which takes that of another, and so on up to one that is close to an unmatched
event: all matched events stay matched, and two more are. If the matching was a largest one before an event
came, only a path from that event makes it larger.

**Memory.** So matched events are remembered: the latest of all lanes, and of each lane. Nobody knows for
which event a forgotten pair would have made room. So where a pair of a lane was forgotten, and events of both
sides of it are left over, these are not *proven* to differ: that is a doubt, and no difference. A *mark*
remembers for longer that a lane has forgotten pairs; without its mark a lane counts as new.

The epoch behind a barrier has its own lanes: `Bags.close` forgets those before it, and their marks.

**State.** Pairs and marks have serial numbers. A snapshot has the rows that are new or have changed since the
last snapshot, and the numbers of those removed.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Any

from twinstream.core.accounts import Hole
from twinstream.core.events import Event, Side
from twinstream.core.order import stable

KEPT = 50_000
"""Pairs remembered for all lanes: as many events as of recent matches, some 50 MB."""
OF_A_LANE = 256
"""Pairs remembered for one lane: an event that is close to no unmatched one is compared with each of them."""
LOOKED_AT = 5_000
"""Comparisons of two events to make room for one, some 50 ms; beyond that the result is left unknown."""
MARKS = 100_000
"""Lanes marked as having forgotten pairs, some 20 MB."""
UNKNOWN_PAIRS = Hole(
    f"events of one identity came again further apart than is remembered ({KEPT:,} pairs, {OF_A_LANE} of one "
    "identity): of some that are left over it is not known whether they differ"
)
_SPARE = 1_000
"""Outdated entries that are kept before a clean-up looks for them."""

LanesBySide = tuple[Mapping[Hashable, Any], Mapping[Hashable, Any]]
"""The unmatched events of each side, by lane."""
LanePath = tuple[Hashable, ...]
"""The keys and branches above the node of a lane."""
KeyOf = Callable[[bytes], Any]


class Pair:
    """Two matched events, by side. Rearranging may replace them by others of their lane."""

    __slots__ = ("depth", "events", "serial")

    def __init__(self, serial: int, events: list[Event], depth: int) -> None:
        self.serial, self.events, self.depth = serial, events, depth

    @property
    def lane(self) -> Any:
        """The route of both events."""
        return self.events[0][0][0]


class Bags:
    """The matched events in the bags of one comparison. `equal` decides whether two events are equal.

    Lanes are named by their routes; `depth` is the number of keys and branches above a lane in its route.
    """

    def __init__(self, equal: Callable[[Event, Event], bool]) -> None:
        self._equal = equal
        self._lanes: dict[LanePath, dict[Hashable, list[Pair]]] = {}
        self._pairs: OrderedDict[int, Pair] = OrderedDict()
        self._marks: OrderedDict[int, tuple[LanePath, bytes]] = OrderedDict()
        self._marked: dict[LanePath, dict[bytes, int]] = {}
        self._crowded: dict[Hashable, tuple[LanePath, LanesBySide]] = {}
        self._prune_at = _SPARE
        self._serial = self._saved = self._deepest = 0
        self._new_pairs: dict[int, Pair] = {}
        self._new_marks: dict[int, tuple[LanePath, bytes]] = {}
        self._gone: list[int] = []

    # -- matching ------------------------------------------------------------------------------------------

    def partner(self, side: Side, event: Event, waiting: Sequence[Event], depth: int) -> Event | None:
        """The unmatched event on the other side of a lane that a new event allows to match, if any.

        The oldest that is close, else one that is matched by making room. Complexity: O(n) in the unmatched
        events and O(p) in the remembered pairs; more to make room, up to `LOOKED_AT`.
        """
        partner = self._first(waiting, event)
        if partner is not None:
            self._note(_by_side(side, event, partner), depth)
        elif waiting:
            partner = self._make_room(side, event, waiting, depth)
        return partner

    def _first(self, waiting: Sequence[Event], event: Event) -> Event | None:
        equal = self._equal
        return next((other for other in waiting if equal(other, event)), None)

    def _make_room(self, side: Side, event: Event, waiting: Sequence[Event], depth: int) -> Event | None:
        """Pair along a path from an event to an unmatched one of the other side, if there is one."""
        lane = event[0][0]
        path = path_of(lane, depth)
        rest = list(self._lanes.get(path, {}).get(lane, ()))
        asking: deque[tuple[Event, list[Pair]]] = deque([(event, [])])
        left = LOOKED_AT
        while asking and rest:
            one, taken = asking.popleft()
            left -= len(rest)
            reached = [pair for pair in rest if self._equal(pair.events[side.other], one)]
            gone = set(map(id, reached))
            rest = [pair for pair in rest if id(pair) not in gone]
            for pair in reached:
                left -= len(waiting)
                if left < 0:
                    self._mark(path, lane)
                    return None
                freed = pair.events[side]
                if (partner := self._first(waiting, freed)) is not None:
                    self._shift(side, event, [*taken, pair])
                    self._note(_by_side(side, freed, partner), depth)
                    return partner
                asking.append((freed, [*taken, pair]))
        return None

    def _shift(self, side: Side, event: Event, pairs: Iterable[Pair]) -> None:
        """Put an event into the first pair, the event that it displaces there into the next, and so on."""
        for pair in pairs:
            event, pair.events[side] = pair.events[side], event
            self._new_pairs[pair.serial] = pair

    def _note(self, events: list[Event], depth: int) -> None:
        """Remember a pair, and forget others if there are too many."""
        of_lane = self._add(Pair(self._next(), events, depth))
        if len(of_lane) > OF_A_LANE:
            self._forget(of_lane[0])
        if len(self._pairs) > KEPT:
            self._forget(next(iter(self._pairs.values())))

    def _add(self, pair: Pair) -> list[Pair]:
        """Remember a pair; returns all of its lane."""
        self._deepest = max(self._deepest, pair.depth)
        of_lane = self._lanes.setdefault(path_of(pair.lane, pair.depth), {}).setdefault(pair.lane, [])
        of_lane.append(pair)
        self._pairs[pair.serial] = self._new_pairs[pair.serial] = pair
        return of_lane

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    # -- forgetting ----------------------------------------------------------------------------------------

    def _forget(self, pair: Pair) -> None:
        lane, path = pair.lane, path_of(pair.lane, pair.depth)
        pairs = self._lanes[path][lane]
        pairs.remove(pair)
        if not pairs:
            del self._lanes[path][lane]
        self._drop(pair)
        self._mark(path, lane)

    def _drop(self, pair: Pair) -> None:
        del self._pairs[pair.serial]
        self._leave(pair.serial)

    def _leave(self, serial: int) -> None:
        self._new_pairs.pop(serial, None)
        self._new_marks.pop(serial, None)
        if serial <= self._saved:
            self._gone.append(serial)

    def _mark(self, path: LanePath, lane: Hashable) -> None:
        """Note that a lane has forgotten pairs."""
        if (name := _name(lane)) in self._marked.get(path, ()):
            return
        self._put_mark(self._next(), path, name)
        if len(self._marks) > MARKS:
            serial, (of, oldest) = self._marks.popitem(last=False)
            del self._marked[of][oldest]
            self._leave(serial)

    def _put_mark(self, serial: int, path: LanePath, name: bytes) -> None:
        self._deepest = max(self._deepest, len(path))
        self._marked.setdefault(path, {})[name] = serial
        self._marks[serial] = self._new_marks[serial] = path, name

    def close(self, route: Any, depth: int) -> None:
        """Forget the pairs before a barrier of this route: both sides are past it, so no event needs them."""
        for path in self._below(path_of(route, depth)):
            for pair in chain.from_iterable(self._lanes.pop(path, {}).values()):
                self._drop(pair)
            for serial in self._marked.pop(path, {}).values():
                del self._marks[serial]
                self._leave(serial)

    def lose(self, route: Any, depth: int) -> None:
        """Forget the pairs around a barrier of this route, whose unmatched events were set aside."""
        above = path_of(route, depth)
        self._crowded = {k: row for k, row in self._crowded.items() if row[0][: len(above)] != above}
        for path in self._below(above):
            for pair in tuple(chain.from_iterable(self._lanes.get(path, {}).values())):
                self._forget(pair)

    def _below(self, path: LanePath) -> Sequence[LanePath]:
        """The known paths of lanes that begin with this path: all, unless the barriers are below keys."""
        if len(path) == self._deepest:
            return (path,)
        known = self._lanes.keys() | self._marked.keys()
        return [one for one in known if one[: len(path)] == path]

    # -- events left over ----------------------------------------------------------------------------------

    def crowd(self, lane: Hashable, held: LanesBySide, depth: int) -> None:
        """Note that a lane has unmatched events of both sides; `held` are those of all lanes of its index."""
        self._crowded[lane] = path_of(lane, depth), held
        if len(self._crowded) > self._prune_at:
            self._crowded = {lane: row for lane, row in self._crowded.items() if _is_crowded(lane, row[1])}
            self._prune_at = 2 * len(self._crowded) + _SPARE

    def forgot(self, lane: Hashable, depth: int) -> bool:
        """Whether a lane has forgotten pairs."""
        return bool(self._marks) and _name(lane) in self._marked.get(path_of(lane, depth), ())

    def doubtful(self) -> dict[Hashable, LanesBySide]:
        """The lanes with forgotten pairs and unmatched events of both sides, each with those of its index.

        Complexity: O(k) in the lanes that have unmatched events of both sides, or lately had.
        """
        return {
            lane: held
            for lane, (path, held) in (self._crowded.items() if self._marks else ())
            if _is_crowded(lane, held) and _name(lane) in self._marked.get(path, ())
        }

    # -- state ---------------------------------------------------------------------------------------------

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The pairs and marks as plain data; unless `whole`, those that have changed since the last call."""
        pairs, marks = (self._pairs, self._marks) if whole else (self._new_pairs, self._new_marks)
        told = {
            "pairs": {serial: _row(pair) for serial, pair in pairs.items()},
            "marks": dict(marks),
            "gone": self._gone,  # Of a whole state, too: the first of a sweep stands behind earlier ones.
        }
        self._gone, self._saved = [], self._serial
        self._new_pairs, self._new_marks = {}, {}
        return told

    def restore(self, state: Mapping[str, Any], form_of: KeyOf) -> None:
        """Take over a whole `state`; `form_of` reads the form of a record."""
        for serial, (depth, partition, *records) in sorted(state["pairs"].items()):
            events = [Event(form_of(record), partition, 0, 0, 0.0) for record in records]
            self._add(Pair(serial, events, depth))
        for serial, (path, name) in sorted(state["marks"].items()):
            self._put_mark(serial, as_key(path), name)
        self._serial = self._saved = max([0, *state["pairs"], *state["marks"]])
        self._new_pairs, self._new_marks = {}, {}


def merged(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several states of `Bags`, the first of them whole, as one whole state."""
    pairs: dict[int, Any] = {}
    marks: dict[int, Any] = {}
    for state in states:
        for serial in state["gone"]:
            pairs.pop(serial, None)
            marks.pop(serial, None)
        pairs.update(state["pairs"])
        marks.update(state["marks"])
    return {"pairs": pairs, "marks": marks, "gone": []}


def path_of(route: Any, depth: int) -> LanePath:
    """The keys and branches above the node of a lane, for an event with this route."""
    path = []
    for _ in range(depth):
        path.append(route[0])
        route = route[1]
    return tuple(path)


def _by_side(side: Side, event: Event, partner: Event) -> list[Event]:
    return [event, partner] if side is Side.LEFT else [partner, event]


def _is_crowded(lane: Hashable, held: LanesBySide) -> bool:
    return lane in held[0] and lane in held[1]


def _name(lane: Hashable) -> bytes:
    """A digest of a lane in 8 bytes; two lanes collide once in many lifetimes."""
    return blake2b(stable(lane), digest_size=8).digest()


def _row(pair: Pair) -> tuple[Any, ...]:
    left, right = pair.events
    return pair.depth, left[1], left[0][3], right[0][3]


def as_key(value: Any) -> Any:
    """A value as it was before it was stored, which turns tuples into lists."""
    return tuple(map(as_key, value)) if isinstance(value, list | tuple) else value
