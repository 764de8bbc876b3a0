"""The divergences of one comparison as the API knows them: newest first, bounded, paged by a cursor."""

from __future__ import annotations

from dataclasses import dataclass

from twinstream.status import DivergenceKind, DivergenceReport

KEPT = 1000
"""Examples for people: the exact counts are in the status."""


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

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._by_id: dict[str, tuple[int, DivergenceReport]] = {}
        self._last = 0

    def upsert(self, report: DivergenceReport) -> None:
        """Take in a new divergence, or what is now known of an old one; beyond the bound the oldest goes."""
        known = self._by_id.get(report.id)
        if known is not None:
            self._by_id[report.id] = (known[0], report)
            return
        self._last += 1
        self._by_id[report.id] = (self._last, report)
        if len(self._by_id) > self._kept:
            del self._by_id[next(iter(self._by_id))]

    def withdraw(self, identifier: str) -> bool:
        """Forget a provisional divergence that something else replaced; False if it was not known."""
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
