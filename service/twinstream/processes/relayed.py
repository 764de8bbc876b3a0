"""The divergences of an owner, as one shows them who asks it (see `standby`).

What is saved is read from the store; what may change yet, the owner tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from pydantic import ValidationError

from twinstream.checkpoints import format as checkpoint
from twinstream.errors import CheckpointError
from twinstream.ports import Publisher, Stored
from twinstream.status.comparison import ComparisonStatus, DivergenceReport, Resumed, Withdrawn


class Glancing(Protocol):
    """The part of a store in which what is saved is seen (see `ports.Store`)."""

    def glance(self) -> Stored:
        """What is new of what was saved."""
        ...


class _Told:
    """Reports as an owner tells them, each time all: what is new is published, what is gone withdrawn.

    What `stays` is not withdrawn.
    """

    def __init__(
        self,
        publish: Callable[[DivergenceReport | Withdrawn | Resumed], None],
        stays: Callable[[DivergenceReport], bool],
    ) -> None:
        self._publish, self._stays = publish, stays
        self._reports: dict[str, DivergenceReport] = {}

    def tell(self, reports: Mapping[str, DivergenceReport]) -> None:
        """These are told now, and no others."""
        for key, report in self._reports.items():
            if key not in reports and not self._stays(report):
                self._publish(Withdrawn(id=key, comparison=report.comparison))
        for key, report in reports.items():
            if self._reports.get(key) != report:
                self._publish(report)
        self._reports = dict(reports)

    def begin(self, comparison: str) -> None:
        """What was told is of something that has ended."""
        self._reports = {}
        self._publish(Resumed(comparison=comparison, divergences=()))


class OwnersReports:
    """The divergences of the owner: what is saved, from the store, and what is provisional, as it is told."""

    def __init__(self, digest: str, store: Glancing, publisher: Publisher) -> None:
        self._digest, self._store, self._publisher = digest, store, publisher
        self._saved: dict[str, int] = {}
        self._doubted: dict[str, bytes] = {}
        self._provisional = _Told(publisher.publish, lambda report: report.id in self._saved)
        self._resets: int | None = None

    def pass_on(self, status: ComparisonStatus, told: Iterable[DivergenceReport]) -> None:
        """Publish what is new; what is saved goes before what was told, and goes with a reset."""
        if self._resets not in (None, status.reset_count):
            self._saved, self._doubted = {}, {}
            self._provisional.begin(status.name)
        self._resets = status.reset_count
        try:
            self._pass_saved()
        except (CheckpointError, ValidationError):
            return  # Of another version: the status counts them all the same.
        self._provisional.tell(
            {one.id: one for one in told if one.id not in self._saved or one.id in self._doubted}
        )

    def withdraw(self) -> None:
        """Take back what is provisional."""
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
