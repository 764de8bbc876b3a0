"""Has a comparison begin anew, for the worker that owns it: from the request to the step that takes effect.

Where the worker is alone that step is a checkpoint of its own store; where it shares the comparison, shard 0
takes it for all (see `shards`). It happens, or it does not; and whoever asked is told which, or that nobody
knows.
"""

from __future__ import annotations

import structlog

from twinstream.errors import StoreError, Unready
from twinstream.ports import Checkpoint, Clock, Publisher, Source
from twinstream.runtime import checkpoint
from twinstream.runtime.course import Course
from twinstream.runtime.keeper import Keeper
from twinstream.runtime.others import AllStores, Others
from twinstream.runtime.resets import Beginning, ResetDesk, Resets, reset_of
from twinstream.spec.load import digest
from twinstream.spec.model import Spec
from twinstream.spec.sharding import Part
from twinstream.status import ResetRequest

log = structlog.get_logger()


class Renewal:
    """Resets of a comparison. `stores` are those of all shards, where there are several."""

    def __init__(
        self,
        spec: Spec,
        source: Source,
        publisher: Publisher,
        clock: Clock,
        part: Part,
        stores: AllStores | None,
    ) -> None:
        self._spec, self._digest, self._clock = spec, digest(spec), clock
        self._part, self._stores, self._publisher = part, stores, publisher
        alone = stores is None or part.shard.whole
        others = None if stores is None or alone else Others(self._digest, part.shard, stores, clock)
        self._desk = ResetDesk(spec, source, publisher, clock, part, others)

    def take(
        self, request: ResetRequest | None, course: Course, resets: Resets, keeper: Keeper
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
        begun = self._desk.beginning(self._hindrance(course, keeper), course.ground())
        if begun is None:
            return None
        made = self._with_one_more(wish.request, begun, course, resets)
        try:
            self._put_into_effect(made, begun, keeper)
        except Unready as reason:
            self._desk.refuse(str(reason))
            return None
        except StoreError as error:
            self._desk.refuse(str(error), unsure=True)
            raise
        self._desk.close()
        log.warning("begun anew", comparison=self._spec.name, by=wish.request.by, reason=wish.request.reason)
        return made

    def _hindrance(self, course: Course, keeper: Keeper) -> str | None:
        """Why this worker can begin nothing anew now, whatever the start."""
        situation, shard = course.situation, self._part.shard
        if not shard.whole and (shard.number or self._stores is None):
            return f"shard 0 of {shard.of} does that for all"
        if situation.standby or (situation.waiting_for is not None and course.refusal is None):
            return situation.waiting_for
        return keeper.trouble

    def _with_one_more(
        self, request: ResetRequest, begun: Beginning, course: Course, resets: Resets
    ) -> Resets:
        # What a shard knows is not how the comparison stood: who asked has seen all of them.
        before = course.ended() if self._part.shard.whole else request.before or course.ended()
        reset = reset_of(request, self._spec.name, begun.spec.start, before, self._clock.now())
        start = None if begun.spec is self._spec else begun.spec.start
        return resets.plus(reset, start, rested=request.start == "now")

    def _put_into_effect(self, made: Resets, begun: Beginning, keeper: Keeper) -> None:
        if self._part.shard.whole:
            keeper.begin_anew(checkpoint.encode(made.beginning(self._digest)))
            return
        assert self._stores is not None, "it is no hindrance"
        numbers, nothing = range(self._part.shard.of), checkpoint.encode({})
        heads = (made.beginning(self._digest, begun.way, begun.of(number)) for number in numbers)
        self._stores.begin_anew(
            [Checkpoint(1, None, checkpoint.encode(head), nothing, {}, anew=True) for head in heads]
        )
