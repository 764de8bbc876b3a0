"""Holds all shards of a comparison to one beginning: shard 0 resets, and the others follow.

A reset is made by shard 0, in its own store. Each other shard looks at what shard 0 has saved, once a second;
where that has begun later, it begins anew, too: from the start that the reset named, and with `now` where it
rests itself. A pair belongs to one shard, so there is no need for a moment at which all of them rest. Until
all have begun anew, the comparison is undecided.

Shard 0 looks at the others in turns: where one has begun later, its own memory of that reset is lost, with
its store or by an older state of that. So all of them come to the last beginning that any of them knows of.

Where offsets are the start it may not be known where just this shard began, if its state is gone. And Kafka
may not have the beginning any more. Or, with `now`, this shard never rests. Then it begins behind a hole:
nothing that it finds decides anything until somebody resets it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from twinstream.checkpoints import format as checkpoint
from twinstream.checkpoints.writer import CheckpointWriter
from twinstream.core.accounts import Hole
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.errors import Fenced, Replaced, SourceError, StoreError
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.ports import Clock, Positions, Source
from twinstream.processes.shards import ShardStore
from twinstream.spec.file.model import Spec
from twinstream.spec.file.start import Start
from twinstream.spec.load import digest
from twinstream.starting.offset_backup import gone
from twinstream.starting.reset_model import Resets, at_offsets, unfit_for_now, unrest

LOOK_SECONDS = 1.0
PLACE_LOST = (
    "where {shard} began with the last reset was lost with its state in the store, so nobody knows which of "
    "its events are to be compared: reset it again"
)
CANNOT_REST = (
    "{shard} could not begin anew with the others at a moment at which no event waits for a partner, since "
    "{reason}: reset it again, from another start"
)
UNSURE = "nobody knows whether it was reset with the other shards"
FOLLOWS = "it begins anew"
"""How every reason begins for which a shard has not begun anew with the others."""
AWAITS_REST = f"{FOLLOWS} at a moment at which no event waits for a partner ({{waiting}})"
IN_A_HOLE = "; partners lie in a hole: let both versions write on, or reset it again from another start"
AWAITS_KAFKA = f"{FOLLOWS} as soon as Kafka says which records there are ({{error}})"

log = structlog.get_logger()


class ShardResets:
    """What the other shards know of resets, for one that owns its store."""

    def __init__(
        self, spec: Spec, source: Source, shard: Shard, shards: ShardStore | None, clock: Clock
    ) -> None:
        self._spec, self._digest, self._source = spec, digest(spec), source
        self._shard, self._clock = shard, clock
        self._shards = None if shard.whole else shards
        self._asked, self._next_look = 0, 0.0
        self._later: Mapping[str, Any] | None = None

    def made(self) -> int:
        """How many resets another shard has made; 0 where nothing of it is saved. Raises StoreError."""
        head = self._head_of_another()
        return Resets.of(head).made if head.get("spec_digest") == self._digest else 0

    def after_other(self) -> str | None:
        """When the state of another comparison file began that this comparison came after, if it did.

        It is asked by a shard that has nothing saved: another shard has that state, or came after it.
        """
        head = self._head_of_another()
        ours = head.get("spec_digest") == self._digest
        return head.get("after_other" if ours else "started_at")

    def _head_of_another(self) -> Mapping[str, Any]:
        """The head of shard 0, or for that of the next; empty where nothing is saved. Raises StoreError."""
        data = b"" if self._shards is None else self._shards.head_of(0 if self._shard.number else 1)
        return checkpoint.decode(data) if data else {}

    def look(self, resets: Resets) -> None:
        """See whether another shard has begun later, if it is time."""
        if self._shards is None or self._clock.monotonic() < self._next_look:
            return
        self._next_look = self._clock.monotonic() + LOOK_SECONDS
        head = self._head_of_next(self._shards)
        if head is not None and _is_later(Resets.of(head), resets):
            self._later = head

    def follow(self, run: ComparisonRun, writer: CheckpointWriter) -> None:
        """Begin anew with the others, if one has begun later and this is a moment for it.

        Raises Replaced where this one is over, since it has begun anew; and StoreError where nobody knows
        whether it has: then nothing more may be saved under this owner.
        """
        if (head := self._later) is None:
            return
        try:
            beginning = self._beginning(run, head)
        except SourceError as error:
            run.situation.behind = AWAITS_KAFKA.format(error=error)
            return
        if beginning is None:
            return
        try:
            writer.begin_anew(checkpoint.encode(beginning))
        except Fenced:
            raise
        except StoreError as error:
            raise StoreError(f"{UNSURE}: {error}") from error
        log.warning("reset with the other shards", comparison=self._spec.name, shard=self._shard.number)
        raise Replaced("another shard was reset")

    def _head_of_next(self, shards: ShardStore) -> Mapping[str, Any] | None:
        """The head of shard 0, or for that of the next; None where nothing of the same file is saved."""
        if self._shard.number == 0:
            self._asked = self._asked % (self._shard.of - 1) + 1
        try:
            data = shards.head_of(self._asked)
            head = checkpoint.decode(data) if data else None
        except StoreError:
            return None  # It is looked at again in its turn. What is wrong with a head, its own shard says.
        return head if head is not None and head["spec_digest"] == self._digest else None

    def _beginning(self, run: ComparisonRun, head: Mapping[str, Any]) -> dict[str, Any] | None:
        """The head with which this shard begins; None while it awaits a moment. Raises SourceError."""
        resets = Resets.of(head)
        is_lost = not resets.records or resets.made <= run.resets_before
        if resets.rested and not is_lost:
            return self._here(run, head, resets)
        start = resets.applied_to(self._spec).start
        holes = [Hole(PLACE_LOST.format(shard=self._shard))] if resets.rested else []
        placed = self._placed(run, start, holes) if start.at in ("earliest", "offsets") else {}
        return {**run.beginning(resets, head["started_at"]), **placed}

    def _here(self, run: ComparisonRun, head: Mapping[str, Any], resets: Resets) -> dict[str, Any] | None:
        """The head with which this shard begins where it rests; None where it does not."""
        ground = run.ground()
        if ground is not None and (unfit := unfit_for_now(ground.spec, ground.comparison)) is not None:
            hole = Hole(CANNOT_REST.format(shard=self._shard, reason=unfit))
            return {
                **run.beginning(resets, head["started_at"]),
                **_behind([hole], ground.positions),
            }
        waiting = "it has not begun" if ground is None else unrest(ground, self._clock.monotonic())
        hint = IN_A_HOLE if ground is not None and ground.holes_seen else ""
        run.situation.behind = None if waiting is None else AWAITS_REST.format(waiting=waiting) + hint
        if ground is None or waiting is not None:
            return None
        start = resets.applied_to(self._spec).start
        here = at_offsets({side: {**start.offsets_of(side), **ground.positions[side]} for side in Side})
        return run.beginning(resets.moved_to(here), head["started_at"])

    def _placed(self, run: ComparisonRun, start: Start, holes: list[Hole]) -> dict[str, Any]:
        """Where it begins, and behind which holes, if that is not just where the start says."""
        topics = self._source.topics()
        named = {side: start.offsets_of(side) for side in Side}
        if start.at == "earliest":
            named = {side: dict.fromkeys(topics[side].first, 0) for side in Side}
        wanted: Positions = {side: {**run.intake.positions[side], **run.own(named[side])} for side in Side}
        own = {side: topics[side]._replace(first=run.own(topics[side].first)) for side in Side}
        holes = [*holes, *gone(wanted, own)]
        if not holes:
            return {}
        place = {
            side: {p: max(at, topics[side].first.get(p, at)) for p, at in wanted[side].items()}
            for side in Side
        }
        return _behind(holes, place)


def _behind(holes: list[Hole], place: Positions) -> dict[str, Any]:
    """The members of a head that begins at a place, behind holes."""
    return {
        "place": [list(map(list, place[side].items())) for side in Side],
        "holes": list(map(list, holes)),
    }


def _is_later(theirs: Resets, own: Resets) -> bool:
    """Whether others have begun later: by the count, else by the records where they are not lost."""
    if theirs.made != own.made or not (theirs.records and own.records):
        return theirs.made > own.made
    last = theirs.records[-1], own.records[-1]
    return (last[0].at, last[0].id) > (last[1].at, last[1].id)
