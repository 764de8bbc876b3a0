"""Whether an owner is still there: who stands by need not wait for the lease of one that was killed.

A process that ends takes its connections with it, and Redis sees that at once. So an owner listens to a
channel that is named after its token, on which nobody ever speaks, and who stands by asks how many listen
there. In a cluster that is the node that holds the keys, which both ask before.

*Gone* is an owner that this process has seen listening, and for `GONE_SECONDS` sees no more, over one
unbroken connection of its own. A Redis that was started again, and a network that broke for everybody, have
cut off the living, too; these listen again with their next beat. An owner that never listened (an older
version, a user who may not) is never called gone, and neither is one that is paused or whose machine has lost
its power, since nobody has closed their connections. Then the lease has to end.

A wrong guess costs a change of owner, and nothing else: the fence refuses what the old one writes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import redis

from twinstream.adapters.redis.connection import node_of

GONE_SECONDS = 1.5
"""An owner whose line was cut listens again within a second, with its next beat."""


class Presence:
    """Lets others see that the owner with this token is there, for as long as its process lives."""

    def __init__(self, client: Any, prefix: str, token: str) -> None:
        self._client, self._channel = client, _channel(prefix, token)
        self._listening: Any = None

    def keep(self) -> None:
        """Listen, also where the line was cut. Whatever goes wrong is left to the lease."""
        with suppress(redis.RedisError, OSError):
            if self._listening is not None and self._listening.connection_pool is not self._pool:
                self.end()  # The keys are on another node now.
            if self._listening is None:
                listening = self._client.pubsub()
                listening.subscribe(self._channel)  # One that failed here would never listen.
                self._listening = listening
            self._listening.get_message(timeout=0.0)  # it opens a line anew that was cut

    @property
    def _pool(self) -> Any:
        return self._client.connection_pool

    def end(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None


class Vigil:
    """Watches whether an owner is there. Ask it once in a while; `now` never goes back."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client, self._prefix = client, prefix
        self._watched: tuple[str, tuple[str, int], int] | None = None
        self._seen = False
        self._missed_since: float | None = None

    def gone(self, token: str, now: float) -> bool:
        """Whether the owner with this token is gone for certain. Raises redis.RedisError."""
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
