"""Finds the order that two runs have kept, from the tightest on: a sequence, a sequence for each key, none.

A key is likely if events with one value of it are in the same order in both runs. That alone may be chance:
in a field that hardly repeats, or in two runs in which hardly anything moved. So it is compared with a
control: wherever two events of one key follow each other, the control is a neighbour of the later one with
another key that the declared order also keeps behind the earlier one. If keys did not matter, events of one
key would be swapped as often as the control. A key is *supported* if at least `FEWEST_SWAPS` of the control
are swapped and far fewer of the key: by chance that happens less than once in a thousand times. Only broken
pairs of the declared order count.

A few events that moved against a supported key do not refute it: they are reported as explained by no order.
The key is refuted only if there are many, spread over the run and its keys (`spread`).

A key names something: its values are texts or whole numbers, and recur, also together with the fields of a
declared key. If events of one key lie farther apart than anything moved, as with devices that report in turn,
a key can be neither supported nor ruled out. It is then proposed, since it is tighter than no order, and
reported as open.

An order looser than the declared one allows everything that the declared one allows: another field is added
to its key, and the inner order of a barrier or a branch is loosened before the barrier or branch is given up.

`broken` finds the fewest events that changed places against an order. In a sequence, the events of the
longest increasing subsequence kept their order; the others have moved. So one late event counts as one, not
as all that overtook it. With barriers, an event that changed epochs has moved. Rules and functions only say
of two events whether they may change places; there the events common to most of the broken pairs have
moved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations, islice, pairwise, product
from typing import Any, NamedTuple

from sortedcontainers import SortedList

from twinstream.calibration.evidence import Members, field_text
from twinstream.calibration.spread import QUIET, RECUR, STRETCHES, Confined, Keys, confined, examined, keys_of
from twinstream.core.events import Form
from twinstream.core.order import BARRIER, Branches, Epochs, Keyed, Lanes, Order, dependent, ordered_class
from twinstream.core.pairing.alignment import ascending
from twinstream.spec.file.orders import Node
from twinstream.spec.file.paths import Path

MOST_PASSED = 32
"""Dependence is asked for at most so many of the events that an event has overtaken."""


class Broken(NamedTuple):
    """Two dependent events that changed places, by number: the one that moved, and one that it passed."""

    moved: int
    passed: int


Reached = Sequence[tuple[int, Any]]
"""The events that reach a node of an order, by number, with their routes."""


def broken(order: Order, forms: Sequence[Form], places: Sequence[int]) -> list[Broken]:
    """The events that moved against an order; `places` are those of the partners, event by event."""
    return list(_Breaks(forms, places).of(order, [(number, form[0]) for number, form in enumerate(forms)]))


def out_of_sequence(numbers: Sequence[int], places: Sequence[int]) -> Iterator[Broken]:
    """The fewest events whose removal leaves the others in one sequence. O(n log n)."""
    kept = _longest(numbers, places)
    if len(kept) == len(numbers):
        return
    stays = set(kept)
    for number in numbers:
        if number not in stays:
            at = bisect_left(kept, number)
            before = kept[at - 1] if at and places[kept[at - 1]] > places[number] else None
            yield Broken(number, kept[at] if before is None else before)


def _longest(numbers: Sequence[int], places: Sequence[int]) -> list[int]:
    """The longest subsequence of numbers whose places ascend."""
    return [number for number, _ in ascending((number, places[number]) for number in numbers)]


class _Breaks:
    def __init__(self, forms: Sequence[Form], places: Sequence[int]) -> None:
        self._forms, self._places = forms, places

    def of(self, order: Order, reached: Reached) -> Iterator[Broken]:
        match order:
            case Lanes():
                lanes = _divided((route, number) for number, route in reached if type(route) is not bytes)
                for numbers in lanes.values():
                    yield from out_of_sequence(numbers, self._places)
            case Keyed() | Branches():
                for own, part in _divided((route[0], (n, route[1])) for n, route in reached).items():
                    inner = order.inner if isinstance(order, Keyed) else order.orders[own]
                    yield from self.of(inner, part)
            case Epochs(inner, copies=True):  # each partition counts its own barriers, and no event tells its
                yield from self.of(inner, [one for one in reached if one[1] is not BARRIER])
            case Epochs(inner):
                yield from self._epochs(inner, reached)
            case _:
                yield from self._overtaken(order, [number for number, _ in reached])

    def _epochs(self, inner: Order, reached: Reached) -> Iterator[Broken]:
        barriers = [number for number, route in reached if route is BARRIER]
        yield from out_of_sequence(barriers, self._places)
        kept = _longest(barriers, self._places)
        ends = [self._places[number] for number in kept]
        stays = []
        for number, route in reached:
            if route is not BARRIER:
                epoch, other = bisect_left(kept, number), bisect_left(ends, self._places[number])
                if epoch == other:
                    stays.append((epoch, (number, route)))
                else:
                    yield Broken(number, kept[min(epoch, other)])
        for part in _divided(stays).values():
            yield from self.of(inner, part)

    def _overtaken(self, order: Order, numbers: Sequence[int]) -> Iterator[Broken]:
        """Events that cover all broken pairs, each time the one in most of them. Asks for O(n) pairs."""
        pairs: defaultdict[int, set[int]] = defaultdict(set)
        for later, earlier in self._passing(numbers):
            if dependent(order, self._forms[earlier], self._forms[later]):
                pairs[later].add(earlier)
                pairs[earlier].add(later)
        most = [(-len(others), number) for number, others in pairs.items()]
        heapify(most)
        while most:
            count, number = heappop(most)
            others = pairs[number]
            if len(others) != -count:
                heappush(most, (-len(others), number))
            elif others:
                yield Broken(number, min(others))
                for other in pairs.pop(number):
                    pairs[other].discard(number)

    def _passing(self, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Pairs of an event and an earlier one that it overtook: the nearest and the farthest."""
        waiting = SortedList[int]()
        seen = 0
        place_of = {number: at for at, number in enumerate(numbers)}
        for number in sorted(numbers, key=lambda number: self._places[number]):
            at = place_of[number]
            waiting.update(numbers[seen:at])
            if at < seen:
                waiting.remove(number)
            seen = max(seen, at + 1)
            end, half = waiting.bisect_left(number), MOST_PASSED // 2
            passed = {*waiting[: min(half, end)], *waiting[max(0, end - half) : end]}
            yield from ((number, late) for late in passed)


def _divided(pairs: Any) -> dict[Any, list[Any]]:
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


FEWEST_SWAPS = 7
"""exp(-7) is less than a thousandth."""
SWAPS_FOR_EACH = 3
"""For each swapped pair of a key, so many more of the control must be swapped."""
FEWEST_MOVED = 30
"""Fewer events that moved may be single faults: too few to tell whether they are spread over the run.

So many that are spread do not miss half of the stretches of a run by chance (`spread`). The bound is a
number, not a share, since it is about evidence. So a run of fewer than about 70 events may not show its key
even if half of them moved. Then the caller has to name the key.
"""
ENOUGH_KEPT = 20
"""So many events do not all keep the order of their key by chance, unless nothing moves far enough."""
TRIED_IN_PAIRS = 8

OrderData = Any
"""An order as a comparison file has it."""


def no_noise(moved: Sequence[Broken], within: Sequence[int], keys: Keys) -> Confined | None:
    """Why events that moved against an order are no reason to loosen it; None if they are noise.

    `within` are the events that could have moved, in ascending order.
    """
    if len(moved) < FEWEST_MOVED:
        few = f"fewer than {FEWEST_MOVED} events are too few to tell noise from a difference"
        return Confined(few, _where({one.moved for one in moved}, within))
    return confined(keys, {number for one in moved for number in one}, within)


def _where(places: Collection[int], within: Sequence[int]) -> frozenset[int]:
    """The parts of a run that hold a few places, if they are not the whole run."""
    stretch = {number: at * STRETCHES // len(within) for at, number in enumerate(within)}
    touched = {stretch[place] for place in places}
    if len(touched) > QUIET * STRETCHES:
        return frozenset()
    return frozenset(number for number in within if stretch[number] in touched)


def movable(tree: Sequence[Node], order: Order, forms: Sequence[Form], moved: Sequence[Broken]) -> list[int]:
    """The events that could have moved as others did, by number: those with an order, in the same branches.

    A branch is loosened by itself, so noise inside it need not show in others; what crossed a barrier did not
    move inside a branch. `tree` has the nodes of the declared order, the outer before the inner.
    """
    kinds: set[str] = set()
    for pair in {frozenset((forms[one.moved][2], forms[one.passed][2])) for one in moved}:
        kinds.update([node.kinds for node in tree if pair.issubset(node.kinds)][-1])
    return [
        number
        for number, form in enumerate(forms)
        if form[2] in kinds and ordered_class(order, form[0]) is not None
    ]


class OrderingKey(NamedTuple):
    """A key whose events kept their order: `kept` of them follow another of their key, `broken` do not.

    `swaps` of the control did not keep theirs.
    """

    fields: tuple[str, ...]
    kept: int
    swaps: int
    broken: int = 0

    @property
    def supported(self) -> bool:
        """Whether that cannot be chance."""
        return self.swaps >= FEWEST_SWAPS


class KeyScope(NamedTuple):
    """The surroundings of a key: the fields of a declared key, and of the keys around its order.

    `without` are the kinds that do not reach it. `divided`: barriers separate events that are far apart, so a
    key that nothing moved far enough to test is no evidence.
    """

    beside: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    divided: bool = False


class _Follower(NamedTuple):
    """An event that follows another of its key: whether the two are swapped, and whether the control is."""

    before: int
    number: int
    swapped: bool
    control: bool


class Moves:
    """The paired events in the order of the reference, with the place of each partner."""

    def __init__(
        self,
        values: Sequence[Any],
        places: Sequence[int],
        unusable: Collection[Path],
        around: tuple[Path, ...] = (),
        beside: tuple[Path, ...] = (),
        partitions: Sequence[Hashable] | None = None,
    ) -> None:
        """`unusable` are the paths that differ between partners.

        Only events with equal values at `around` and `beside` have an order so far, and only those of one of
        the `partitions`, event by event.
        """
        self._columns, self._places = Members(values), places
        self._partitions = [0] * len(values) if partitions is None else partitions
        self._around, self._beside = around, beside
        self._keys = examined(self._columns, unusable)
        chain = (*around, *beside)
        self._chains = self._columns.rows(chain)
        self._neighbours = _neighbours([*zip(self._chains, self._partitions, strict=True)])
        self._paths = [
            path
            for path in keys_of(self._columns, unusable)
            if path not in chain and _recur(self._columns.rows((*chain, path)))
        ]

    def likely(self, *, divided: bool = False) -> list[OrderingKey]:
        """The supported keys that hold, else (unless `divided`) untested candidates, tightest first."""
        untested: list[OrderingKey] = []
        for size in (1, 2):
            tried = combinations(self._paths if size == 1 else self._paths[-TRIED_IN_PAIRS:], size)
            holding = [(paths, key) for paths in tried if (key := self.key(paths)) is not None]
            if supported := [key for _, key in holding if key.supported]:
                return supported
            if size == 1 and not divided:
                untested = [key for (path,), key in holding if self._may_be(path, key)]
        return untested

    def _may_be(self, path: Path, key: OrderingKey) -> bool:
        """Whether to propose a key that nothing tests: an identifier, with values about equally frequent.

        Numbers of which some are far more frequent than others are measurements, unless each is in a
        partition of its own.
        """
        often = Counter(self._columns[path])
        names = len(set(self._partitions)) > 1 or any(type(value) is str for value in often)
        return key.kept >= ENOUGH_KEPT and (names or max(often.values()) <= 2 * min(often.values()))

    def key(self, paths: tuple[Path, ...]) -> OrderingKey | None:
        """The key of some paths, if it recurs and its events kept their order, or all but a few of them.

        There is none if the events of one key are in several partitions, and thus without an order.
        """
        rows = self._columns.rows((*self._around, *self._beside, *paths))
        if not _recur(rows) or len(set(zip(rows, self._partitions, strict=True))) > len(set(rows)):
            return None
        followers = list(self._followers(rows))
        fields = tuple(map(field_text, (*self._beside, *paths)))
        found = OrderingKey(fields, len(followers), sum(one.control for one in followers))
        if not any(one.swapped for one in followers):
            return found
        groups = _divided((row, number) for number, row in enumerate(rows)).values()
        moved = [one for numbers in groups for one in out_of_sequence(numbers, self._places)]
        part = no_noise(moved, range(len(rows)), self._keys)
        if part is None:
            return None
        tested = [one for one in followers if one.number not in part.region]
        if not _is_kept(tested) or self._is_part(paths, followers):
            return None
        return found._replace(kept=len(followers) - len(moved), broken=len(moved))

    def _is_part(self, paths: tuple[Path, ...], followers: Sequence[_Follower]) -> bool:
        """Whether these are part of a key: order is kept with one more equal field, but not without it."""
        for path in self._paths:
            column = self._columns[path]
            same, other = (
                [one for one in followers if (column[one.before] == column[one.number]) is equal]
                for equal in (True, False)
            )
            clear = path not in paths and not any(one.swapped for one in same)
            if clear and _is_kept(same) and any(one.swapped for one in other) and not _is_kept(other):
                return True
        return False

    def _followers(self, rows: Sequence[Hashable]) -> Iterator[_Follower]:
        """The events that follow another of their row, each with the control."""
        places = self._places
        latest: dict[Any, int] = {}
        for number, row in enumerate(rows):
            before = latest.get(row)
            latest[row] = number
            if before is not None:
                beside = next((n for n in self._neighbours[number] if before < n and rows[n] != row), None)
                control = beside is not None and places[before] > places[beside]
                yield _Follower(before, number, places[before] > places[number], control)


def _recur(rows: Sequence[Hashable]) -> bool:
    return RECUR * len(set(rows)) <= len(rows)


def _is_kept(followers: Sequence[_Follower]) -> bool:
    """Whether far fewer followers than controls are swapped."""
    swapped = sum(one.swapped for one in followers)
    return sum(one.control for one in followers) >= FEWEST_SWAPS + SWAPS_FOR_EACH * swapped


def _neighbours(chains: Sequence[Hashable]) -> list[tuple[int, ...]]:
    """The next and the last event of the same chain, event by event."""
    after: list[tuple[int, ...]] = [()] * len(chains)
    before = list(after)
    for numbers in _divided((chain, number) for number, chain in enumerate(chains)).values():
        for one, later in pairwise(numbers):
            after[one], before[later] = (later,), (one,)
    return [(*nexts, *lasts) for nexts, lasts in zip(after, before, strict=True)]


KeyCandidates = Callable[[KeyScope], Iterator[tuple[str, ...]]]
"""The likely keys in some scope, each with the fields already there."""


EVERYWHERE = KeyScope()
MOST_DIVIDED = 64
"""At most so many ways of loosening several branches at once are tried."""


def looser(
    order: OrderData, keys: KeyCandidates, kinds: Sequence[str], scope: KeyScope = EVERYWHERE
) -> Iterator[OrderData]:
    """The orders that allow more than this one, the tightest first; `kinds` are the compared ones."""
    match order:
        case "total":
            yield from ({"per_key": list(key)} for key in keys(scope))
        case {"per_key": fields}:
            yield from ({"per_key": list(key)} for key in keys(scope._replace(beside=tuple(fields))))
        case {"by_key": fields, "inner": inner}:
            under = looser(inner, keys, kinds, scope._replace(around=(*scope.around, *fields)))
            yield from ({**order, "inner": one} for one in under if one != "unordered")
        case {"barrier": barrier, "inner": inner}:
            barriers = barrier if isinstance(barrier, list) else [barrier]
            under = looser(
                inner, keys, kinds, scope._replace(without=(*scope.without, *barriers), divided=True)
            )
            yield from ({**order, "inner": one} for one in under)
        case {"parallel": branches}:
            yield from _looser_branches(branches, keys, kinds, scope)
        case {"dependent": rules} if len(rules) > 1:
            yield from ({"dependent": [*rules[:n], *rules[n + 1 :]]} for n in range(len(rules)))
    if order != "unordered":
        yield "unordered"


def _looser_branches(
    branches: dict[str, Any], keys: KeyCandidates, kinds: Sequence[str], scope: KeyScope
) -> Iterator[OrderData]:
    """Branches with some of their orders loosened."""

    def ways(branch: dict[str, Any]) -> list[OrderData]:
        others = [kind for kind in kinds if kind not in branch["kinds"]]
        under = looser(branch["order"], keys, kinds, scope._replace(without=(*scope.without, *others)))
        return [branch, *({**branch, "order": one} for one in under)]

    every = product(*map(ways, branches.values()))
    for chosen in islice(every, 1, MOST_DIVIDED):
        yield {"parallel": dict(zip(branches, chosen, strict=True))}
