"""Puts holes into words: each reason names topic, partition and side, as far as they are known.

The code that makes a hole may write `PLACE` in its reason, since the core knows no topics. Any other reason
gets the place put before it. So every reason is made public here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable

from twinstream.core.accounts import PLACE, Hole
from twinstream.core.events import Side
from twinstream.explain.divergence import NAMES
from twinstream.spec.file.model import Spec


def place_of(topic: str, side: Side, partition: int | None) -> str:
    """A place in words.

    >>> place_of("orders.v1", Side.LEFT, 0), place_of("orders.v2", Side.RIGHT, None)
    ('orders.v1 partition 0 (reference)', 'orders.v2 (candidate)')
    """
    where = "" if partition is None else f" partition {partition}"
    return f"{topic}{where} ({NAMES[side]})"


def offsets(first: int, end: int) -> str:
    """The offsets from `first` up to and without `end`.

    >>> offsets(1100, 1700), offsets(5, 6)
    ('offsets 1,100–1,699', 'offset 5')
    """
    return f"offset {first:,}" if end - first == 1 else f"offsets {first:,}–{end - 1:,}"


def of_gap(wanted: int, available: int) -> str:
    """Why a gap between the next expected offset and the first readable one is a hole."""
    if available > wanted:
        them = "it was" if available - wanted == 1 else "they were"
        return f"Kafka no longer has {offsets(wanted, available)} of {PLACE}; {them} not compared"
    return (
        f"offset {wanted:,} of {PLACE} was next, but the partition ends below it and begins at "
        f"{available:,}: the topic was created anew or cut off"
    )


def of_falls(first: int, end: int, falls: int) -> str:
    """Why a batch that made matchers fall is a hole."""
    them = "it was" if end - first == 1 else "they were"
    return f"the matcher fell {falls} times while it took {offsets(first, end)} of {PLACE}; {them} left out"


def told(hole: Hole, spec: Spec) -> str:
    """The public reason of a hole, with its place."""
    if hole.side is None:
        return hole.reason
    place = place_of(spec.version_of(hole.side).topic, hole.side, hole.partition)
    return hole.reason.replace(PLACE, place) if PLACE in hole.reason else f"{place}: {hole.reason}"


def doubts(holes: Iterable[Hole], spec: Spec) -> list[str]:
    """The reasons of some holes; a reason that recurs at many places names only the first."""
    alike: dict[str, dict[str, None]] = {}
    for hole in holes:
        alike.setdefault(hole.reason, {})[told(hole, spec)] = None
    return [_first_of(list(reasons)) for reasons in alike.values()]


def _first_of(reasons: list[str]) -> str:
    others = len(reasons) - 1
    if not others:
        return reasons[0]
    return f"{reasons[0]}, and the same in {others:,} other place{'s' if others > 1 else ''}"
