"""Writes the state of a comparison to its store: once a second the changes, else all of it.

If the store is away, matching continues: `trouble` says what is wrong and since when, and the next save after
that holds all changes. Only a store that another owner has taken over ends the work (`Fenced`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import structlog

from twinstream.checkpoints import format as checkpoint
from twinstream.checkpoints.plan import SWEPT_EVENTS, SavePlan, SavePlanner
from twinstream.core.comparison import Comparison
from twinstream.core.state import snapshot
from twinstream.errors import Fenced, Outdated, StoreError
from twinstream.ports import Checkpoint, CheckpointStore, Clock
from twinstream.reporting.divergences import Reports
from twinstream.status.comparison import CheckpointInfo

LONGEST_UNTRIED_SECONDS = 60.0

T = TypeVar("T")
log = structlog.get_logger()


class CheckpointWriter:
    """The checkpoints of one comparison. `sequence` is that of the one in effect, 0 before the first.

    `waited_seconds` is the time that the last failed call waited for the store. `timed`: it is kept when
    events were read.
    """

    def __init__(
        self, name: str, store: CheckpointStore, reports: Reports, clock: Clock, *, timed: bool = False
    ) -> None:
        self._name, self._store, self._reports, self._clock = name, store, reports, clock
        self._timed = timed
        self._journal = SavePlanner()
        self._attempt = 0
        self.sequence = 0
        self._store_bytes: int | None = None
        self._asked_at = 0.0
        self.waited_seconds = 0.0
        self.trouble: str | None = None

    def adopt(self, sequence: int) -> None:
        """Continue from a checkpoint that is in effect."""
        self.sequence = self._attempt = sequence

    def may_try(self) -> bool:
        """Whether to call the store now. If it is in trouble, this asks first whether it answers at all.

        That takes a moment, while a call to a store that hangs takes its whole time-out. A store that never
        answers at once is nevertheless called every `LONGEST_UNTRIED_SECONDS`.
        """
        if self.trouble is None or self._clock.monotonic() - self._asked_at >= LONGEST_UNTRIED_SECONDS:
            return True
        try:
            return self._store.answers()
        except StoreError:
            return False

    def awaits_save(self, comparison: Comparison) -> bool:
        """Whether a save would make a report final, or save one for the first time."""
        return bool(self._reports.unsaved) or self._reports.awaits(comparison.proven.doubted)

    def renewed(self) -> bool:
        """Prolong the lease; returns False if the store has lost the checkpoint. Raises Fenced."""
        return self._asked(partial(self._store.renew, self.sequence)) is not False

    def save(self, head: dict[str, Any], comparison: Comparison) -> CheckpointInfo | None:
        """Save the comparison, with `head` for everything else; None if the store is away. Raises Fenced."""
        started = self._clock.monotonic()
        plan, encoded = self._journal.begin(), checkpoint.encode(head)
        size = self._asked(partial(self._write, plan, encoded, comparison))
        if size is None:
            return None
        self.sequence = self._attempt
        self._reports.saved(comparison.proven.doubted)
        return CheckpointInfo(
            sequence=self.sequence,
            written_at=self._clock.now(),
            duration_seconds=self._clock.monotonic() - started,
            size_bytes=size,
            store_bytes=self._measured(),
        )

    def begin_anew(self, head: bytes) -> None:
        """Replace everything that was saved by `head` alone, in one step.

        Raises StoreError. Then, unless it is Fenced, nobody knows whether it took effect, and this owner may
        save nothing more.
        """
        self._attempt += 1
        self._asked_at = self._clock.monotonic()
        self._store.save(Checkpoint(self._attempt, None, head, checkpoint.encode({}), {}, anew=True))

    def _measured(self) -> int | None:
        """The size of the comparison in the store, if known; it is only shown."""
        try:
            self._store_bytes = self._store.memory_bytes()
        except StoreError as error:
            log.info("the store does not report its memory", comparison=self._name, reason=str(error))
        return self._store_bytes

    def _write(self, plan: SavePlan, head: bytes, comparison: Comparison) -> int:
        """Save the changes since a checkpoint, or everything; returns the number of bytes."""
        if plan.after is None:
            return self._write_base(head, comparison)
        try:
            return self._write_delta(plan, head, comparison)
        except Outdated as error:
            log.warning("the store is behind: saving everything", comparison=self._name, reason=str(error))
        self._journal.begin_base()
        return self._write_base(head, comparison)

    def _write_delta(self, plan: SavePlan, head: bytes, comparison: Comparison) -> int:
        sweep = snapshot.Sweep(SWEPT_EVENTS, plan.first) if plan.sweeping else None
        state = snapshot.delta(comparison, sweep, timed=self._timed)
        swept = plan.sweeping and not snapshot.sweeping(comparison)
        size = self._put(plan.after, head, state, self._journal.dropping(swept=swept))
        if self._journal.grown():
            snapshot.begin_sweep(comparison)
            self._journal.begin_sweep()
        return size

    def _write_base(self, head: bytes, comparison: Comparison) -> int:
        lost = self.sequence > 0 and not self._store.renew(self.sequence)
        if lost:
            # An older state of the store lacks the newest of them, and may have those from before a reset.
            self._reports.lost()
        return self._put(None, head, snapshot.snapshot(comparison, timed=self._timed), anew=lost)

    def _put(
        self, after: int | None, head: bytes, state: dict[str, Any], dropped: int = 0, *, anew: bool = False
    ) -> int:
        # Each attempt has a number of its own: one whose answer was lost may have taken effect.
        self._attempt += 1
        body = checkpoint.encode(state)
        self._asked_at = self._clock.monotonic()
        self._store.save(Checkpoint(self._attempt, after, head, body, self._reports.unsaved, dropped, anew))
        self._journal.saved(self._attempt, len(body), dropped)
        return len(head) + len(body)

    def _asked(self, call: Callable[[], T]) -> T | None:
        """The result of a call of the store; None if it is away, which is noted. Raises Fenced."""
        self._asked_at = self._clock.monotonic()
        try:
            result = call()
        except Fenced:
            raise
        except StoreError as error:
            self._note_trouble(str(error))
            return None
        if self.trouble is not None:
            self.trouble = None
            log.info("store is back", comparison=self._name)
        return result

    def _note_trouble(self, reason: str) -> None:
        self.waited_seconds = self._clock.monotonic() - self._asked_at
        if self.trouble is None:
            self.trouble = f"{reason} (since {self._clock.now():%H:%M:%S} UTC)"
            log.warning("checkpoint failed", comparison=self._name, reason=reason)
