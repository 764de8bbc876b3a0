"""The stores of all matchers of a comparison in Redis, and the word on which of them are in effect.

    twinstream:{NAME}:shards          `GENERATION SHARDS`: how many matchers share the state in effect

The keys of a matcher that has no others beside it are those of `twinstream.adapters.redis` as they stand,
with the hash tag NAME; those of one of several have the hash tag NAME.GENERATION.SHARD, so that each may live
on a node of its own. A name has no dots, so tags never meet.
"""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from twinstream.adapters.redis import RETRIES, TIMEOUT_SECONDS, RedisStore
from twinstream.adapters.redis_errors import sentence
from twinstream.errors import Fenced, StoreError
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
        try:
            self._redis = redis.Redis.from_url(
                url,
                socket_timeout=TIMEOUT_SECONDS,
                socket_connect_timeout=TIMEOUT_SECONDS,
                retry=Retry(NoBackoff(), RETRIES),
            )
        except ValueError as error:
            raise StoreError(f"redis address {url!r}: {error}") from None

    def layout(self) -> Layout:
        """What is in effect."""
        try:
            found = self._redis.get(self._key)
        except redis.RedisError as error:
            raise self._trouble(error) from error
        return Layout(*map(int, found.split())) if found else Layout()

    def replace(self, old: Layout, new: Layout) -> None:
        """Put a layout into effect in the place of another. Raises Fenced where that is not in effect."""
        try:
            done = self._redis.register_script(_REPLACE)([self._key], [_text(old), _text(new)])
        except redis.RedisError as error:
            raise self._trouble(error) from error
        if not done:
            raise Fenced("another process has divided this comparison anew")

    def store(self, layout: Layout, number: int) -> RedisStore:
        """The store of one matcher."""
        alone = layout.shards == 1
        tag = self._name if alone else f"{self._name}.{layout.generation}.{number}"
        return RedisStore(self._url, tag, self._token)

    def close(self) -> None:
        """Close the connection; those of its stores stay."""
        self._redis.close()

    def _trouble(self, error: redis.RedisError) -> StoreError:
        settings = self._redis.connection_pool.connection_kwargs
        place = str(
            settings.get("path") or f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}"
        )
        return StoreError(sentence(place, error))


def _text(layout: Layout) -> str:
    return f"{layout.generation} {layout.shards}"
