"""The store of one of several matchers, and what happens to the state when their number changes.

Which stores are in effect stands in one small word, the layout. A matcher that finds as many shards there as
it was told uses the store of its own. Else the state is divided anew, by shard 0, while the others wait:

1. it takes the leases of all stores in effect: nobody else writes to them any more;
2. what they hold is dealt to new stores, under names that nothing names yet;
3. the layout is replaced, in one step: from now on the new stores are in effect;
4. the old ones are cleared.

What ends between two steps leaves the old stores as they are, or in effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import structlog

from twinstream.core.sharding import Shard
from twinstream.errors import StoreError, Unready
from twinstream.ports import Checkpoint, Layout, Shelf, Store, Stored
from twinstream.spec.masking import fresh_secret

Deal = Callable[[Sequence[Stored], int], Sequence[Checkpoint | None]]
"""What deals the state of some shards to so many others; None for one that begins where the topics begin."""

log = structlog.get_logger()


class ShardStore:
    """The store of one shard, wherever that is now. `name` is that of the comparison, for the log."""

    def __init__(self, shelf: Shelf, name: str, shard: Shard, deal: Deal) -> None:
        self._shelf, self._name, self._shard, self._deal = shelf, name, shard, deal
        self._layout: Layout | None = None
        self._store: Store | None = None

    def acquire(self) -> bool:
        """Take ownership if no other lease is running. Raises Unready while the state has to be divided."""
        layout = self._shelf.layout()
        if layout.shards != self._shard.of:
            self._divide(layout)
            layout = self._shelf.layout()
            if layout.shards != self._shard.of:
                raise Unready("the store has lost how the state was divided just now")
        if layout != self._layout:
            self._let_go()
            self._layout, self._store = layout, self._shelf.store(layout, self._shard.number)
        owned = self._own.acquire()
        if owned and self._shelf.layout() != layout:
            self._own.release()
            raise Unready("the state is being divided among another number of matchers")
        return owned

    def load(self) -> Stored:
        """What was saved last."""
        return self._own.load()

    def save(self, checkpoint: Checkpoint) -> None:
        """Let a checkpoint take effect; a whole one also where the server has lost all, with the layout."""
        if checkpoint.after is None and self._layout is not None and self._layout.generation:
            self._shelf.replace(self._layout, self._layout)
        self._own.save(checkpoint)

    def clear(self) -> None:
        """Forget everything that was saved."""
        self._own.clear()

    def renew(self, sequence: int) -> bool:
        """Prolong the lease; whether the checkpoint of this sequence number is there."""
        return self._own.renew(sequence)

    def exchange(self, note: bytes) -> Mapping[int, bytes]:
        """Leave a note for the other shards, and read those of all."""
        assert self._layout is not None, "acquire comes first"
        return self._shelf.exchange(self._layout, self._shard.number, note)

    def mask_secret(self) -> bytes:
        """What the hashes of masked values are keyed with, by all matchers of the comparison."""
        return self._shelf.mask_secret(fresh_secret())

    def release(self) -> None:
        """Give the lease back, if there is one."""
        if self._store is not None:
            self._store.release()

    def answers(self) -> bool:
        """Whether the store answers at once."""
        return self._own.answers()

    def memory_bytes(self) -> int:
        """About how much memory the shard needs in the store."""
        return self._own.memory_bytes()

    def time(self) -> float | None:
        """What time it is by the store's clock."""
        return self._own.time()

    def asked(self) -> bytes:
        """What those who stand by for the shard have asked last."""
        return self._own.asked()

    def tell(self, bulletin: bytes) -> None:
        """Leave a bulletin for those who stand by for the shard."""
        self._own.tell(bulletin)

    def ask(self, question: str) -> bytes | None:
        """Ask the owner of the shard, and get its last bulletin."""
        return self._own.ask(question)

    def glance(self) -> Stored:
        """What is new of what was saved, without bodies."""
        return self._own.glance()

    def close(self) -> None:
        """Close connections."""
        self._let_go()
        self._shelf.close()

    def _let_go(self) -> None:
        if self._store is not None:
            self._store.close()

    @property
    def _own(self) -> Store:
        assert self._store is not None, "acquire comes first"
        return self._store

    # -- another number of shards --------------------------------------------------------------------------

    def _divide(self, old: Layout) -> None:
        """Deal what is stored to as many shards as there are to be. Raises Unready."""
        if self._shard.number:
            raise Unready(f"shard 0 divides the state among {self._shard.of} matchers first")
        stores = [self._shelf.store(old, number) for number in range(old.shards)]
        try:
            self._take(stores, old)
            self._replace(stores, old)
        finally:
            for store in stores:
                with suppress(StoreError):
                    store.release()
                store.close()

    def _take(self, stores: Sequence[Store], old: Layout) -> None:
        for store in stores:
            if not store.acquire():
                raise Unready(
                    f"another process owns this comparison with --shards {old.shards}; this one takes over "
                    f"with --shards {self._shard.of} when that has ended",
                    standby=True,
                )
        if self._shelf.layout() != old:
            raise Unready("another process has just divided the state anew")

    def _replace(self, stores: Sequence[Store], old: Layout) -> None:
        stored = [store.load() for store in stores]
        new = Layout(old.generation + 1, self._shard.of)
        for number, checkpoint in enumerate(self._deal(stored, new.shards)):
            store = self._shelf.store(new, number)
            if not store.acquire():
                raise Unready("another process is dividing the state")
            store.clear()
            if checkpoint is not None:
                store.save(checkpoint)
            store.release()
            store.close()
        for store, held in zip(stores, stored, strict=True):
            store.renew(held.sequence or 0)
        self._shelf.replace(old, new)
        if any(one.sequence is not None for one in stored):
            log.info("divided anew", comparison=self._name, shards=new.shards, before=old.shards)
        for store in stores:
            with suppress(StoreError):
                store.clear()
