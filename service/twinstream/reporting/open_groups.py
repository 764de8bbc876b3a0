"""Sums up in groups the differences that are still provisional, at each look again.

A bug that changes every event of a key keeps its scope open: the sides never meet again. So most of its
differences may be provisional for long, and a person has to see them in groups all the same.

The explanation of an open scope may change as a whole, so there is nothing to add to: all are grouped again.
Those of closed scopes that no checkpoint has yet are provisional, too, and come first.
Reading a record is dear. So only so many new ones are read at a look; until its turn comes, a difference
counts by kind and place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twinstream.core.accounting.halves import Divergence
from twinstream.core.diagnosis.findings import Finding
from twinstream.explain.divergence import Explainer
from twinstream.grouping.difference import Difference
from twinstream.grouping.groups import Groups
from twinstream.status.groups import Group

READ_AT_A_LOOK = 500
"""About 20 ms, once a second."""
GROUPED = 10_000
"""More at a look take too long; the others are only counted."""
_Key = tuple[str, int, int]
"""The kind of a finding, and its events: they stay the same objects while they wait."""


class OpenGroups:
    """The groups of provisional differences.

    Complexity: 2 µs a difference that was there at the last look, 30 µs a new one that is read.
    """

    def __init__(self, explainer: Explainer) -> None:
        self._explainer = explainer
        self._read: dict[_Key, tuple[Finding, Difference]] = {}

    def of(
        self, divergences: Sequence[Divergence], unsaved: Collection[Difference], unsaved_count: int
    ) -> tuple[Group, ...]:
        """The groups of the differences of open scopes, and of the unsaved ones; they count all of both."""
        groups, read, left = Groups(), dict[_Key, tuple[Finding, Difference]](), READ_AT_A_LOOK
        for difference in unsaved:
            groups.add(difference)
        for divergence in divergences[: GROUPED - len(unsaved)]:
            finding = divergence.finding
            key = finding.kind, id(finding.left), id(finding.right)
            known = self._read.get(key)
            if known is None and left:
                known, left = (finding, self._explainer.outline(divergence)), left - 1
            if known is not None:
                read[key] = known
            groups.add(known[1] if known is not None else self._explainer.outline_unread(divergence))
        groups.skip_to(len(divergences) + unsaved_count)
        self._read = read
        return groups.told()
