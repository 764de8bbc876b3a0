"""The store of one of several matchers, and what happens to the state when their number changes.

Which stores are in effect stands in one small word, the layout. A matcher that finds as many shards there as
it was told uses the store of its own. Else the state is divided anew, by shard 0, while the others wait:

1. it takes the leases of all stores in effect: nobody else writes to them any more;
2. what they hold is dealt to new stores, under names that nothing names yet;
3. the layout is replaced, in one step: from now on the new stores are in effect;
4. the old ones are cleared.

What ends between two steps leaves the old stores as they are, or in effect.

Shard 0 also begins all of them anew together, in steps that are much the same: it fills new stores with the
new beginning, and replaces the layout. It takes no lease of the old ones before that, so until then the
others notice nothing. Whoever works on stores that are no longer in effect finds that out with the next beat
(`Replaced`), and begins again on those that are.

In both cases it first claims the shelf. So what was prepared for a layout is by one process alone, also where
another one was paused in the middle of the same: that one can replace the layout no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import structlog

from twinstream.core.sharding import Shard
from twinstream.errors import Fenced, Replaced, StoreError, Unready
from twinstream.ports import Checkpoint, Layout, Shelf, ShelfStore, Stored
from twinstream.spec.masking import fresh_secret

Deal = Callable[[Sequence[Stored], int], Sequence[Checkpoint | None]]
"""What deals the state of some shards to so many others; None for one that begins where the topics begin."""

log = structlog.get_logger()


class ShardStore:
    """The store of one shard, wherever that is now. `name` is that of the comparison, for the log."""

    def __init__(self, shelf: Shelf, name: str, shard: Shard, deal: Deal) -> None:
        self._shelf, self._name, self._shard, self._deal = shelf, name, shard, deal
        self._layout: Layout | None = None
        self._store: ShelfStore | None = None
        self._tidied = False

    @property
    def layout(self) -> Layout | None:
        """The layout to which the store in use belongs; None before there is one."""
        return self._layout

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
        if owned and not self._tidied:
            self._tidy(layout)
        return owned

    def _tidy(self, layout: Layout) -> None:
        """Remove what whoever replaced the layout may have left of this shard, where that one was cut off."""
        self._tidied = True
        if self._shard.whole or not layout.generation:
            return
        before = self._shelf.store(layout._replace(generation=layout.generation - 1), self._shard.number)
        with suppress(StoreError):
            if before.glance().sequence is None:
                before.close()
                return
        _remove(before)

    def load(self) -> Stored:
        """What was saved last."""
        return self._own.load()

    def save(self, checkpoint: Checkpoint) -> None:
        """Let a checkpoint take effect; a whole one also where the server has lost all, with the layout."""
        with self._in_effect():
            if checkpoint.after is None and self._layout is not None and self._layout.generation:
                self._shelf.replace(self._layout, self._layout)
            self._own.save(checkpoint)

    def clear(self) -> None:
        """Forget everything that was saved."""
        self._own.clear()

    def renew(self, sequence: int) -> bool:
        """Prolong the lease; whether the checkpoint of this sequence number is there."""
        with self._in_effect():
            return self._own.renew(sequence)

    @contextmanager
    def _in_effect(self) -> Iterator[None]:
        """Work on stores that are in effect. Raises Replaced where they are not, or are not any more."""
        self._look_at_layout()
        try:
            yield
        except Fenced:
            self._look_at_layout()
            raise

    def _look_at_layout(self) -> None:
        if self._shard.whole or self._layout is None:
            return
        found = self._shelf.layout()
        if found.shards == self._layout.shards and found.generation > self._layout.generation:
            raise Replaced("all shards of this comparison begin anew")

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
    def _own(self) -> ShelfStore:
        assert self._store is not None, "acquire comes first"
        return self._store

    # -- all of them anew ----------------------------------------------------------------------------------

    def others(self) -> Iterator[tuple[int, ShelfStore]]:
        """The stores of all other shards, to be closed."""
        for number in range(self._shard.of):
            if number != self._shard.number:
                yield number, self.other(number)

    def other(self, number: int) -> ShelfStore:
        """The store of another shard, to be closed."""
        assert self._layout is not None, "acquire comes first"
        return self._shelf.store(self._layout, number)

    def begin_anew(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Put one into effect in each shard, and nothing else, in the place of all that all of them have.

        Raises Unready where nothing has changed. After any other StoreError it is open whether it took
        effect.
        """
        old = self._layout
        assert old is not None, "acquire comes first"
        new = Layout(old.generation + 1, old.shards)
        try:
            self._own.renew(0)
            self._shelf.claim()
            for number, checkpoint in enumerate(checkpoints):
                self._fill(self._shelf.store(new, number), checkpoint, keep=number == self._shard.number)
        except StoreError as error:
            raise Unready(str(error)) from error
        self._shelf.replace(old, new)
        for _, store in self.others():
            _remove(store)
        with suppress(StoreError):
            self._own.clear()
            self._own.release()

    def _fill(self, store: ShelfStore, checkpoint: Checkpoint, *, keep: bool) -> None:
        """Put a checkpoint into a store, whatever an attempt that was cut off has left there."""
        try:
            store.seize()
            store.clear()
            store.save(checkpoint)
            if not keep:
                store.release()
        finally:
            store.close()

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

    def _take(self, stores: Sequence[ShelfStore], old: Layout) -> None:
        for store in stores:
            if not store.acquire():
                raise Unready(
                    f"another process owns this comparison with --shards {old.shards}; this one takes over "
                    f"with --shards {self._shard.of} when that has ended",
                    standby=True,
                )
        self._shelf.claim()  # Not before: who waits for leases must not take it from who works.
        if self._shelf.layout() != old:
            raise Unready("another process has just divided the state anew")

    def _replace(self, stores: Sequence[ShelfStore], old: Layout) -> None:
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


def _remove(store: ShelfStore) -> None:
    """Take a store that is not in effect any more from whoever works on it, and clear it."""
    try:
        with suppress(StoreError):
            store.seize()
            store.clear()
            store.release()
    finally:
        store.close()
