"""Holds the divergences of one comparison for the API: newest first, paged by a cursor.

The time at which a divergence was first seen is its place. So all processes list them alike, also after a
restart, and take each other's cursors.

They are bounded in number and in bytes; beyond that the oldest are dropped, and stay counted. The identity of
a divergence is small, so far more identities are kept than whole reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from sortedcontainers import SortedDict

from twinstream.status.common import DivergenceKind, Frozen, Sides
from twinstream.status.comparison import DivergenceReport, Position
from twinstream.status.timestamps import rfc3339

KEPT = 1000
"""Examples for people: the exact counts are in the status."""
KEPT_BYTES = 16 * 2**20
"""The size of all of them as JSON. One has a few KB, and at most 100 KB if records are large."""
IDENTITIES_KEPT = 100_000
"""Enough for ten shards that keep 10,000 each."""
IDENTITIES_BYTES = 64 * 2**20


class Identity(Frozen):
    """The identity of a divergence, its positions, and the fields to filter by: one line of the export."""

    id: str
    kind: DivergenceKind
    scope: dict[str, Any]
    positions: Sides[Position | None]
    first_seen: datetime
    fields: tuple[str, ...]
    explained: str | None
    late: float | None
    tainted: bool
    provisional: bool


AnyDivergence = DivergenceReport | Identity
T = TypeVar("T", DivergenceReport, Identity)
Predicate = Callable[[AnyDivergence], bool]


class Place(NamedTuple):
    """The place of a divergence among all of its comparison; `moment` is when it was first seen, in UTC.

    >>> Place.named("2026-01-01T00:00:00.000000Z/00ff00ff00ff00ff").moment
    '2026-01-01T00:00:00.000000Z'
    """

    moment: str
    id: str

    def __str__(self) -> str:
        return "/".join(self)

    @classmethod
    def named(cls, name: str) -> Place:
        """The place of this name."""
        return cls(*name.split("/"))


class Page(NamedTuple):
    """Some divergences, newest first, and the place behind which the next page begins, None at the end."""

    items: list[DivergenceReport]
    next: Place | None


def every(_one: AnyDivergence) -> bool:
    """All divergences."""
    return True


class DivergenceLog:
    """Divergences in the order in which they were first seen.

    A report with a known id replaces the older report, so a page does not jump while a scope is still being
    explained. Dropped reports leave their identity. Reports covered by a known difference have a bound of
    their own, so that they displace none that counts.
    """

    def __init__(self, kept: int = KEPT, kept_bytes: int = KEPT_BYTES) -> None:
        # Those that count, and those that are explained.
        self._reports = [_Bounded[DivergenceReport](kept, kept_bytes) for _ in range(2)]
        self._identities = [_Bounded[Identity](IDENTITIES_KEPT, IDENTITIES_BYTES) for _ in range(2)]

    def upsert(self, report: DivergenceReport) -> None:
        """Add a new divergence, or update an old one; beyond the bound the oldest is dropped."""
        part = int(report.explained is not None)
        self._forget(report.id, 1 - part)
        self._reports[part].put(report)
        self._identities[part].put(_identity(report))

    def withdraw(self, identifier: str) -> bool:
        """Forget a provisional divergence that was replaced; False if it was not known."""
        return any(self._forget(identifier, part) for part in range(2))

    def _forget(self, identifier: str, part: int) -> bool:
        self._reports[part].pop(identifier)
        return self._identities[part].pop(identifier)

    def get(self, identifier: str) -> DivergenceReport | None:
        """One divergence; None if it is not known, or no longer."""
        return self._reports[0].get(identifier) or self._reports[1].get(identifier)

    def page(self, limit: int, before: Place | None = None, wanted: Predicate = every) -> Page:
        """At most `limit` divergences that satisfy `wanted`, from those older than the place `before`.

        Runtime complexity: O(kept), which is small and bounded.
        """
        found = (one for one in _newest_first(self._reports, before) if wanted(one[1]))
        items = list(islice(found, limit + 1))
        after = items[limit - 1][0] if len(items) > limit else None
        return Page([report for _, report in items[:limit]], after)

    def identities(self) -> Iterator[Identity]:
        """All known identities, newest first."""
        return (one for _, one in _newest_first(self._identities))


def _place(one: AnyDivergence) -> Place:
    return Place(rfc3339(one.first_seen, "microseconds"), one.id)


def _identity(report: DivergenceReport) -> Identity:
    known = {name: getattr(report, name) for name in Identity.model_fields}
    return Identity(**{**known, "fields": tuple(report.fields)})


class _Bounded(Generic[T]):
    """Divergences by their places; bounded in number and in bytes, but the newest always stays."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: SortedDict[Place, tuple[T, int]] = SortedDict()
        self._places: dict[str, Place] = {}
        self._bytes = 0

    def put(self, one: T) -> None:
        """Add one, replacing the one with its id; beyond the bound the oldest are dropped."""
        self.pop(one.id)
        place, size = _place(one), len(one.model_dump_json())
        self._kept[place], self._places[one.id] = (one, size), place
        self._bytes += size
        while len(self._kept) > self._most or (self._bytes > self._most_bytes and len(self._kept) > 1):
            self.pop(self._kept.peekitem(0)[0].id)

    def pop(self, identifier: str) -> bool:
        """Remove one; returns whether it was there."""
        place = self._places.pop(identifier, None)
        if place is not None:
            self._bytes -= self._kept.pop(place)[1]
        return place is not None

    def get(self, identifier: str) -> T | None:
        """One of them."""
        place = self._places.get(identifier)
        return None if place is None else self._kept[place][0]

    def newest_first(self, before: Place | None) -> Iterator[tuple[Place, T]]:
        """Those older than a place, or all, with their places."""
        places = self._kept.irange(maximum=before, inclusive=(True, False), reverse=True)
        return ((place, self._kept[place][0]) for place in places)


def _newest_first(parts: Iterable[_Bounded[T]], before: Place | None = None) -> Iterator[tuple[Place, T]]:
    return merge(*(part.newest_first(before) for part in parts), key=itemgetter(0), reverse=True)
