"""Keeps what is final while a matcher starts again, until it has loaded what is saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twinstream.status.common import DIVERGENCE_KINDS, DivergenceCounts
from twinstream.status.comparison import ComparisonStatus


def merged_counts(
    parts: Iterable[DivergenceCounts], choose: Callable[[list[int]], int] = sum
) -> DivergenceCounts:
    """The counts of each kind, added up; or with `max`, the highest of them."""
    counts = list(parts)
    by_kind = {kind: choose([part.by_kind.get(kind, 0) for part in counts]) for kind in DIVERGENCE_KINDS}
    return DivergenceCounts(total=sum(by_kind.values()), by_kind=by_kind)


def keeping_final(status: ComparisonStatus, before: ComparisonStatus | None) -> ComparisonStatus:
    """A status that has at least the final differences of the one before, unless their beginning has ended.

    Each beginning has a `started_at` of its own. A matcher that loads what is saved does not know it yet:
    until then the final differences stay with that of the status before.

    An equal number of resets does not tell that there was none: a store that has lost one may count as many
    after the next. A higher one tells that there was one, also where its record is lost.

    The final ones, their groups and their times stay together. What is provisional is always that of the
    newest status; so all are those that are final, and those that it has besides.
    """
    if before is None or status.reset_count > before.reset_count:
        return status
    if {one.id for one in status.resets} - {one.id for one in before.resets}:
        return status
    if status.waiting_for is None and status.started_at != before.started_at:
        return status
    update: dict[str, object] = {}
    if status.reset_count < before.reset_count:  # It is not loaded yet, or a store has lost the reset.
        update |= {"reset_count": before.reset_count, "resets": before.resets}
    if before.counted.total:
        update["started_at"] = before.started_at
    if (never_less := merged_counts([before.counted, status.counted], max)) != status.counted:
        update["counted_divergences"] = never_less
    own, final = status.closed_divergences, before.closed_divergences
    if own.total < final.total:
        update |= {
            "divergences": merged_counts([final, status.divergences.beyond(own)]),
            "closed_divergences": final,
            "groups": before.groups,
            "found": before.found,
        }
    return status.model_copy(update=update) if update else status
