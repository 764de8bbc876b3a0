"""Reports the divergences of a matcher, for good or provisionally.

A report is *provisional* while it may still be replaced or withdrawn. It is final when all of this holds:

- its scope has closed: the explanation of an open one is only the best so far;
- a checkpoint has it: after a crash a matcher may batch the input differently, and find others;
- its finding decides (`Ledger.doubted`): nothing is open any more that would taint it.

A final report stays final: later knowledge about it is also shown only when it is saved.

Reports are bounded in number and in bytes, in the matcher as in its checkpoint. The first ones are kept,
since they show best how the differences began; beyond the bound they are only counted.

All that count are summed up in groups (`twinstream.grouping`), also those beyond the bound. The groups are
saved with the reports, and shown as of the last save. So they agree with the number of saved differences.
So are the times at which these were found (`twinstream.grouping.found`).

Differences explained by known differences are reported by examples (see `known_differences`). These are kept
separately, take no room from the reports that count, and are final with the checkpoint that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import chain
from typing import Any

import structlog

from twinstream.core.accounting.halves import Divergence
from twinstream.core.diagnosis.known_differences import Covered
from twinstream.explain.divergence import Explainer
from twinstream.explain.sentences import TAINTED
from twinstream.grouping.difference import Difference
from twinstream.grouping.found import TimesFound
from twinstream.grouping.groups import Groups
from twinstream.ports import Clock, Publisher
from twinstream.reporting.open_groups import GROUPED, OpenGroups
from twinstream.reporting.truncate import shortened
from twinstream.spec.file.model import Spec
from twinstream.status import comparison as status
from twinstream.status.groups import Group

PROVISIONAL_SHOWN = 100
KEPT_BYTES = 64 * 2**20
"""The size of all reports of a matcher as saved. One has a few KB: this is room for as many as
`limits.kept_divergences` allows, and bounds how much a start has to read if records are large."""
READ_AT_ONCE = 50_000
"""The most differences of one look whose records are read for their groups: about a second. Of a larger flood
only the kind, the place and the time count, so that the matcher keeps its lease."""
GROUPED_AT_ONCE = 20_000
REPORTED_AT_ONCE = 1_000
"""Differences that are grouped, and reported, between two pauses: well below a second."""
EXPLAINED_BYTES = 8 * 2**20
"""The same for examples of explained differences."""

log = structlog.get_logger()


class Reports:
    """The reports of one comparison, by identifier.

    `unsaved` are those without a checkpoint yet, `provisional` those shown as such. `groups` and `found` sum
    up the differences of the last save.
    """

    def __init__(self, spec: Spec, explainer: Explainer, publisher: Publisher, clock: Clock) -> None:
        self._name, self._kept = spec.name, spec.limits.kept_divergences
        self._explainer, self._publisher, self._clock = explainer, publisher, clock
        self._closed: dict[str, bytes] = {}
        self._explained: dict[str, bytes] = {}
        self._bytes, self._full = 0, False
        self._number: dict[str, int] = {}
        self._final: set[str] = set()
        self._lacking: dict[str, Divergence] = {}
        self._awaiting: dict[str, status.DivergenceReport] = {}
        self.provisional: dict[str, status.DivergenceReport] = {}
        self._first_seen: dict[str, datetime] = {}
        self.unsaved: dict[str, bytes] = {}
        self._groups = Groups()
        self._open_groups = OpenGroups(explainer)
        self._unsaved: dict[int, Difference] = {}
        self._saved_total = 0
        self.groups: tuple[Group, ...] = ()
        self._found = TimesFound()
        self.found = status.FoundOverTime()

    def add(
        self, closed: Iterable[Divergence], tainted: Iterable[int], pause: Callable[[], object] = bool
    ) -> None:
        """Add the findings of closed scopes, and the numbers of those that turned out to decide nothing.

        Beyond `limits.kept_divergences` and `KEPT_BYTES` they are only counted, and grouped. While many are
        added, `pause` is called now and then.
        """
        found, seen = list(closed), self._clock.now()
        for place, divergence in enumerate(found):
            outline = self._explainer.outline if place < READ_AT_ONCE else self._explainer.outline_unread
            self._group(divergence, outline, seen)
            if place % GROUPED_AT_ONCE == GROUPED_AT_ONCE - 1:
                pause()
        kept = [divergence for divergence in found if divergence.number < self._kept]
        for place, divergence in enumerate(self._each(kept)):
            self._close(divergence)
            if place % REPORTED_AT_ONCE == REPORTED_AT_ONCE - 1:
                pause()
        self._taint(set(tainted))

    def _group(
        self, divergence: Divergence, outline: Callable[[Divergence], Difference], seen: datetime
    ) -> None:
        """Count a divergence in its group, and by its time: that of its report, or when it is `seen` here.

        One found again under another kind leaves its first group, and keeps its time.
        """
        now = outline(divergence)
        is_new = divergence.number >= self._saved_total and len(self._unsaved) < GROUPED
        if is_new or divergence.number in self._unsaved:
            self._unsaved[divergence.number] = now
        if divergence.number >= self._groups.total:
            self._groups.add(now)
            self._found.add(self._first_seen_of(now.id()) if divergence.number < self._kept else seen)
        elif divergence.finding.kind != divergence.first.kind:
            first = outline(divergence._replace(finding=divergence.first))
            self._groups.move(divergence.number, first, now)

    def add_explained(self, covered: Iterable[Covered]) -> None:
        """Add examples of differences that known differences have explained, as long as there is room."""
        rules = {id(one.finding): one.rule for one in covered}
        found = [Divergence(one.finding, tainted=False, first=one.finding) for one in covered]
        for divergence in self._each(found):
            report = self._report(divergence)
            self._first_seen.pop(report.id, None)
            if sum(map(len, self._explained.values())) < EXPLAINED_BYTES:
                self._number[report.id] = divergence.number
                self._await(report.model_copy(update={"explained": rules[id(divergence.finding)]}))

    def _each(self, divergences: Sequence[Divergence]) -> Iterator[Divergence]:
        """Each divergence, while all available content of its events is at hand."""
        start = 0
        while start < len(divergences):
            some = divergences[start : start + self._explainer.at_once]
            with self._at_hand(some):
                yield from some
            start += len(some)

    def _close(self, divergence: Divergence) -> None:
        report = self._report(divergence)
        if report.id not in self._closed and not self._has_room():
            self._first_seen.pop(report.id, None)
            return
        self._lacking.pop(report.id, None)
        if self._explainer.lacks(self._explainer.needs(divergence)):
            self._lacking[report.id] = divergence
        self._number[report.id] = divergence.number
        self._await(report)

    def _catch_up(self) -> None:
        """Report again the divergences whose content was not at hand, as far as it is now.

        Those still without content move behind the others, so that they do not hold these up.
        """
        left, failed = list(self._lacking.items()), []
        while left:
            some, left = left[: self._explainer.at_once], left[self._explainer.at_once :]
            with self._at_hand(divergence for _, divergence in some):
                still = [one for one in some if not self._completed(*one)]
            failed += still
            if len(still) == len(some):
                break
        self._lacking = dict(left + failed)

    def _completed(self, key: str, divergence: Divergence) -> bool:
        if self._explainer.lacks(self._explainer.needs(divergence)):
            return False
        known = status.DivergenceReport.model_validate_json(self._closed[key])
        self._number[key] = divergence.number
        self._await(self._report(divergence._replace(tainted=known.tainted)))
        return True

    def _at_hand(self, divergences: Iterable[Divergence]) -> AbstractContextManager[None]:
        """Within this context, all available content of these divergences is at hand."""
        return self._explainer.at_hand(chain.from_iterable(map(self._explainer.needs, divergences)))

    def _has_room(self) -> bool:
        """Whether there is room for one more report."""
        if self._bytes >= KEPT_BYTES and not self._full:
            self._full = True
            count, size = len(self._closed), self._bytes
            log.warning("further divergences are only counted", comparison=self._name, kept=count, bytes=size)
        return not self._full

    def _taint(self, numbers: Set[int]) -> None:
        for key in [key for key, number in self._number.items() if number in numbers]:
            report = status.DivergenceReport.model_validate_json(self._closed[key])
            if not report.tainted:
                said = {"tainted": True, "text": f"{report.text} {TAINTED}"}
                self._await(report.model_copy(update=said))

    def _await(self, report: status.DivergenceReport) -> None:
        """Let a report become final with the save that contains it.

        It replaces the one with its id. That may be explained: an event whose other half has come now.
        """
        data = report.model_dump_json().encode()
        if report.explained is None:
            self._bytes += len(data) - len(self._closed.get(report.id, b""))
            self._explained.pop(report.id, None)
        self._of(report)[report.id] = self.unsaved[report.id] = data
        self._awaiting[report.id] = report.model_copy(update={"provisional": True})
        self._first_seen.pop(report.id, None)

    def _of(self, report: status.DivergenceReport) -> dict[str, bytes]:
        """The mapping that holds a report."""
        return self._closed if report.explained is None else self._explained

    def show(self, explanations: Sequence[Divergence]) -> None:
        """Report provisionally the findings that are not final, and the explanations of open scopes.

        They replace those of the last call.
        """
        self._catch_up()
        shown = explanations[:PROVISIONAL_SHOWN]
        found = [self._report(one, provisional=True) for one in self._each(shown)]
        reports = {report.id: report for report in found}
        reports.update((key, report) for key, report in self._awaiting.items() if key not in self._final)
        for key in self.provisional.keys() - reports.keys():
            self._first_seen.pop(key, None)
            self._publisher.publish(status.Withdrawn(id=key, comparison=self._name))
        for key, report in reports.items():
            if (before := self.provisional.get(key)) is not report and before != report:
                self._publisher.publish(report)
        self.provisional = reports

    def provisional_groups(self, explanations: Sequence[Divergence]) -> tuple[Group, ...]:
        """The groups of the explanations of open scopes, and of all that no checkpoint has yet.

        Their examples are among the reports.
        """
        unsaved = self._groups.total - self._saved_total
        return tuple(
            group.model_copy(update={"examples": [one for one in group.examples if one in self.provisional]})
            for group in self._open_groups.of(explanations, self._unsaved.values(), unsaved)
        )

    def saved(self, doubted: Set[int]) -> None:
        """A checkpoint has everything added; reports with a number in `doubted` are not final yet."""
        self.unsaved = {}
        self._unsaved, self._saved_total = {}, self._groups.total
        self.groups, self.found = self._groups.told(), self._found.told()
        for key, report in tuple(self._awaiting.items()):
            if self._number[key] not in doubted:
                self._publisher.publish(report.model_copy(update={"provisional": False}))
                self._final.add(key)
                self.provisional.pop(key, None)
                del self._awaiting[key], self._number[key]

    def lost(self) -> None:
        """Treat everything as unsaved: the store has lost an unknown part."""
        self.unsaved = {**self._closed, **self._explained}

    def awaits(self, doubted: Set[int]) -> bool:
        """Whether another save makes something final."""
        return any(self._number[key] not in doubted for key in self._awaiting)

    def state(self, doubted: Set[int]) -> dict[str, dict[str, Any]]:
        """For a checkpoint: groups, times, when open ones were first seen, numbers of those still doubted."""
        return {
            "groups": self._groups.state(),
            "found": self._found.told().model_dump(),
            "first_seen": {key: moment.isoformat() for key, moment in self._first_seen.items()},
            "doubted": {key: number for key, number in self._number.items() if number in doubted},
        }

    def resume(
        self,
        saved: Mapping[str, bytes],
        first_seen: Mapping[str, str],
        doubted: Mapping[str, int],
        groups: Groups | None = None,
        found: TimesFound | None = None,
    ) -> None:
        """Take over the saved reports and their sums, and publish the reports: only they remain valid."""
        self._groups, self._found = groups or Groups(), found or TimesFound()
        self._unsaved, self._saved_total = {}, self._groups.total
        self.groups, self.found = self._groups.told(), self._found.told()
        self._closed, self._explained = {}, {}
        self._lacking = {}
        self._first_seen = {key: datetime.fromisoformat(at) for key, at in first_seen.items()}
        self._publisher.publish(status.Resumed(comparison=self._name, divergences=tuple(saved)))
        for key, data in saved.items():
            report = status.DivergenceReport.model_validate_json(data)
            self._of(report)[key] = data
            if key in doubted:
                self._number[key] = doubted[key]
                self._awaiting[key] = report.model_copy(update={"provisional": True})
            else:
                self._final.add(key)
                self._publisher.publish(report)
        self._bytes, self._full = sum(map(len, self._closed.values())), False

    def _report(self, divergence: Divergence, *, provisional: bool = False) -> status.DivergenceReport:
        plain = shortened(self._explainer.report(divergence))
        first_seen = self._first_seen_of(plain["id"])
        more = {"comparison": self._name, "provisional": provisional, "first_seen": first_seen}
        return status.DivergenceReport.model_validate({**plain, **more, "late": divergence.late})

    def _first_seen_of(self, key: str) -> datetime:
        """When a divergence was first seen; one reported again keeps its time."""
        for kept in (self._closed, self._explained):
            if key in kept:
                return status.DivergenceReport.model_validate_json(kept[key]).first_seen
        return self._first_seen.setdefault(key, self._clock.now())
