"""Which results of a reducer are right for the rows that it got, where any right one will do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.case_studies.reducers import FIRST

Event = dict[str, Any]


def is_a_largest_row(event: Event) -> bool:
    """MaxRow: one of the rows, and none has a larger y."""
    row, group = event["result"], event["group"]
    return row in group and row["y"] == max(other["y"] for other in group)


def is_n_of_the_rows(event: Event) -> bool:
    """FirstN: so many of the rows, none of them more often than it came."""
    chosen, group = (Counter((row["x"], row["y"]) for row in event[name]) for name in ("result", "group"))
    return chosen <= group and chosen.total() == min(FIRST, group.total())
