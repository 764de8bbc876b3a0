"""Resets a comparison for the worker that owns it: from the request to the step that takes effect.

That step is a checkpoint of its own store; where several share the comparison, shard 0 takes it, and the
others follow (see `shard_resets`). It happens, or it does not; and whoever asked is told which, or that
nobody knows.
"""

from __future__ import annotations

import structlog

from twinstream.checkpoints import format as checkpoint
from twinstream.checkpoints.writer import CheckpointWriter
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import StoreError
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.ports import Clock, Publisher, Source
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest
from twinstream.starting.reset_model import ResetDesk, Resets, reset_of
from twinstream.status.comparison import ResetRequest

log = structlog.get_logger()


class ResetCommit:
    """Resets of a comparison."""

    def __init__(self, spec: Spec, source: Source, publisher: Publisher, clock: Clock, shard: Shard) -> None:
        self._spec, self._digest, self._clock = spec, digest(spec), clock
        self._shard, self._publisher = shard, publisher
        self._desk = ResetDesk(spec, source, publisher, clock, shard)

    def take(
        self, request: ResetRequest | None, run: ComparisonRun, resets: Resets, writer: CheckpointWriter
    ) -> Resets | None:
        """The resets with one more, if one is asked for, now or before, and has just taken effect.

        Where it cannot be, that is published and nothing has changed; where it has taken effect before, and
        is asked for again, its record is. Raises StoreError where nobody knows whether it took effect.
        """
        if request is not None:
            known = next((one for one in resets.records if one.id == request.id), None)
            if known is not None:
                self._publisher.publish(known)
                return None
            self._desk.take(request)
        if (wish := self._desk.wish) is None:
            return None
        begun = self._desk.beginning(self._hindrance(run, writer), run.ground())
        if begun is None:
            return None
        made = self._with_one_more(wish.request, begun, run, resets)
        try:
            started_at = made.records[-1].at.isoformat()
            writer.begin_anew(checkpoint.encode(made.beginning(self._digest, started_at)))
        except StoreError as error:
            self._desk.refuse(str(error), unsure=True)
            raise
        self._desk.close()
        log.warning("begun anew", comparison=self._spec.name, by=wish.request.by, reason=wish.request.reason)
        return made

    def _hindrance(self, run: ComparisonRun, writer: CheckpointWriter) -> str | None:
        """Why this worker can begin nothing anew now, whatever the start."""
        situation = run.situation
        if self._shard.number:
            return f"shard 0 of {self._shard.of} does that for all"
        if situation.standby or (situation.waiting_for is not None and run.refusal is None):
            return situation.waiting_for
        return writer.trouble

    def _with_one_more(
        self, request: ResetRequest, begun: Spec, run: ComparisonRun, resets: Resets
    ) -> Resets:
        # What a shard knows is not how the comparison stood: who asked has seen all of them.
        before = run.ended() if self._shard.whole else request.before or run.ended()
        reset = reset_of(request, self._spec.name, begun.start, before, self._clock.now())
        start = None if begun is self._spec else begun.start
        return resets.plus(reset, start, rested=request.start == "now")
