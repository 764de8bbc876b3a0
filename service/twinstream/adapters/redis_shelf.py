"""The stores of all matchers of a comparison in Redis, and the word on which of them are in effect.

    twinstream:{NAME}:shards          `GENERATION SHARDS`: how many matchers share the state in effect

The keys of a matcher that has no others beside it are those of `twinstream.adapters.redis` as they stand,
with the hash tag NAME; those of one of several have the hash tag NAME.GENERATION.SHARD, so that each may live
on a node of its own. A name has no dots, so tags never meet.
"""

from __future__ import annotations

from twinstream.adapters.redis import RedisStore
from twinstream.adapters.redis_connection import RedisConnection
from twinstream.errors import Fenced
from twinstream.ports import Layout

_REPLACE = """
if (redis.call('GET', KEYS[1]) or ARGV[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""


class RedisShelf:
    """The stores of one comparison. `token` names the owner; it connects with the first call."""

    def __init__(self, url: str, name: str, token: str) -> None:
        self._url, self._name, self._token = url, name, token
        self._key = f"twinstream:{{{name}}}:shards"
        self._connection = RedisConnection(url)

    def layout(self) -> Layout:
        """What is in effect."""
        found = self._connection.run(self._connection.client.get, self._key)
        return Layout(*map(int, found.split())) if found else Layout()

    def replace(self, old: Layout, new: Layout) -> None:
        """Put a layout into effect in the place of another. Raises Fenced where that is not in effect."""
        replace = self._connection.client.register_script(_REPLACE)
        if not self._connection.run(replace, [self._key], [_text(old), _text(new)]):
            raise Fenced("another process has divided this comparison anew")

    def store(self, layout: Layout, number: int) -> RedisStore:
        """The store of one matcher."""
        alone = layout.shards == 1
        tag = self._name if alone else f"{self._name}.{layout.generation}.{number}"
        return RedisStore(self._url, tag, self._token)

    def close(self) -> None:
        """Close the connection; those of its stores stay."""
        self._connection.client.close()


def _text(layout: Layout) -> str:
    return f"{layout.generation} {layout.shards}"
