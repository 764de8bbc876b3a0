"""The content of Redis as values: the state of a comparison, its relay, and those of its shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import uuid4

from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import Fenced, Outdated, StoreError
from twinstream.ports import EMPTY, Asked, Checkpoint, Heard, Stored


class MemoryStorage:
    """The shared part of the stores and relays of one comparison: in effect, the server.

    While `down` is a sentence, every call fails as without a server. `clock` gives the server's time in
    seconds since 1970; without one the relay gives no time, so that nobody is told anything.
    """

    def __init__(self) -> None:
        self.owner: str | None = None
        self.lease: str | None = None
        self.writer: str | None = None
        self.stored = EMPTY
        self.bulletin: tuple[str, bytes] | None = None
        self.request: Asked | None = None
        self.answers: dict[str, bytes] = {}
        self.listened_to = False
        self.down: str | None = None
        self.clock: Callable[[], float] | None = None

    def reached(self) -> MemoryStorage:
        """Itself. Raises StoreError while it is down."""
        if self.down:
            raise StoreError(self.down)
        return self

    def owned_by(self, token: str) -> bool:
        """Whether this owner's lease is running, and it answers."""
        return not self.down and self.lease == self.owner == token


class MemoryStore:
    """A store over a `MemoryStorage`. A lease ends by `release`, or by setting ``storage.lease = None``."""

    def __init__(self, storage: MemoryStorage, token: str) -> None:
        self._storage, self._token = storage, token
        self._glanced: Mapping[str, bytes] = {}

    def acquire(self) -> bool:
        """Take ownership if no other lease is running."""
        storage = self._storage.reached()
        if storage.lease not in (None, self._token):
            return False
        storage.owner = storage.lease = self._token
        return True

    def seize(self) -> None:
        """Take ownership, whoever has it."""
        storage = self._storage.reached()
        storage.owner = storage.lease = self._token

    def load(self) -> Stored:
        """The state saved last."""
        return self._storage.reached().stored

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
        storage = self._storage.reached()
        if storage.lease == self._token:
            storage.lease = None

    def answers(self) -> bool:
        """Whether the server answers."""
        return not self._storage.down

    def memory_bytes(self) -> int:
        """The number of bytes held."""
        _, head, bodies, divergences = self._storage.reached().stored
        return len(head) + sum(map(len, bodies)) + sum(map(len, divergences.values()))

    def head(self) -> bytes:
        """The head of the state saved last."""
        return self._storage.reached().stored.head

    def glance(self) -> Stored:
        """The state saved last without bodies, with only the new divergences."""
        stored, before = self._storage.reached().stored, self._glanced
        self._glanced = stored.divergences
        new = {key: report for key, report in self._glanced.items() if before.get(key) != report}
        return stored._replace(bodies=(), divergences=new)

    def close(self) -> None:
        """Nothing to close."""

    def _owned(self) -> MemoryStorage:
        storage = self._storage.reached()
        if storage.owner not in (None, self._token):
            raise Fenced("another process has taken this comparison over")
        return storage


class MemoryRelay:
    """A relay over a `MemoryStorage`, beside the store of the same token."""

    def __init__(self, storage: MemoryStorage, token: str) -> None:
        self._storage, self._token = storage, token

    def time(self) -> float | None:
        """The time of its clock, if it has one."""
        storage = self._storage
        return None if storage.down or storage.clock is None else storage.clock()

    def tell(self, bulletin: bytes) -> None:
        """Store a bulletin, if the lease is this owner's."""
        if self._storage.owned_by(self._token):
            self._storage.bulletin = (self._token, bulletin)

    def take(self) -> Asked | None:
        """Take the request, if the lease is this owner's."""
        if not self._storage.owned_by(self._token):
            return None
        request, self._storage.request = self._storage.request, None
        return request

    def answer(self, ticket: str, outcome: bytes) -> None:
        """Store the outcome of a request."""
        if not self._storage.down:
            self._storage.answers[ticket] = outcome

    def heard(self) -> Heard | None:
        """The owner's bulletin."""
        storage = self._storage.reached()
        storage.listened_to = True
        if storage.bulletin is None or storage.clock is None or not storage.owned_by(storage.bulletin[0]):
            return None
        return Heard(storage.clock(), *storage.bulletin)

    def ask(self, request: bytes) -> Asked:
        """Leave a request, if there is none."""
        storage = self._storage.reached()
        storage.request = storage.request or Asked(uuid4().hex, request)
        return storage.request

    def answered(self, ticket: str) -> bytes | None:
        """The outcome of a request."""
        return self._storage.reached().answers.get(ticket)

    def withdraw(self, ticket: str) -> bool:
        """Remove a request, if it is there."""
        storage = self._storage.reached()
        if storage.request is None or storage.request.ticket != ticket:
            return False
        storage.request = None
        return True

    def listened_to(self) -> bool:
        """Whether anybody has asked for a bulletin."""
        return self._storage.reached().listened_to

    def close(self) -> None:
        """Nothing to close."""


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

    def relay(self, shard: Shard) -> MemoryRelay:
        """The relay of a shard."""
        return MemoryRelay(self._shelf.storage(shard), self._token)

    def mask_secret(self, fresh: bytes) -> bytes:
        """The secret of the comparison: the first that was given."""
        self._shelf.secret = self._shelf.secret or fresh
        return self._shelf.secret

    def set_mask_secret(self, secret: bytes) -> None:
        """Replace it."""
        self._shelf.secret = secret

    def close(self) -> None:
        """Nothing to close."""
