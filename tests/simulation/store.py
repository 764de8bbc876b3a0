"""The store's server: the shipped store in memory, with leases that end and with a past to fall back to.

Everything of the store's contract that the simulation knows stands in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol

from tests.simulation.scheduler import Scheduler
from twinstream.adapters.memory import MemoryStorage, MemoryStore
from twinstream.adapters.redis import LEASE_MS
from twinstream.errors import Fenced, StoreError
from twinstream.ports import Store

LEASE_SECONDS = LEASE_MS / 1000
PROLONGS = ("acquire", "save", "renew")
"""The calls that set the lease anew."""
ROLE = ("owner", "lease", "epoch", "down")
"""What a storage holds beside what was saved."""
KEPT = 12
AWAY_SECONDS = 2.0
"""How long a call hangs that nobody answers."""
Open = Callable[[MemoryStorage, str], Store]


class Watcher(Protocol):
    """Who is told what took effect on the server."""

    def wrote(self, token: str, owner: str | None, *, older: bool) -> None:
        """Something was written by `token`, while `owner` was the last to take ownership.

        `older`: what was there it had written later than what is there now.
        """

    def loaded(self, token: str) -> None:
        """A process has read what was saved."""

    def lost(self, what: str) -> None:
        """The server lost what it had acknowledged."""


@dataclass(frozen=True)
class _Moment:
    storage: dict[str, Any]
    owner: str | None
    ends_at: float


class Server:
    """What all stores of one comparison share. `owner` is the last that took ownership, as seen from here."""

    def __init__(self, scheduler: Scheduler, watcher: Watcher, open_store: Open = MemoryStore) -> None:
        self._scheduler, self._watcher, self._open = scheduler, watcher, open_store
        self.storage = MemoryStorage()
        self.owner: str | None = None
        self.away = False
        self._writer: str | None = None
        self._ends_at = 0.0
        self._past: list[_Moment] = []

    def client(self, token: str) -> Client:
        """A store as one process holds it."""
        return Client(self, token, self._open(self.storage, token))

    def call(self, token: str, method: str, call: Callable[..., Any], args: Sequence[Any]) -> Any:
        """One call as the server carries it out. Raises StoreError while it is away."""
        if self.away:
            self._scheduler.now += AWAY_SECONDS
            raise StoreError("the store does not answer")
        if self._scheduler.now >= self._ends_at:
            self.storage.lease = None
        before = self._moment()
        try:
            result = call(*args)
        except Fenced:
            self._scheduler.note(f"  store: {token} {method} is refused")
            raise
        self._note(token, method, result, before)
        return result

    def fall_back(self, writes: int) -> bool:
        """Forget the last writes, as after a fail-over to a copy that had not received them."""
        if not self._past:
            return False
        moment = self._past[max(0, len(self._past) - writes)]
        del self._past[max(0, len(self._past) - writes) :]
        vars(self.storage).update(deepcopy(moment.storage))
        self.owner, self._ends_at = moment.owner, moment.ends_at
        self._changed(f"it falls back by {writes} writes; its owner is {self.owner}")
        return True

    def empty(self) -> None:
        """Forget everything."""
        vars(self.storage).update(vars(MemoryStorage()))
        self.owner = None
        self._past.clear()
        self._changed("it is emptied")

    def copy(self) -> Store:
        """A store that holds the same, for a look at it that changes nothing."""
        storage = MemoryStorage()
        vars(storage).update(deepcopy(vars(self.storage)), lease=None)
        return MemoryStore(storage, "a look")

    def holds_something(self) -> bool:
        """Whether anything was saved."""
        return _saved(vars(self.storage)) != _saved(vars(MemoryStorage()))

    def _changed(self, what: str) -> None:
        self._writer = None
        self._scheduler.note(f"store: {what}")
        self._watcher.lost(what)

    def _note(self, token: str, method: str, result: Any, before: _Moment) -> None:
        now = self._moment()
        if method in PROLONGS and self.storage.lease == token:
            self._ends_at = self._scheduler.now + LEASE_SECONDS
        if method == "acquire" and result:
            self.owner = token
        if method == "load":
            self._watcher.loaded(token)
        if now.storage == before.storage:
            return
        self._past.append(before)
        del self._past[:-KEPT]
        if _saved(now.storage) != _saved(before.storage):
            own = token == self._writer
            self._watcher.wrote(token, self.owner, older=own and _older(now.storage, before.storage))
            self._writer = token
            self.owner = self.owner or token

    def _moment(self) -> _Moment:
        return _Moment(deepcopy(vars(self.storage)), self.owner, self._ends_at)


def _older(now: dict[str, Any], before: dict[str, Any]) -> bool:
    one, other = now["stored"].sequence, before["stored"].sequence
    return one is not None and other is not None and bool(one < other)


def _saved(storage: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in storage.items() if name not in ROLE}


class Client:
    """The port `Store` of one process: each call goes to the server."""

    def __init__(self, server: Server, token: str, store: Store) -> None:
        self._server, self._token, self._store = server, token, store

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._store, method)
        if method in ("close", "memory_bytes"):  # nothing hangs on how large it is
            return call
        return lambda *args: self._server.call(self._token, method, call, args)
