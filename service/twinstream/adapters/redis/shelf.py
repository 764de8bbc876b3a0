"""The stores and relays of a comparison in Redis, and the number of shards of its state.

    twinstream:{NAME}:shards          the number of shards of the state in effect
    twinstream:{NAME}:mask            the key of the hashes of masked values, if no file gives one

The only matcher of a comparison uses the keys of `store` unchanged, with the hash tag NAME; shard I of N has
the hash tag NAME.of-N.I, so each shard may be on another node. Names have no dots, so tags never collide.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from twinstream.adapters.redis.connection import RedisConnection
from twinstream.adapters.redis.relay import RedisRelay
from twinstream.adapters.redis.store import RedisStore
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import CheckpointError, Fenced

_SHARDS = """
local found = redis.call('GET', KEYS[1])
if found then return found end
if redis.call('EXISTS', KEYS[2]) == 1 then return '1' end
if ARGV[1] ~= '' then redis.call('SET', KEYS[1], ARGV[1]) end
return ARGV[1]
"""

_REPLACE = """
local found = redis.call('GET', KEYS[1])
if found and found ~= ARGV[1] and found ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""


class RedisShelf:
    """The stores of one comparison. `token` names the owner; it connects with the first call."""

    def __init__(self, url: str, name: str, token: str) -> None:
        self._url, self._name, self._token = url, name, token
        prefix = f"twinstream:{{{name}}}"
        self._key, self._mask, self._whole = (f"{prefix}:{part}" for part in ("shards", "mask", "checkpoint"))
        self._connection = RedisConnection(url)
        self._connections = defaultdict[Shard, RedisConnection](partial(RedisConnection, url))
        self._learned = False

    def shards(self) -> int | None:
        """The number in effect; the state of an undivided comparison has one shard."""
        return self._in_effect("")

    def begin(self, shards: int) -> int:
        """The number in effect, which is this one from now on if there was none."""
        return self._in_effect(str(shards)) or shards

    def _in_effect(self, wanted: str) -> int | None:
        script = self._connection.client.register_script(_SHARDS)
        found = self._connection.run(script, [self._key, self._whole], [wanted])
        if not self._learned:  # From the node that holds the keys, while it is there.
            self._connection.learn()
            self._learned = True
        try:
            return int(found) if found else None
        except ValueError:
            raise CheckpointError(
                f"redis at {self._connection.place} holds the state of an earlier version, which has divided "
                f"{self._name!r} over several matchers: remove its keys (twinstream:{{{self._name}*) to "
                "start over, or keep using that version"
            ) from None

    def replace(self, old: int, new: int) -> None:
        """Put another number into effect. Raises Fenced if neither of the two is."""
        replace = self._connection.client.register_script(_REPLACE)
        if not self._connection.run(replace, [self._key], [old, new]):
            raise Fenced("another process has begun this comparison anew")

    def store(self, shard: Shard) -> RedisStore:
        """The store of a shard."""
        tag = tag_of(self._name, shard)
        return RedisStore(self._url, tag, self._token, self._connections[shard])

    def relay(self, shard: Shard) -> RedisRelay:
        """The relay of a shard, on the connection of its store."""
        return RedisRelay(self._connections[shard], tag_of(self._name, shard), self._token)

    def mask_secret(self, fresh: bytes) -> bytes:
        """The key of the hashes of masked values: `fresh`, if there is none yet."""
        client = self._connection.client
        found: bytes | None = self._connection.run(client.get, self._mask)
        if found is None:
            self._connection.run(client.setnx, self._mask, fresh)
            found = self._connection.run(client.get, self._mask)
        return found or fresh

    def set_mask_secret(self, secret: bytes) -> None:
        """Replace that secret."""
        self._connection.run(self._connection.client.set, self._mask, secret)

    def close(self) -> None:
        """Close the connection; those of its stores and relays stay."""
        self._connection.client.close()


def tag_of(name: str, shard: Shard) -> str:
    """The hash tag of a shard's keys; the number comes last, where it spreads tags over the nodes."""
    return name if shard.whole else f"{name}.of-{shard.of}.{shard.number}"
