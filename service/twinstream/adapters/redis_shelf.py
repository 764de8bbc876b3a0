"""The stores of all matchers of a comparison in Redis, and the word on which of them are in effect.

    twinstream:{NAME}:shards          `GENERATION SHARDS`: how many matchers share the state in effect
    twinstream:{NAME}:dealer          token of who may replace that word
    twinstream:{NAME}:notes           what shards by partition tell each other: a hash, by `GENERATION.SHARD`
    twinstream:{NAME}:mask            what hashes of masked values are keyed with, where no file says it

The keys of a matcher that has no others beside it are those of `twinstream.adapters.redis` as they stand,
with the hash tag NAME; those of one of several have the hash tag NAME.GENERATION.SHARD, so that each may live
on a node of its own. A name has no dots, so tags never meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinstream.adapters.redis import RedisStore
from twinstream.adapters.redis_connection import RedisConnection
from twinstream.errors import CheckpointError, Fenced
from twinstream.ports import Layout

# It may arrive twice: then the new layout is in effect, put there by the one who has claimed it.
_REPLACE = """
local found = redis.call('GET', KEYS[1]) or ARGV[1]
if ARGV[1] ~= ARGV[2] and redis.call('GET', KEYS[3]) ~= ARGV[3] then return 0 end
if found == ARGV[2] and ARGV[1] ~= ARGV[2] then return 1 end
if found ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
if ARGV[1] ~= ARGV[2] then redis.call('DEL', KEYS[2]) end
return 1
"""


class RedisShelf:
    """The stores of one comparison. `token` names the owner; it connects with the first call."""

    def __init__(self, url: str, name: str, token: str) -> None:
        self._url, self._name, self._token = url, name, token
        prefix = f"twinstream:{{{name}}}"
        parts = ("shards", "notes", "mask", "dealer")
        self._key, self._notes, self._mask, self._dealer = (f"{prefix}:{part}" for part in parts)
        self._connection = RedisConnection(url)
        self._learned = False

    def layout(self) -> Layout:
        """What is in effect."""
        found = self._connection.run(self._connection.client.get, self._key)
        if not self._learned:  # From the node that holds the keys, while it is there.
            self._connection.learn()
            self._learned = True
        if not found:
            return Layout()
        try:
            generation, shards = map(int, found.split())
        except ValueError as error:
            raise CheckpointError(self._connection.unreadable("a division into shards")) from error
        return Layout(generation, shards)

    def claim(self) -> None:
        """Be the one who may put another layout into effect."""
        self._connection.run(self._connection.client.set, self._dealer, self._token)

    def replace(self, old: Layout, new: Layout) -> None:
        """Put a layout into effect in the place of another. Raises Fenced where that cannot be."""
        replace = self._connection.client.register_script(_REPLACE)
        keys, texts = [self._key, self._notes, self._dealer], [_text(old), _text(new), self._token]
        if not self._connection.run(replace, keys, texts):
            raise Fenced("another process has divided this comparison anew")

    def exchange(self, layout: Layout, number: int, note: bytes) -> Mapping[int, bytes]:
        """Leave the note of a shard, in the place of its last one; the newest of each shard of the layout."""

        def exchanged() -> list[Any]:
            with self._connection.client.pipeline(transaction=False) as pipeline:
                pipeline.hset(self._notes, f"{layout.generation}.{number}", note)
                pipeline.hgetall(self._notes)
                return pipeline.execute()

        _, notes = self._connection.run(exchanged)
        found = {tuple(map(int, place.split(b"."))): text for place, text in notes.items()}
        return {shard: text for (generation, shard), text in found.items() if generation == layout.generation}

    def store(self, layout: Layout, number: int) -> RedisStore:
        """The store of one matcher."""
        return RedisStore(self._url, tag_of(self._name, layout, number), self._token)

    def mask_secret(self, fresh: bytes) -> bytes:
        """What hashes of masked values are keyed with: `fresh`, if there is nothing yet."""
        client = self._connection.client
        self._connection.run(client.setnx, self._mask, fresh)
        found: bytes | None = self._connection.run(client.get, self._mask)
        return found or fresh

    def close(self) -> None:
        """Close the connection; those of its stores stay."""
        self._connection.client.close()


def tag_of(name: str, layout: Layout, number: int) -> str:
    """The hash tag of the keys of a shard."""
    return name if layout.shards == 1 else f"{name}.{layout.generation}.{number}"


def _text(layout: Layout) -> str:
    return f"{layout.generation} {layout.shards}"
