"""Relays the divergences of an owner to another process (see `standby`).

Saved divergences are read from the store; the owner sends those that may still change, each time all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from twinstream.checkpoints import format as checkpoint
from twinstream.errors import CheckpointError
from twinstream.ports import GlancedStore, Publisher
from twinstream.status.comparison import ComparisonStatus, DivergenceReport, Resumed, Withdrawn


class OwnersReports:
    """The divergences of the owner: saved ones from the store, provisional ones as the owner sends them."""

    def __init__(self, digest: str, store: GlancedStore, publisher: Publisher) -> None:
        self._digest, self._store, self._publisher = digest, store, publisher
        self._saved: dict[str, int] = {}
        self._doubted: dict[str, bytes] = {}
        self._provisional: dict[str, DivergenceReport] = {}
        self._resets: int | None = None

    def pass_on(self, status: ComparisonStatus, told: Iterable[DivergenceReport]) -> None:
        """Publish new reports; saved ones take precedence, and are dropped at a reset."""
        if self._resets not in (None, status.reset_count):
            self._saved, self._doubted, self._provisional = {}, {}, {}
            self._publisher.publish(Resumed(comparison=status.name, divergences=()))
        self._resets = status.reset_count
        try:
            self._pass_saved()
        except (CheckpointError, ValidationError):
            return  # It is of another version: the status still counts them all.
        self._replace({one.id: one for one in told if one.id not in self._saved or one.id in self._doubted})

    def withdraw(self) -> None:
        """Withdraw the provisional reports."""
        self._replace({})

    def _replace(self, reports: dict[str, DivergenceReport]) -> None:
        """Publish new provisional reports, and withdraw the others unless they have been saved."""
        for key, report in self._provisional.items():
            if key not in reports and key not in self._saved:
                self._publisher.publish(Withdrawn(id=key, comparison=report.comparison))
        for key, report in reports.items():
            if self._provisional.get(key) != report:
                self._publisher.publish(report)
        self._provisional = reports

    def _pass_saved(self) -> None:
        stored = self._store.glance()
        if stored.sequence is None:
            return
        head = checkpoint.decode(stored.head)
        if head["spec_digest"] != self._digest:
            return
        doubted = head.get("doubted", {})
        waiting = {**self._doubted, **stored.divergences}
        settled = {key: data for key, data in self._doubted.items() if key not in doubted}
        for key, data in {**settled, **stored.divergences}.items():
            look = hash((data, key in doubted))
            if self._saved.get(key) != look:
                self._saved[key] = look
                report = DivergenceReport.model_validate_json(data)
                self._publisher.publish(report.model_copy(update={"provisional": key in doubted}))
        self._doubted = {key: data for key, data in waiting.items() if key in doubted}
