"""The line of one process to the simulated Redis: what the shipped client sends goes over it, by commands.

The pool of the shipped client opens simulated lines in the place of sockets; all above them is shipped code,
also what it does when no answer comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from redis import DriverInfo
from redis.connection import Connection

from twinstream.adapters.redis.connection import RedisConnection
from twinstream.adapters.redis.relay import RedisRelay
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.adapters.redis.store import RedisStore
from twinstream.core.arrivals.sharding import Shard

URL = "redis://simulated"
_DRIVER = DriverInfo()
"""Found out once: it reads what packages are installed."""
Carry = Callable[..., Any]
"""Carries a command, given as bytes, to the server and its answer back. Raises what redis-py does."""


class Line(Connection):
    """A connection of redis-py without a socket."""

    def __init__(self, carry: Carry, **settings: Any) -> None:
        super().__init__(driver_info=_DRIVER, **settings)
        self._carry = carry
        self._sent: list[tuple[bytes, ...]] = []

    def connect(self) -> None:
        """It needs no handshake."""

    def disconnect(self, *_: Any) -> None:
        """What was sent is not answered any more."""
        self._sent.clear()

    def can_read(self, timeout: float | None = 0) -> bool:  # noqa: ARG002
        """Nothing comes unasked."""
        return False

    def pack_commands(self, commands: Any) -> Any:
        """Commands stay what they are."""
        return commands

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: ARG002
        """Send the commands of a pipeline."""
        for one in command:
            self.send_command(*one)

    def send_command(self, *command: Any, **_: Any) -> None:
        """Send a command: it is carried out when its answer is read."""
        name, *rest = command
        parts = (*name.split(), *rest)
        self._sent.append(tuple(map(self.encoder.encode, parts)))

    def read_response(self, *_: Any, **__: Any) -> Any:
        """The answer to the command that was sent first."""
        return self._carry(*self._sent.pop(0))


def plugged(connection: RedisConnection, carry: Carry) -> None:
    """Have a client open simulated lines."""
    connection.client.connection_pool.connection_class = partial(Line, carry)


class SimulatedShelf(RedisShelf):
    """The shipped stores of a comparison, on simulated lines; `kind` is the class of each, to plant a bug."""

    def __init__(
        self,
        carry: Carry,
        name: str,
        token: str,
        monotonic: Callable[[], float] = time.monotonic,
        kind: type[RedisStore] = RedisStore,
    ) -> None:
        super().__init__(URL, name, token)
        self._carry, self._monotonic, self._kind = carry, monotonic, kind
        plugged(self._connection, carry)

    def store(self, shard: Shard) -> RedisStore:
        """The store of a shard."""
        store = super().store(shard)
        store.__class__ = self._kind
        store._monotonic = self._monotonic
        plugged(store._connection, self._carry)
        return store

    def relay(self, shard: Shard) -> RedisRelay:
        """The relay of a shard."""
        relay = super().relay(shard)
        relay._line._monotonic = self._monotonic
        plugged(relay._connection, self._carry)
        return relay
