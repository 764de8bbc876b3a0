"""The content of Redis as values: the state of a comparison, and the stores of its shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import Fenced, Outdated, StoreError
from twinstream.ports import EMPTY, Checkpoint, Stored


class MemoryStorage:
    """The shared part of several stores of one comparison: in effect, the server.

    While `down` is a sentence, every call fails as without a server. `clock` gives the server's time in
    seconds since 1970; without one the store gives no time.
    """

    def __init__(self) -> None:
        self.owner: str | None = None
        self.lease: str | None = None
        self.writer: str | None = None
        self.stored = EMPTY
        self.questions: list[str] = []
        self.bulletin: tuple[str, bytes] | None = None
        self.down: str | None = None
        self.clock: Callable[[], float] | None = None


class MemoryStore:
    """A store over a `MemoryStorage`. A lease ends by `release`, or by setting ``storage.lease = None``."""

    def __init__(self, storage: MemoryStorage, token: str) -> None:
        self._storage, self._token = storage, token
        self._glanced: Mapping[str, bytes] = {}

    def acquire(self) -> bool:
        """Take ownership if no other lease is running."""
        storage = self._reached()
        if storage.lease not in (None, self._token):
            return False
        storage.owner = storage.lease = self._token
        return True

    def seize(self) -> None:
        """Take ownership, whoever has it."""
        storage = self._reached()
        storage.owner = storage.lease = self._token

    def load(self) -> Stored:
        """The state saved last."""
        return self._reached().stored

    def save(self, checkpoint: Checkpoint) -> None:
        """Let a checkpoint take effect. Raises Fenced or Outdated."""
        storage = self._owned()
        storage.owner = storage.lease = self._token
        stored = storage.stored
        if stored.sequence == checkpoint.sequence:
            return
        late = storage.writer == self._token and checkpoint.sequence < (stored.sequence or 0)
        if late or checkpoint.after not in (None, stored.sequence):
            raise Outdated(f"the store holds checkpoint {stored.sequence}, on which this one does not follow")
        bodies = () if checkpoint.after is None else stored.bodies[checkpoint.dropped :]
        storage.writer = self._token
        storage.stored = Stored(
            checkpoint.sequence,
            checkpoint.head,
            (*bodies, checkpoint.body),
            {**({} if checkpoint.anew else stored.divergences), **checkpoint.divergences},
        )

    def clear(self) -> None:
        """Forget everything that was saved."""
        self._owned().stored = EMPTY

    def renew(self, sequence: int) -> bool:
        """Prolong the lease; returns whether the checkpoint with this sequence number exists."""
        storage = self._owned()
        storage.owner = storage.lease = self._token
        return storage.stored.sequence == sequence

    def release(self) -> None:
        """Give the lease back, if it is this owner's."""
        storage = self._reached()
        if storage.lease == self._token:
            storage.lease = None

    def answers(self) -> bool:
        """Whether the server answers."""
        return not self._storage.down

    def memory_bytes(self) -> int:
        """The number of bytes held."""
        _, head, bodies, divergences = self._reached().stored
        return len(head) + sum(map(len, bodies)) + sum(map(len, divergences.values()))

    def time(self) -> float | None:
        """The time of its clock, if it has one."""
        storage = self._storage
        return None if storage.down or storage.clock is None else storage.clock()

    def asked(self) -> bytes:
        """The latest questions."""
        return b"" if self._storage.down else " ".join(self._storage.questions).encode()

    def tell(self, bulletin: bytes) -> None:
        """Store a bulletin, if the lease is this owner's."""
        storage = self._storage
        if not storage.down and storage.lease == storage.owner == self._token:
            storage.bulletin = (self._token, bulletin)

    def ask(self, question: str) -> bytes | None:
        """Leave a question; returns the owner's bulletin."""
        storage = self._reached()
        storage.questions = [question, *storage.questions][:32]
        if storage.bulletin is None or not storage.lease == storage.owner == storage.bulletin[0]:
            return None
        return storage.bulletin[1]

    def head(self) -> bytes:
        """The head of the state saved last."""
        return self._reached().stored.head

    def glance(self) -> Stored:
        """The state saved last without bodies, with only the new divergences."""
        stored, before = self._reached().stored, self._glanced
        self._glanced = stored.divergences
        new = {key: report for key, report in self._glanced.items() if before.get(key) != report}
        return stored._replace(bodies=(), divergences=new)

    def close(self) -> None:
        """Nothing to close."""

    def _reached(self) -> MemoryStorage:
        if self._storage.down:
            raise StoreError(self._storage.down)
        return self._storage

    def _owned(self) -> MemoryStorage:
        storage = self._reached()
        if storage.owner not in (None, self._token):
            raise Fenced("another process has taken this comparison over")
        return storage


class MemoryShelf:
    """The stores of all matchers of a comparison: their shared part, and the number of shards `in_effect`."""

    def __init__(self) -> None:
        self.storages: dict[Shard, MemoryStorage] = {}
        self.in_effect: int | None = None
        self.secret: bytes | None = None

    def owned_by(self, token: str) -> OwnedShelf:
        """The shelf of one owner."""
        return OwnedShelf(self, token)

    def storage(self, shard: Shard) -> MemoryStorage:
        """The shared part of a shard's stores."""
        return self.storages.setdefault(shard, MemoryStorage())


class OwnedShelf:
    """The shelf of one owner, over a `MemoryShelf`."""

    def __init__(self, shelf: MemoryShelf, token: str) -> None:
        self._shelf, self._token = shelf, token

    def shards(self) -> int | None:
        """The number in effect."""
        return self._shelf.in_effect

    def begin(self, shards: int) -> int:
        """The number in effect, which is this one from now on if there was none."""
        shelf = self._shelf
        shelf.in_effect = shelf.in_effect or shards
        return shelf.in_effect

    def replace(self, old: int, new: int) -> None:
        """Put another number into effect."""
        if self._shelf.in_effect not in (None, old, new):
            raise Fenced("another process has begun this comparison anew")
        self._shelf.in_effect = new

    def store(self, shard: Shard) -> MemoryStore:
        """The store of a shard."""
        return MemoryStore(self._shelf.storage(shard), self._token)

    def mask_secret(self, fresh: bytes) -> bytes:
        """The secret of the comparison: the first that was given."""
        self._shelf.secret = self._shelf.secret or fresh
        return self._shelf.secret

    def close(self) -> None:
        """Nothing to close."""
