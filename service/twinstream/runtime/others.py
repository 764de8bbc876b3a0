"""The other shards of a comparison, as their owners tell of themselves to the one that resets all of them.

They are asked as those ask who stand by (see `relay`), so what they say was written after the reset was asked
for. That is needed for `now` alone, which takes a cut of both sides over all shards:

- by partition each shard has partitions of its own, and a pair stands in those of one shard. So the places
  where shards rest, each at a moment of its own, are a cut together;
- by key each shard reads everything. So all have to rest at the same place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from twinstream.core.events import Side
from twinstream.core.sharding import Shard, Way
from twinstream.ports import Checkpoint, Clock, Positions, ShelfStore
from twinstream.runtime.relay import Questions
from twinstream.status import ShardStatus

ASK_SECONDS = 0.5
SILENT = "it does not answer"
ELSEWHERE = "which share the work by key, have not read up to the same offsets"


class AllStores(Protocol):
    """The stores of all shards, for the one among them that resets the comparison."""

    def others(self) -> Iterable[tuple[int, ShelfStore]]:
        """Those of the others, by number, to be closed."""
        ...

    def begin_anew(self, checkpoint: Checkpoint) -> None:
        """Put this into effect in all of them, in the place of all that they have (see `shards`)."""
        ...


class Others:
    """The others, from when a reset is asked for (`begin`) until it is answered (`end`)."""

    def __init__(self, digest: str, shard: Shard, stores: AllStores, clock: Clock) -> None:
        self._digest, self._shard, self._stores, self._clock = digest, shard, stores, clock
        self._asked: dict[int, tuple[ShelfStore, Questions]] = {}
        self._rests: dict[int, Positions] = {}
        self._unrest: dict[int, str] = {}
        self._next_ask = 0.0

    def begin(self) -> None:
        """A reset is asked for: nothing that was said before counts."""
        self.end()
        self._unrest = dict.fromkeys(range(self._shard.of), SILENT)
        self._rests, self._next_ask = {}, self._clock.monotonic()

    def end(self) -> None:
        """It is answered."""
        for store, _ in self._asked.values():
            store.close()
        self._asked = {}

    def cut(self, way: Way | None, own: Positions, unrest: str | None) -> Positions | None:
        """Where all of them rest, with `own` positions, and why this one does not rest there.

        None while there is no such place. Raises StoreError.
        """
        self._note(self._shard.number, own, unrest)
        if self._clock.monotonic() >= self._next_ask:
            self._next_ask = self._clock.monotonic() + ASK_SECONDS
            self._ask()
        rests = list(self._rests.values())
        if len(rests) < self._shard.of:
            return None
        if way == "key":
            return rests[0] if all(one == rests[0] for one in rests) else None
        return {side: {p: at for one in rests for p, at in one[side].items()} for side in Side}

    def waiting(self) -> str:
        """Why there is none."""
        if len(self._rests) == self._shard.of:
            return f"its {self._shard.of} matchers, {ELSEWHERE}"
        missing = (number for number in range(self._shard.of) if number not in self._rests)
        return "; ".join(f"{Shard(number, self._shard.of)}: {self._unrest[number]}" for number in missing)

    def _ask(self) -> None:
        if not self._asked:
            for number, store in self._stores.others():
                self._asked[number] = store, Questions(self._digest, store, self._clock)
        for number, (_, questions) in self._asked.items():
            if (answer := questions.answer()) is not None:
                said = answer[0].said
                self._note(number, _read_up_to(said), said.unrest)

    def _note(self, number: int, positions: Positions, unrest: str | None) -> None:
        if unrest is None:
            self._rests[number] = {side: dict(positions[side]) for side in Side}
        else:
            self._unrest[number] = unrest


def _read_up_to(said: ShardStatus) -> Positions:
    """The offsets up to which a shard has read."""
    progress = said.status.progress
    parts = {Side.LEFT: progress.reference, Side.RIGHT: progress.candidate}
    return {side: {one.partition: one.position for one in parts[side]} for side in Side}
