"""Detects that an owner is gone, so that a standby need not wait for the lease of a killed one.

A process that ends takes its connections with it, and Redis sees that at once. So an owner subscribes to a
channel named after its token, on which nobody ever publishes, and a standby asks how many subscribers it has.
In a cluster this is the node that holds the keys, which both have asked before.

An owner is *gone* if this process has seen it subscribed, and then sees no subscriber for `GONE_SECONDS`,
over one unbroken connection of its own. A restarted Redis, or a network failure for everybody, disconnects
living owners too; these subscribe again with their next beat. An owner that never subscribed (an older
version, a user without the permission) is never called gone, and neither is one that is paused or whose
machine has lost power, since nobody has closed their connections. Then the lease has to end.

A wrong guess costs a change of owner, and nothing else: the fence refuses what the old one writes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import redis

from twinstream.adapters.redis.connection import node_of

GONE_SECONDS = 1.5
"""A living owner that was disconnected subscribes again within a second, with its next beat."""


class Presence:
    """Shows others that the owner with this token is there, for as long as its process lives."""

    def __init__(self, client: Any, prefix: str, token: str) -> None:
        self._client, self._channel = client, _channel(prefix, token)
        self._listening: Any = None

    def keep(self) -> None:
        """Stay subscribed, also after a disconnection. The lease covers any failure."""
        with suppress(redis.RedisError, OSError):
            if self._listening is not None and self._listening.connection_pool is not self._pool:
                self.end()  # The keys are on another node now.
            if self._listening is None:
                listening = self._client.pubsub()
                listening.subscribe(self._channel)  # One that failed here would never listen.
                self._listening = listening
            self._listening.get_message(timeout=0.0)  # it opens a closed connection again

    @property
    def _pool(self) -> Any:
        return self._client.connection_pool

    def end(self) -> None:
        """Unsubscribe."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None


class Vigil:
    """Watches whether an owner is there. Ask it regularly; `now` never goes back."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client, self._prefix = client, prefix
        self._watched: tuple[str, tuple[str, int], int] | None = None
        self._seen = False
        self._missed_since: float | None = None

    def gone(self, token: str, now: float) -> bool:
        """Whether the owner with this token is certainly gone. Raises redis.RedisError."""
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.client_id()
            pipeline.pubsub_numsub(_channel(self._prefix, token))
            connection, [(_, listeners)] = pipeline.execute()
        watched = (token, node_of(self._client), connection)
        if self._watched != watched:
            self._watched, self._seen = watched, False
        if listeners or not self._seen:
            self._seen, self._missed_since = bool(listeners), None
            return False
        if self._missed_since is None:
            self._missed_since = now
        return now - self._missed_since >= GONE_SECONDS


def _channel(prefix: str, token: str) -> str:
    return f"{prefix}:alive:{token}"
