"""Which order two runs have kept, from the tightest on: a sequence, a sequence for each key, none.

A key is likely when all events of one value of it are in the same order in both runs. That alone may be
chance: a field that hardly repeats, or two runs in which hardly anything has moved. So it is held against a
control: wherever two events of one key follow each other, the neighbour of the later one has another key. If
keys did not matter, as many of the first would be swapped as of the second. A key is *supported* when none of
the first are and at least `FEWEST_SWAPS` of the second: by chance that happens less than once in a thousand
times. Where events moved less far than those of one key stand apart, as of devices that report in turn, a key
can be neither supported nor ruled out: it is proposed, being tighter than no order, and said to be open.

Looser orders than a declared one allow whatever it allows: another field is added to its key, the inner order
of a barrier is loosened before the barrier is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

from twinstream.spec.calibration.evidence import Columns, Undecided, can_be_named, field_text
from twinstream.spec.paths import Path

FEWEST_SWAPS = 7
"""exp(-7) is less than a thousandth."""
ENOUGH_MOVED = 20
"""Where so many neighbours have changed places, a key that is not supported and hardly repeats is none."""
ENOUGH_KEPT = 20
"""So many events do not all stay behind those of their key by chance, unless nothing moves far enough."""
TRIED_IN_PAIRS = 8

Order = Any
"""An order as a comparison file has it."""


class Key(NamedTuple):
    """A key whose events kept their order: `kept` of them follow another of their key."""

    fields: tuple[str, ...]
    kept: int
    swaps: int

    @property
    def supported(self) -> bool:
        """Whether that is no chance."""
        return self.swaps >= FEWEST_SWAPS


class Moves:
    """The paired events in the order of the reference, with the place of each partner."""

    def __init__(self, values: Sequence[Any], places: Sequence[int], unusable: Sequence[Path]) -> None:
        """`unusable` are the paths that differ between partners."""
        self._columns, self._places = Columns(values), places
        self._paths = [path for path in self._columns.paths if path not in unusable and self._repeats(path)]

    def _repeats(self, path: Path) -> bool:
        column = self._columns[path]
        return can_be_named(path) and None not in column and 1 < len(set(column)) < len(column)

    @property
    def moved(self) -> int:
        """How many neighbours have changed places."""
        return sum(one > other for one, other in pairwise(self._places))

    def keys(self, beside: tuple[Path, ...] = (), *, between_barriers: bool = False) -> list[Key]:
        """The supported keys that hold, else those that may, tightest first; each has `beside`, too.

        `between_barriers`: barriers keep apart what stands far apart, so that this says nothing of a key.

        Raises Undecided where keys hold and too little has moved to tell which of them counts.
        """
        ranked = sorted(self._paths, key=lambda path: len(set(self._columns[path])))
        ranked = [path for path in ranked if path not in beside]
        untested: list[Key] = []
        for size in (1, 2):
            tried = combinations(ranked if size == 1 else ranked[-TRIED_IN_PAIRS:], size)
            holding = [key for paths in tried if (key := self.key((*beside, *paths))) is not None]
            if supported := [key for key in holding if key.supported]:
                return supported
            if holding and self.moved < ENOUGH_MOVED:
                names = ", ".join(f"`{'+'.join(key.fields)}`" for key in holding[:4])
                raise Undecided(
                    f"the order differs in {self.moved} places, too few to tell whether it is kept for each "
                    f"{names}; give the key by --key, an order in a comparison file, or longer runs"
                )
            untested = untested or [key for key in holding if key.kept >= ENOUGH_KEPT]
        return [] if between_barriers else untested

    def key(self, paths: tuple[Path, ...]) -> Key | None:
        """The key of some paths, if its events kept their order."""
        rows, places = self._columns.rows(paths), self._places
        latest: dict[Any, int] = {}
        swaps = 0
        for i, row in enumerate(rows):
            before = latest.get(row)
            latest[row] = i
            if before is None:
                continue
            if places[before] > places[i]:
                return None
            control = next((j for j in (i + 1, i - 1) if before < j < len(rows) and rows[j] != row), None)
            swaps += control is not None and places[before] > places[control]
        return Key(tuple(map(field_text, paths)), len(rows) - len(latest), swaps)


Keys = Callable[[tuple[str, ...], tuple[str, ...]], Iterator[tuple[str, ...]]]
"""The likely keys of some kinds (those that are left when barriers are taken out), beside given fields."""


def looser(order: Order, keys: Keys, without: tuple[str, ...] = ()) -> Iterator[Order]:
    """The orders that allow more than this one, the tightest first; `without` are kinds of outer barriers."""
    if order == "total":
        yield from ({"per_key": list(key)} for key in keys((), without))
    elif isinstance(order, dict) and "per_key" in order:
        yield from ({"per_key": list(key)} for key in keys(tuple(order["per_key"]), without))
    elif isinstance(order, dict) and "by_key" in order:
        inner = looser(order["inner"], keys, without)
        yield from ({**order, "inner": one} for one in inner if one != "unordered")
    elif isinstance(order, dict) and "barrier" in order:
        barriers = order["barrier"] if isinstance(order["barrier"], list) else [order["barrier"]]
        inner = looser(order["inner"], keys, (*without, *barriers))
        yield from ({**order, "inner": one} for one in inner)
    if order != "unordered":
        yield "unordered"
