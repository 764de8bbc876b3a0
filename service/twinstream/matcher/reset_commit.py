"""Resets a comparison for the worker that owns it: from the request to the step that takes effect.

Requests come through the relay. The step is a checkpoint in the worker's own store; if several workers share
the comparison, shard 0 makes it, and the others follow (see `shard_resets`). It takes effect or it does not,
and the outcome goes back through the relay: the record, a refusal, or that nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Any

import structlog
from pydantic import ValidationError

from twinstream.checkpoints import format as checkpoint
from twinstream.checkpoints.writer import CheckpointWriter
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import SourceError, StoreError
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.ports import Clock, OwnersRelay, Source
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest
from twinstream.starting.reset_model import (
    PATIENCE_SECONDS,
    PendingReset,
    Resets,
    ResetStarts,
    reset_of,
    stood,
    told_of,
)
from twinstream.starting.start import Unsafe
from twinstream.status.comparison import Ended, Reset, ResetRefused, ResetRequest

TAKE_SECONDS = 1.0
_MOMENT = timedelta(microseconds=1)

log = structlog.get_logger()


class ResetCommit:
    """Resets of a comparison, one at a time: while one is wished for, other requests wait in the relay.

    `heads` are those that other workers have saved of the comparison, empty where there is none.
    """

    def __init__(
        self,
        spec: Spec,
        source: Source,
        relay: OwnersRelay,
        clock: Clock,
        shard: Shard,
        heads: Callable[[], Sequence[Mapping[str, Any]]],
    ) -> None:
        self._spec, self._digest, self._clock = spec, digest(spec), clock
        self._heads = heads
        self._shard, self._relay = shard, relay
        self._starts = ResetStarts(spec, source, clock, shard)
        self._wish: PendingReset | None = None
        self._answered = ""
        self._next_look = 0.0

    def look(self) -> None:
        """Take the request that waits in the relay, once a second; only shard 0, if it is the owner."""
        if self._shard.number or self._wish is not None or self._clock.monotonic() < self._next_look:
            return
        self._next_look = self._clock.monotonic() + TAKE_SECONDS
        asked = self._relay.take()
        if asked is None or asked.ticket == self._answered:  # A fail-over may bring back what was taken.
            return
        try:
            request = ResetRequest.model_validate_json(asked.request)
        except ValidationError:
            return  # It is of another version: its sender gets no answer, as if nobody had done it.
        self._wish = PendingReset(asked.ticket, request, self._clock.monotonic() + PATIENCE_SECONDS)

    def take(self, run: ComparisonRun, resets: Resets, writer: CheckpointWriter) -> Resets | None:
        """The resets with one more, if one is wished for and has just taken effect.

        If it cannot be made, that is the answer, and nothing has changed; if it has taken effect before, the
        answer is its record. Raises StoreError if nobody knows whether it took effect.
        """
        if (wish := self._wish) is None:
            return None
        if (known := self._known(wish, resets)) is not None:
            self.answer(known)
            return None
        saved = cache(lambda: stood(self._heads()))
        try:
            self._check(run, writer)
            begun = self._starts.beginning(wish, run.ground(), saved)
            if begun is None:
                return None
            with suppress(SourceError):  # The comparison that begins looks again.
                if (unfit := run.unfit()) is not None:
                    raise Unsafe(unfit)
        except Unsafe as reason:
            self._refuse(wish, str(reason))
            return None
        made = self._with_one_more(wish.request, begun, run, resets, saved())
        try:
            started_at = made.records[-1].at.isoformat()
            writer.begin_anew(checkpoint.encode(run.beginning(made, started_at)))
        except StoreError as error:
            self._refuse(wish, str(error), unsure=True)
            raise
        log.warning("reset", comparison=self._spec.name, by=wish.request.by, reason=wish.request.reason)
        return made

    def turn_down(self, reason: str) -> None:
        """Refuse the request that waits in the relay, if there is one, since the state is elsewhere."""
        self.look()
        if self._wish is not None:
            self._refuse(self._wish, reason)

    def answer(self, outcome: Reset | ResetRefused) -> None:
        """Tell the asker the outcome of what is wished for."""
        assert self._wish is not None, "a reset was asked for"
        self._relay.answer(self._wish.ticket, outcome.model_dump_json().encode())
        self._answered, self._wish = self._wish.ticket, None

    def _known(self, wish: PendingReset, resets: Resets) -> Reset | None:
        """The record of the reset, if it has taken effect before."""
        return next((one for one in resets.records if one.id == wish.request.id), None)

    def _refuse(self, wish: PendingReset, reason: str, *, unsure: bool = False) -> None:
        self.answer(ResetRefused(id=wish.request.id, reason=reason, open=unsure))

    def _check(self, run: ComparisonRun, writer: CheckpointWriter) -> None:
        """Raise Unsafe if this worker can reset nothing now, whatever the start."""
        waiting_for = run.situation.waiting_for if run.refusal is None else None
        if (hindrance := waiting_for or writer.trouble) is not None:
            raise Unsafe(hindrance)

    def _with_one_more(
        self, request: ResetRequest, begun: Spec, run: ComparisonRun, resets: Resets, saved: Ended | None
    ) -> Resets:
        # One shard does not know how the comparison stood: who asked has seen all of them.
        shown = None if self._shard.whole else request.before
        before = told_of(shown, saved, run.ended())
        now = max(self._clock.now(), run.situation.started_at + _MOMENT)  # Also where the clock was set back.
        reset = reset_of(request, self._spec.name, begun.start, before, now)
        start = None if begun is self._spec else begun.start
        return resets.plus(reset, start, rested=request.start == "now")
