"""The divergences of one comparison as the API knows them: newest first, paged by a cursor.

They are bounded in number and in bytes; beyond that the oldest go, and stay counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinstream.status import DivergenceKind, DivergenceReport

KEPT = 1000
"""Examples for people: the exact counts are in the status."""
KEPT_BYTES = 16 * 2**20
"""All of them as JSON. One is of a few KB, and of 100 KB at most where records are large."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some divergences, newest first, and the cursor of the next page, None at the end."""

    items: list[DivergenceReport]
    next: int | None


class DivergenceLog:
    """Divergences in the order in which they were first heard of.

    A report with a known id replaces the older report and keeps its place, so a page does not jump while a
    scope is still being explained.
    """

    def __init__(self, kept: int = KEPT, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept, self._kept_bytes = kept, kept_bytes
        self._by_id: dict[str, tuple[int, DivergenceReport]] = {}
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._last = 0

    def upsert(self, report: DivergenceReport) -> None:
        """Take in a new divergence, or what is now known of an old one; beyond the bound the oldest goes."""
        known = self._by_id.get(report.id)
        if known is None:
            self._last += 1
        self._by_id[report.id] = (self._last if known is None else known[0], report)
        self._weigh(report)
        while len(self._by_id) > self._kept or (self._bytes > self._kept_bytes and len(self._by_id) > 1):
            self.withdraw(next(iter(self._by_id)))

    def _weigh(self, report: DivergenceReport) -> None:
        size = len(report.model_dump_json())
        self._bytes += size - self._sizes.get(report.id, 0)
        self._sizes[report.id] = size

    def withdraw(self, identifier: str) -> bool:
        """Forget a provisional divergence that something else replaced; False if it was not known."""
        self._bytes -= self._sizes.pop(identifier, 0)
        return self._by_id.pop(identifier, None) is not None

    def get(self, identifier: str) -> DivergenceReport | None:
        """One divergence; None if it is not known, or no longer."""
        known = self._by_id.get(identifier)
        return known[1] if known else None

    def page(self, limit: int, before: int | None = None, kind: DivergenceKind | None = None) -> Page:
        """At most `limit` divergences of `kind` that are older than the cursor `before`.

        Runtime complexity: O(kept), which is small and bounded.
        """
        found = [
            (number, report)
            for number, report in reversed(self._by_id.values())
            if (before is None or number < before) and (kind is None or report.kind == kind)
        ]
        items = found[:limit]
        return Page([report for _, report in items], items[-1][0] if len(found) > limit else None)
