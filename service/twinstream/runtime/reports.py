"""What a matcher reports of the differences that it finds: final ones, and the best guess for others.

Final are the differences of closed scopes; they are saved with the next checkpoint. An explanation of an open
scope is *provisional*: it is withdrawn where a better one takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from twinstream import status
from twinstream.core.ledger import Divergence
from twinstream.ports import Clock, Publisher
from twinstream.spec.explain import Explainer
from twinstream.spec.model import Spec

PROVISIONAL_SHOWN = 100


class Reports:
    """The reports of one comparison. `unsaved` are those that no checkpoint has yet, by identifier."""

    def __init__(self, spec: Spec, explainer: Explainer, publisher: Publisher, clock: Clock) -> None:
        self._name, self._kept = spec.name, spec.limits.kept_divergences
        self._explainer, self._publisher, self._clock = explainer, publisher, clock
        self._final: dict[str, bytes] = {}
        self._provisional: dict[str, status.DivergenceReport] = {}
        self._first_seen: dict[str, datetime] = {}
        self.unsaved: dict[str, bytes] = {}

    def add(self, closed: Iterable[Divergence]) -> None:
        """Report what closed scopes found; beyond `limits.kept_divergences` it is only counted."""
        for divergence in closed:
            if divergence.number >= self._kept:
                continue
            report = self._report(divergence, provisional=False)
            self.unsaved[report.id] = self._final[report.id] = report.model_dump_json().encode()
            self._provisional.pop(report.id, None)
            self._publisher.publish(report)

    def show(self, provisional: Sequence[Divergence]) -> None:
        """Report the explanations of the scopes that are open now, in place of those of the last time."""
        shown = provisional[:PROVISIONAL_SHOWN]
        reports = {report.id: report for report in (self._report(found, provisional=True) for found in shown)}
        for key in self._provisional.keys() - reports.keys():
            self._first_seen.pop(key, None)
            self._publisher.publish(status.Withdrawn(id=key, comparison=self._name))
        for key, report in reports.items():
            if self._provisional.get(key) != report:
                self._publisher.publish(report)
        self._provisional = reports

    def saved(self) -> None:
        """A checkpoint has all that was reported."""
        self.unsaved = {}

    def lost(self) -> None:
        """The store has lost some of what was saved, nobody knows how much."""
        self.unsaved = dict(self._final)

    def first_seen(self) -> dict[str, str]:
        """When each of the differences was seen first that are not final yet, for a checkpoint."""
        return {key: moment.isoformat() for key, moment in self._first_seen.items()}

    def resume(self, final: Mapping[str, bytes], first_seen: Mapping[str, str]) -> None:
        """Take over what was saved, and report it."""
        self._final = dict(final)
        self._first_seen = {key: datetime.fromisoformat(at) for key, at in first_seen.items()}
        for report in final.values():
            self._publisher.publish(status.DivergenceReport.model_validate_json(report))

    def _report(self, divergence: Divergence, *, provisional: bool) -> status.DivergenceReport:
        plain = self._explainer.report(divergence)
        first_seen = self._first_seen_of(plain["id"])
        if not provisional:
            self._first_seen.pop(plain["id"], None)
        more = {"comparison": self._name, "provisional": provisional, "first_seen": first_seen}
        return status.DivergenceReport.model_validate({**plain, **more, "late": divergence.late})

    def _first_seen_of(self, key: str) -> datetime:
        """When a divergence was seen first; one that is told anew was seen before."""
        if key in self._final:
            return status.DivergenceReport.model_validate_json(self._final[key]).first_seen
        return self._first_seen.setdefault(key, self._clock.now())
