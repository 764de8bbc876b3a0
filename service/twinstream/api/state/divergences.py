"""Holds the divergences of one comparison for the API: newest first, paged by a cursor.

They are bounded in number and in bytes; beyond that the oldest are dropped, and stay counted. The identity of
a divergence is small, so far more identities are kept than whole reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from twinstream.status.common import DivergenceKind, Frozen, Sides
from twinstream.status.comparison import DivergenceReport, Position

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


class Page(NamedTuple):
    """Some divergences, newest first, and the cursor of the next page, None at the end."""

    items: list[DivergenceReport]
    next: int | None


def every(_one: AnyDivergence) -> bool:
    """All divergences."""
    return True


class DivergenceLog:
    """Divergences in the order in which they first came.

    A report with a known id replaces the older report and keeps its place, so a page does not jump while a
    scope is still being explained. Dropped reports leave their identity. Reports covered by a known
    difference have a bound of their own, so that they displace none that counts.
    """

    def __init__(self, kept: int = KEPT, kept_bytes: int = KEPT_BYTES) -> None:
        # Those that count, and those that are explained.
        self._reports = [_Bounded[DivergenceReport](kept, kept_bytes) for _ in range(2)]
        self._identities = [_Bounded[Identity](IDENTITIES_KEPT, IDENTITIES_BYTES) for _ in range(2)]
        self._last = 0

    def upsert(self, report: DivergenceReport) -> None:
        """Add a new divergence, or update an old one; beyond the bound the oldest is dropped."""
        part = int(report.explained is not None)
        number = self._reports[part].number(report.id)
        if number is None:
            self.withdraw(report.id)
            self._last += 1
            number = self._last
        self._reports[part].put(number, report)
        self._identities[part].put(number, _identity(report))

    def withdraw(self, identifier: str) -> bool:
        """Forget a provisional divergence that was replaced; False if it was not known."""
        for reports in self._reports:
            reports.pop(identifier)
        return any(identities.pop(identifier) for identities in self._identities)

    def get(self, identifier: str) -> DivergenceReport | None:
        """One divergence; None if it is not known, or no longer."""
        return self._reports[0].get(identifier) or self._reports[1].get(identifier)

    def page(self, limit: int, before: int | None = None, wanted: Predicate = every) -> Page:
        """At most `limit` divergences that satisfy `wanted`, from those older than the cursor `before`.

        Runtime complexity: O(kept), which is small and bounded.
        """
        found = (
            (number, report)
            for number, report in _newest_first(self._reports)
            if (before is None or number < before) and wanted(report)
        )
        items = list(islice(found, limit + 1))
        after = items[limit - 1][0] if len(items) > limit else None
        return Page([report for _, report in items[:limit]], after)

    def identities(self) -> Iterator[Identity]:
        """All known identities, newest first."""
        return (one for _, one in _newest_first(self._identities))


def _identity(report: DivergenceReport) -> Identity:
    known = {name: getattr(report, name) for name in Identity.model_fields}
    return Identity(**{**known, "fields": tuple(report.fields)})


class _Bounded(Generic[T]):
    """Divergences, oldest first, each with the number that gives its place among all.

    They are bounded in number and in bytes; the last one always stays.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: dict[str, tuple[int, T, int]] = {}
        self._bytes = 0

    def put(self, number: int, one: T) -> None:
        """Add one, replacing the one with its id; beyond the bound the oldest are dropped."""
        size = len(one.model_dump_json())
        self._bytes += size - self._kept.get(one.id, (number, one, 0))[2]
        self._kept[one.id] = number, one, size
        while len(self._kept) > self._most or (self._bytes > self._most_bytes and len(self._kept) > 1):
            self.pop(next(iter(self._kept)))

    def pop(self, identifier: str) -> bool:
        """Remove one; returns whether it was there."""
        gone = self._kept.pop(identifier, None)
        self._bytes -= 0 if gone is None else gone[2]
        return gone is not None

    def number(self, identifier: str) -> int | None:
        """The number of one of them."""
        found = self._kept.get(identifier)
        return found and found[0]

    def get(self, identifier: str) -> T | None:
        """One of them."""
        found = self._kept.get(identifier)
        return found and found[1]

    def newest_first(self) -> Iterator[tuple[int, T]]:
        """All of them, with their numbers."""
        return ((number, one) for number, one, _ in reversed(self._kept.values()))


def _newest_first(parts: Iterable[_Bounded[T]]) -> Iterator[tuple[int, T]]:
    return merge(*(part.newest_first() for part in parts), key=lambda one: -one[0])
