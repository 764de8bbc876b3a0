"""The other shards of a comparison, as their owners tell of themselves to the one that resets all of them.

They are asked as those ask who stand by (see `relay`), so what they say was written after the reset was asked
for. That is needed for `now` alone, which begins where all that was put out before is settled.

Each shard may rest at a moment of its own, and begin where it rested: a pair belongs to one shard, whether
that has partitions of its own or keys. So there is no need for a moment at which all of them rest, which
might never come.

A shard says whether it rests, and where it rested since what it said before. From the second answer on that
is after the reset was asked for, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from twinstream.core.events import Side
from twinstream.core.sharding import Shard
from twinstream.parts import Sides
from twinstream.ports import Checkpoint, Clock, Positions, ShelfStore
from twinstream.runtime.relay import Questions
from twinstream.status import ShardStatus

ASK_SECONDS = 0.5
SILENT = "it does not answer"


class AllStores(Protocol):
    """The stores of all shards, for the one among them that resets the comparison."""

    def others(self) -> Iterable[tuple[int, ShelfStore]]:
        """Those of the others, by number, to be closed."""
        ...

    def other(self, number: int) -> ShelfStore:
        """That of one of them, to be closed."""
        ...

    def begin_anew(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Put one into effect in each of them, in the place of all that they have (see `shards`)."""
        ...


class Others:
    """The others, from when a reset is asked for (`begin`) until it is answered (`end`)."""

    def __init__(self, digest: str, shard: Shard, stores: AllStores, clock: Clock) -> None:
        self._digest, self._shard, self._stores, self._clock = digest, shard, stores, clock
        self._asked: dict[int, tuple[ShelfStore, Questions]] = {}
        self._rests: dict[int, Positions] = {}
        self._first: dict[int, ShardStatus] = {}
        self._unrest: dict[int, str] = {}
        self._next_ask = 0.0

    def begin(self) -> None:
        """A reset is asked for: nothing that was said before counts."""
        self.end()
        self._unrest = dict.fromkeys(range(self._shard.of), SILENT)
        self._rests, self._first, self._next_ask = {}, {}, self._clock.monotonic()

    def end(self) -> None:
        """It is answered."""
        for store, _ in self._asked.values():
            store.close()
        self._asked = {}

    def places(self, own: Positions, unrest: str | None) -> list[Positions] | None:
        """Where each of them rested last, with `own` positions, and why this one does not rest there.

        None while some have not. Raises StoreError.
        """
        self._note(self._shard.number, own, unrest)
        if self._clock.monotonic() >= self._next_ask:
            self._next_ask = self._clock.monotonic() + ASK_SECONDS
            self._ask()
        if len(self._rests) < self._shard.of:
            return None
        return [self._rests[number] for number in range(self._shard.of)]

    def waiting(self) -> str:
        """Why some have not."""
        missing = (number for number in range(self._shard.of) if number not in self._rests)
        return "; ".join(f"{Shard(number, self._shard.of)}: {self._unrest[number]}" for number in missing)

    def _ask(self) -> None:
        if not self._asked:
            for number, store in self._stores.others():
                self._asked[number] = store, Questions(self._digest, store, self._clock)
        for number, (_, questions) in self._asked.items():
            if (answer := questions.answer()) is not None:
                self._hear(number, answer[0].said)

    def _hear(self, number: int, said: ShardStatus) -> None:
        first = self._first.setdefault(number, said)
        if said.unrest is None or said.rested is None or said.status.updated_at == first.status.updated_at:
            self._note(number, _read_up_to(said), said.unrest)
        else:
            self._note(number, _offsets(said.rested), None)

    def _note(self, number: int, positions: Positions, unrest: str | None) -> None:
        if unrest is None:
            self._rests[number] = {side: dict(positions[side]) for side in Side}
        else:
            self._unrest[number] = unrest


def _offsets(told: Sides[dict[str, int]]) -> Positions:
    sides = {Side.LEFT: told.reference, Side.RIGHT: told.candidate}
    return {side: {int(partition): at for partition, at in sides[side].items()} for side in Side}


def _read_up_to(said: ShardStatus) -> Positions:
    """The offsets up to which a shard has read."""
    progress = said.status.progress
    parts = {Side.LEFT: progress.reference, Side.RIGHT: progress.candidate}
    return {side: {one.partition: one.position for one in parts[side]} for side in Side}
