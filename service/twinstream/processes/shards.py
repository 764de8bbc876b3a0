"""The store of one shard of a comparison, and the number of shards in effect.

The state of a comparison belongs to a number of shards, each with a store of its own. The number is fixed
when the comparison begins. A matcher started with another number reads nothing of that state: it says so, and
waits. Only a reset changes the number:

1. shard 0 of the new ones puts the beginning into its own store, as with every reset;
2. the number is replaced, in one step: from now on the new stores are in effect;
3. the stores of the old shards are taken from their owners, and cleared.

An end between two steps leaves the old stores in effect, or the new ones with nothing but the beginning. A
matcher on stores that are no longer in effect learns of it at its next beat (`Replaced`).

Unless the server has gone back to before a change of the number: then the state in effect began before that
of a living matcher, which puts its number back, and saves its whole state again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from typing import Any

from twinstream.checkpoints import format as formatted
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import Divided, Fenced, Replaced, StoreError, Unready
from twinstream.explain.masking import fresh_secret
from twinstream.ports import Checkpoint, Shelf, ShelfStore, Stored

OWNED = (
    "another process owns this comparison with --shards {found}, and another file; this one takes over with "
    "--shards {wanted} when that has ended"
)


EMPTY_TRIES = 10
"""An empty shelf is left to the owners of another number for so many attempts, one a second."""


class ShardStore:
    """The store of one shard, on the shelf of its comparison: a `CheckpointStore`."""

    def __init__(self, shelf: Shelf, shard: Shard) -> None:
        self._shelf, self._shard = shelf, shard
        self._own = own = shelf.store(shard)
        # What does not depend on the number of shards is done by the store itself.
        self.glance, self.clear, self.release = own.glance, own.clear, own.release
        self.answers, self.memory_bytes = own.answers, own.memory_bytes
        self._in_effect: int | None = None
        self._secret = b""
        self._divided: Divided | None = None
        self._left = 0
        self._head_saved = b""
        self._others: dict[Shard, ShelfStore] = {}

    def acquire(self) -> bool:
        """Take ownership if no other lease is running.

        Raises Divided if the state belongs to another number of shards; the store is owned then, too.
        """
        owned = self._own.acquire()
        if owned:
            self._leave_empty()
            self._in_effect = self._shelf.begin(self._shard.of)
            if self._in_effect != self._shard.of:
                self._divided = Divided(self._in_effect, self._shard.of, self._heads(self._in_effect))
                self._left = EMPTY_TRIES
                raise self._divided
        return owned

    def _leave_empty(self) -> None:
        """Raise Divided as before where all is gone: its owners write their state again, if they live."""
        if self._divided is not None and self._left and self._shelf.shards() is None:
            self._left -= 1
            raise self._divided

    def _heads(self, shards: int) -> list[bytes]:
        return [self._head(Shard(number, shards)) for number in range(shards)]

    def _head(self, shard: Shard) -> bytes:
        """The head of a shard's last save. Its store stays open: it is read repeatedly."""
        if shard not in self._others:
            self._others[shard] = self._shelf.store(shard)
        return self._others[shard].head()

    def load(self) -> Stored:
        """The state saved last."""
        stored = self._own.load()
        self._head_saved = stored.head
        return stored

    def save(self, checkpoint: Checkpoint) -> None:
        """Make a checkpoint take effect; a new beginning may also replace another number of shards."""
        with self._noticed():
            self._own.save(checkpoint)
        self._head_saved = checkpoint.head
        if checkpoint.anew and self._in_effect not in (None, self._shard.of):
            self._replace(self._in_effect)

    def _replace(self, old: int | None) -> None:
        assert old is not None, "another number is in effect"
        self._shelf.replace(old, self._shard.of)
        for number in range(old):
            # A store that is no longer in effect is taken from its owner.
            with suppress(StoreError), closing(self._shelf.store(Shard(number, old))) as store:
                store.seize()
                store.clear()
                store.release()

    def check_idle(self, shards: int) -> None:
        """Raise Unready while a process works on the state of another number of shards, and another file."""
        for number in range(shards):
            with closing(self._shelf.store(Shard(number, shards))) as store:
                if not store.acquire():
                    raise Unready(OWNED.format(found=shards, wanted=self._shard.of))
                store.release()

    def forget(self, shards: int) -> None:
        """Delete the state of another number of shards."""
        self._replace(shards)

    def renew(self, sequence: int) -> bool:
        """Prolong the lease; returns whether the checkpoint with this sequence number exists.

        Raises Replaced if the state no longer belongs to this number of shards, or has another secret.
        """
        with self._noticed():
            held = self._own.renew(sequence)
        if self._in_effect == self._shard.of:
            self._look()
        if self._secret and self._shelf.mask_secret(self._secret) != self._secret and held:
            raise Replaced("its key of hashes was lost, and another process has made a new one")
        return held

    @contextmanager
    def _noticed(self) -> Iterator[None]:
        """Turn Fenced into Replaced, if the number has been replaced meanwhile."""
        try:
            yield
        except Fenced:
            if self._in_effect == self._shard.of:
                self._look()
            raise

    def _look(self) -> None:
        """Put the own number back where it is lost. Raises Replaced if another one is in effect by right."""
        found = self._shelf.begin(self._shard.of)
        if found == self._shard.of:
            return
        if not _all_before(self._heads(found), self._head_saved):
            raise Replaced("the comparison was reset with another number of shards")
        self._shelf.replace(found, self._shard.of)

    def mask_secret(self) -> bytes:
        """The key of the hashes of masked values, shared by all matchers of the comparison.

        Where the store loses it, the first of these that prolongs its lease puts it back.
        """
        self._secret = self._shelf.mask_secret(fresh_secret())
        return self._secret

    def set_mask_secret(self, secret: bytes) -> None:
        """Use another key of these hashes from now on: that of a state which was moved here."""
        self._shelf.set_mask_secret(secret)

    def head_of(self, number: int) -> bytes:
        """The head of another shard's last save; empty if there is none."""
        return self._head(Shard(number, self._shard.of))

    def heads(self) -> list[bytes]:
        """The heads of the last saves of all shards; empty where there is none."""
        return self._heads(self._shard.of)

    def close(self) -> None:
        """Close connections."""
        for store in (self._own, *self._others.values()):
            store.close()
        self._shelf.close()


def _all_before(saved: Sequence[bytes], own: bytes) -> bool:
    """Whether states with these heads are of the file of the own one, and all of them began before it."""
    heads = [formatted.decode(head) for head in saved if head]
    mine = formatted.decode(own) if own else {}
    ours = all(head["spec_digest"] == mine.get("spec_digest") and "moved" not in head for head in heads)
    return bool(heads and mine) and ours and all(_began(head) < _began(mine) for head in heads)


def _began(head: Mapping[str, Any]) -> tuple[int, datetime]:
    """Orders beginnings of one comparison: by the number of resets, then by time."""
    return head.get("reset_count", 0), datetime.fromisoformat(head["started_at"])
