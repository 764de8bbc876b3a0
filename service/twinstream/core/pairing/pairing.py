"""Pairs the events of two finite pieces under an order: the comparison behind every explanation.

Each piece is the events that one side wrote in a part of the order, as they came. Pairing removes as few
events as it can find so that the rest of both pieces is one trace; the removed events are the difference. By
the order of the pieces:

- a bag is paired by counts;
- a sequence by a longest common subsequence (see `alignment`);
- lanes, keys and branches each by themselves;
- epochs by aligning their barriers first (see `epoch_pairing`);
- rules and functions by a common subsequence that is then completed (see `rule_pairing`).

While the streams go on, an event without a partner is only a difference where the other side is past it;
else it is left over as *tail*. Pieces that are `whole` have no tail.

For abcd and c the fewest differences is one, if a and b are yet to come: c moved to the front. But c can only
have moved past events already seen; until then a and b count as missing. So while the streams go on, such
pieces get a guess, which names their differences and never makes the sides meet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from twinstream.core.events import Letter, Near, Side
from twinstream.core.order import Branches, Epochs, Keyed, Lanes, Order
from twinstream.core.pairing.alignment import Alignment, align
from twinstream.core.pairing.epoch_pairing import pair_epochs
from twinstream.core.pairing.pieces import ALIGNMENT_BUDGET, Item, Items, Pairing, Related, count_behind
from twinstream.core.pairing.rule_pairing import pair_related
from twinstream.core.pairing.tolerant import matching

MANY = 64
"""Differences from which an open alignment may only have removed one side and reached its end."""


def pair(order: Order, left: Items, right: Items, related: Related, *, whole: bool) -> Pairing:
    """Pair two pieces under their order, all pairs sorted by their place on the left.

    Complexity: O(n d) for n events and d differences, d bounded by `ALIGNMENT_BUDGET`.
    """
    pairing = _pair(order, related, left, right, whole)
    pairing.pairs.sort()
    return pairing


def _pair(order: Order, related: Related, left: Items, right: Items, whole: bool) -> Pairing:
    match order:
        case Lanes():
            lanes = _groups(left, right, lambda item: item.route)
            parts = [_pair_lane(lane, *pieces, whole) for lane, pieces in lanes.items()]
            return parts[0] if len(parts) == 1 else _united(parts)
        case Keyed(inner):
            return _pair_groups(lambda _key: inner, related, left, right, whole)
        case Branches(orders):
            return _pair_groups(orders.__getitem__, related, left, right, whole)
        case Epochs(inner):
            return pair_epochs(partial(_pair, inner, related), left, right, whole=whole)
        case _:
            return pair_related(left, right, related, whole=whole)


def _pair_groups(
    order_of: Callable[[Any], Order], related: Related, left: Items, right: Items, whole: bool
) -> Pairing:
    parts = []
    for key, pieces in _groups(left, right, lambda item: item.route[0]).items():
        inner = [[item._replace(route=item.route[1]) for item in piece] for piece in pieces]
        parts.append(_pair(order_of(key), related, inner[0], inner[1], whole))
    return _united(parts)


def _united(parts: Iterable[Pairing]) -> Pairing:
    """The pairing of independent parts."""
    pairing = Pairing()
    for part in parts:
        pairing.include(part)
    pairing.clean = 0 if pairing.different else len(pairing.pairs)
    return pairing


def _groups(
    left: Items, right: Items, key_of: Callable[[Item], Hashable]
) -> dict[Hashable, tuple[list[Item], list[Item]]]:
    groups: dict[Hashable, tuple[list[Item], list[Item]]] = {}
    for side, piece in ((Side.LEFT, left), (Side.RIGHT, right)):
        for item in piece:
            groups.setdefault(key_of(item), ([], []))[side].append(item)
    return groups


def _pair_lane(lane: Hashable, left: Items, right: Items, whole: bool) -> Pairing:
    return pair_bag(left, right, whole=whole) if type(lane) is bytes else _pair_sequence(left, right, whole)


def pair_bag(left: Items, right: Items, *, whole: bool) -> Pairing:
    """Pair by counts: the n-th copy of a letter with the n-th on the other side.

    Complexity: O(n); with a tolerance that of a largest matching of the alike events (see `tolerant`).
    """
    pairs = _largest(left, right) if left and isinstance(left[0].letter, Near) else _counted(left, right)
    paired = {i for i, _ in pairs}, {j for _, j in pairs}
    lacking = [item.place for item in left if item.place not in paired[0]]
    surplus = [item.place for item in right if item.place not in paired[1]]
    if whole:
        return Pairing(pairs, rest=(lacking, surplus), clean=0 if lacking or surplus else len(pairs))
    return Pairing(pairs, tail=(lacking, surplus), clean=len(pairs))


def _counted(left: Items, right: Items) -> list[tuple[int, int]]:
    waiting: dict[Letter, deque[int]] = {}
    for item in left:
        waiting.setdefault(item.letter, deque()).append(item.place)
    return [(copies.popleft(), item.place) for item in right if (copies := waiting.get(item.letter))]


def _largest(left: Items, right: Items) -> list[tuple[int, int]]:
    pairs = []
    for ours, theirs in _groups(left, right, lambda item: hash(item.letter)).values():
        for i, j in matching(ours, theirs, lambda one, other: one.letter == other.letter):
            pairs.append((ours[i].place, theirs[j].place))
    return pairs


def _pair_sequence(left: Items, right: Items, whole: bool) -> Pairing:
    letters = _letters(left), _letters(right)
    alignment = _aligned(*letters, whole=whole)
    guessed = _moved_past_nothing(alignment, *letters)
    if guessed:
        alignment = align(*letters, 0)
    gaps = (
        _gaps((i for i, _ in alignment.pairs), alignment.left_end),
        _gaps((j for _, j in alignment.pairs), alignment.right_end),
    )
    tails = left[alignment.left_end :], right[alignment.right_end :]
    return Pairing(
        [(left[i].place, right[j].place) for i, j in alignment.pairs],
        rest=([left[i].place for i in gaps[0]], [right[j].place for j in gaps[1]]),
        tail=([item.place for item in tails[0]], [item.place for item in tails[1]]),
        clean=0 if guessed else count_behind(alignment.pairs, gaps),
    )


def _aligned(left: Sequence[Letter], right: Sequence[Letter], *, whole: bool) -> Alignment:
    """The alignment with the fewest differences; if these are many, the one of two that pairs more events."""
    alignment = align(left, right, ALIGNMENT_BUDGET, whole=whole)
    if whole or alignment.left_end + alignment.right_end - 2 * len(alignment.pairs) < MANY:
        return alignment
    other = align(left, right, 0)
    return max(alignment, other, key=lambda one: len(one.pairs))


def _moved_past_nothing(alignment: Alignment, left: Sequence[Letter], right: Sequence[Letter]) -> bool:
    """Whether a difference behind all pairs equals an event of the tail: it would have moved past no pair."""
    last_left, last_right = alignment.pairs[-1] if alignment.pairs else (-1, -1)
    behind = left[last_left + 1 : alignment.left_end], right[last_right + 1 : alignment.right_end]
    tails = left[alignment.left_end :], right[alignment.right_end :]
    return not (set(behind[0]).isdisjoint(tails[1]) and set(behind[1]).isdisjoint(tails[0]))


def _letters(items: Items) -> list[Letter]:
    return [item.letter for item in items]


def _gaps(taken: Iterable[int], end: int) -> list[int]:
    """The positions below `end` that are not taken."""
    return sorted(set(range(end)).difference(taken))
