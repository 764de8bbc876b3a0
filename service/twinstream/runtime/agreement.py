"""That all shards of a comparison are of one beginning, also where a store has lost the reset of one of them.

Within one layout all stores have begun with the same reset: it put the layout into effect (see `shards`). So
where a shard finds that another one has begun later, its own memory of that reset is lost, with its store or
by an older state of that. Then it begins anew with the others: from the start that the reset named, which
the other one knows. So all of them come to the last beginning that any of them knows of.

Where offsets are the start it may not be known where just this shard began: with `now` each begins where it
rested, and what the other one knows may be its own partitions alone. And Kafka may not have the beginning any
more. Then it begins behind a hole: nothing that it finds decides anything until somebody resets it again.

Each looks at one other at a time, in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from twinstream.core.accounts import Hole
from twinstream.core.events import Side
from twinstream.errors import Replaced, SourceError, StoreError
from twinstream.ports import Clock, Positions, Source, Topic
from twinstream.runtime import checkpoint
from twinstream.runtime.course import Course
from twinstream.runtime.keeper import Keeper
from twinstream.runtime.others import AllStores
from twinstream.runtime.resets import Resets
from twinstream.runtime.witness import gone
from twinstream.spec.load import digest
from twinstream.spec.model import Spec
from twinstream.spec.sharding import Part

LOOK_SECONDS = 5.0
PLACE_LOST = (
    "where {shard} began with the last reset was lost with its state in the store, so nobody knows which of "
    "its events are to be compared: reset it again"
)

log = structlog.get_logger()


class Agreement:
    """What the other shards know of resets, for one that owns its store. `stores` are those of all."""

    def __init__(
        self, spec: Spec, source: Source, part: Part, stores: AllStores | None, clock: Clock
    ) -> None:
        self._spec, self._digest, self._source = spec, digest(spec), source
        self._part, self._clock = part, clock
        self._stores = None if part.shard.whole else stores
        self._asked, self._next_look = part.shard.number, 0.0

    def keep(self, course: Course, resets: Resets, keeper: Keeper) -> None:
        """Look at another shard, if it is time, and begin anew with it if it began later.

        Raises Replaced where this one is over, since it has begun anew; else what `Keeper.begin_anew` raises.
        """
        if self._stores is None or self._clock.monotonic() < self._next_look:
            return
        self._next_look = self._clock.monotonic() + LOOK_SECONDS
        head = self._head_of_next(self._stores)
        if head is None or not _later(Resets.of(head), resets):
            return
        try:
            beginning = self._beginning(course, head)
        except SourceError:
            return  # Kafka does not say what there is: it is tried again.
        keeper.begin_anew(checkpoint.encode(beginning))
        log.warning("begins anew with the others", comparison=self._spec.name, shard=self._part.shard.number)
        raise Replaced("the store had lost a reset of this shard, and another one knew of it")

    def _head_of_next(self, stores: AllStores) -> dict[str, Any] | None:
        """The head of the next of the others; None where nothing of the same file is saved."""
        shard = self._part.shard
        self._asked = (self._asked + 1) % shard.of
        if self._asked == shard.number:
            self._asked = (self._asked + 1) % shard.of
        store = stores.other(self._asked)
        try:
            data = store.head()
        except StoreError:
            return None  # It is looked at again in its turn.
        finally:
            store.close()
        head = checkpoint.decode(data) if data else None
        return head if head is not None and head["spec_digest"] == self._digest else None

    def _beginning(self, course: Course, head: Mapping[str, Any]) -> dict[str, Any]:
        """The head with which this shard begins as another one has. Raises SourceError."""
        resets, way = Resets.of(head), head.get("way")
        found = {"spec_digest": self._digest, "anew": True, "way": way, "started_at": head["started_at"]}
        start = resets.applied_to(self._spec).start
        if start.at not in ("earliest", "offsets"):
            return {**found, **resets.state()}
        topics = self._source.topics()
        named = {side: (start.reference, start.candidate)[side] or {} for side in Side}
        if start.at == "earliest":
            named = {side: dict.fromkeys(topics[side].first, 0) for side in Side}
        wanted = {
            side: {**course.intake.positions[side], **_only(named[side], course.reads)} for side in Side
        }
        holes = list(gone(wanted, topics))
        if start.at == "offsets" and not (way == "partition" and _name_all(named, topics)):
            holes.insert(0, Hole(PLACE_LOST.format(shard=self._part.shard)))
        if holes:
            place = {
                side: {p: max(at, topics[side].first.get(p, at)) for p, at in wanted[side].items()}
                for side in Side
            }
            found["place"] = [list(map(list, place[side].items())) for side in Side]
            found["holes"] = list(map(list, holes))
        return {**found, **resets.state()}


def _only(offsets: Mapping[int, int], reads: Callable[[int], bool]) -> dict[int, int]:
    return {partition: offset for partition, offset in offsets.items() if reads(partition)}


def _name_all(named: Positions, topics: Mapping[Side, Topic]) -> bool:
    return all(named[side].keys() == topics[side].first.keys() for side in Side)


def _later(theirs: Resets, own: Resets) -> bool:
    """Whether others have begun later: by the count, else by the records where they are not lost."""
    if theirs.made != own.made or not (theirs.records and own.records):
        return theirs.made > own.made
    last = theirs.records[-1], own.records[-1]
    return (last[0].at, last[0].id) > (last[1].at, last[1].id)
