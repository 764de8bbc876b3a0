"""Relays the divergences of an owner to another process (see `standby`).

Saved divergences are read from the store; the owner sends those that may still change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pydantic import ValidationError

from twinstream.checkpoints import format as checkpoint
from twinstream.errors import CheckpointError
from twinstream.ports import CheckpointStore, Publisher
from twinstream.status.comparison import ComparisonStatus, DivergenceReport, Resumed, Withdrawn


class _Told:
    """Publishes the reports that an owner sends, each time all of them; those no longer sent are withdrawn.

    Reports that `stays` names are not withdrawn.
    """

    def __init__(
        self,
        publish: Callable[[DivergenceReport | Withdrawn | Resumed], None],
        stays: Callable[[DivergenceReport], bool],
    ) -> None:
        self._publish, self._stays = publish, stays
        self._reports: dict[str, DivergenceReport] = {}

    def tell(self, reports: Mapping[str, DivergenceReport]) -> None:
        """Publish exactly these reports from now on."""
        for key, report in self._reports.items():
            if key not in reports and not self._stays(report):
                self._publish(Withdrawn(id=key, comparison=report.comparison))
        for key, report in reports.items():
            if self._reports.get(key) != report:
                self._publish(report)
        self._reports = dict(reports)

    def begin(self, comparison: str) -> None:
        """Forget the reports: they are about a comparison that has ended."""
        self._reports = {}
        self._publish(Resumed(comparison=comparison, divergences=()))


class OwnersReports:
    """The divergences of the owner: saved ones from the store, provisional ones as the owner sends them."""

    def __init__(self, digest: str, store: CheckpointStore, publisher: Publisher) -> None:
        self._digest, self._store, self._publisher = digest, store, publisher
        self._saved: dict[str, int] = {}
        self._doubted: dict[str, bytes] = {}
        self._provisional = _Told(publisher.publish, lambda report: report.id in self._saved)
        self._resets: int | None = None

    def pass_on(self, status: ComparisonStatus, told: Iterable[DivergenceReport]) -> None:
        """Publish new reports; saved ones take precedence, and are dropped at a reset."""
        if self._resets not in (None, status.reset_count):
            self._saved, self._doubted = {}, {}
            self._provisional.begin(status.name)
        self._resets = status.reset_count
        try:
            self._pass_saved()
        except (CheckpointError, ValidationError):
            return  # It is of another version: the status still counts them all.
        self._provisional.tell(
            {one.id: one for one in told if one.id not in self._saved or one.id in self._doubted}
        )

    def withdraw(self) -> None:
        """Withdraw the provisional reports."""
        self._provisional.tell({})

    def _pass_saved(self) -> None:
        stored = self._store.glance()
        if stored.sequence is None:
            return
        head = checkpoint.decode(stored.head)
        if head["spec_digest"] != self._digest:
            return
        doubted = head.get("doubted", {})
        settled = {key: data for key, data in self._doubted.items() if key not in doubted}
        for key, data in {**settled, **stored.divergences}.items():
            look = hash((data, key in doubted))
            if self._saved.get(key) != look:
                self._saved[key] = look
                report = DivergenceReport.model_validate_json(data)
                self._publisher.publish(report.model_copy(update={"provisional": key in doubted}))
        waiting = {**self._doubted, **stored.divergences}
        self._doubted = {key: data for key, data in waiting.items() if key in doubted}
