"""Relays the divergences of an owner to another process (see `standby`).

Saved divergences are read from the store; the owner sends those that may still change, each time all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
        self._beginning: tuple[Any, ...] = ()

    def pass_on(self, status: ComparisonStatus, told: Iterable[DivergenceReport]) -> None:
        """Publish new reports; saved ones take precedence, and are dropped when the comparison begins anew.

        The head that was saved with them tells that, since a status may be of an earlier or later moment.
        """
        try:
            self._pass_saved(status.name)
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

    def _pass_saved(self, name: str) -> None:
        stored = self._store.glance()
        if stored.sequence is None:
            return
        head = checkpoint.decode(stored.head)
        if head["spec_digest"] != self._digest:
            return
        beginning = head.get("started_at"), head.get("reset_count")
        if begins := beginning != self._beginning:
            self._beginning, self._saved, self._doubted, self._provisional = beginning, {}, {}, {}
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
        if begins:  # Also the first time: an earlier process of this matcher may have passed on others.
            self._publisher.publish(Resumed(comparison=name, divergences=tuple(self._saved)))
