"""A connection to Redis: it opens with the first call, and what goes wrong is one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from twinstream.adapters.redis_errors import sentence
from twinstream.errors import StoreError

TIMEOUT_SECONDS = 2.0
AT_ONCE_SECONDS = 0.2
RETRIES = 1
"""A connection that the server closed while it was idle is opened again at once; nothing else is repeated."""


class RedisConnection:
    """The client of one address, and the address without its secrets. Raises StoreError where it is none."""

    def __init__(self, url: str) -> None:
        try:
            self.client = redis.Redis.from_url(
                url,
                socket_timeout=TIMEOUT_SECONDS,
                socket_connect_timeout=TIMEOUT_SECONDS,
                retry=Retry(NoBackoff(), RETRIES),
            )
        except ValueError as error:
            raise StoreError(f"redis address {url!r}: {error}") from None
        settings = self.client.connection_pool.connection_kwargs
        self.place = str(
            settings.get("path") or f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}"
        )

    def answers(self) -> bool:
        """Whether Redis says anything within `AT_ONCE_SECONDS`, be it that it refuses."""
        settings = {
            **self.client.connection_pool.connection_kwargs,
            "socket_timeout": AT_ONCE_SECONDS,
            "socket_connect_timeout": AT_ONCE_SECONDS,
            "retry": Retry(NoBackoff(), 0),
        }
        connection = self.client.connection_pool.connection_class(**settings)
        try:
            connection.connect()
            connection.send_command("PING")
            connection.read_response()
        except (redis.AuthenticationError, redis.BusyLoadingError):
            return True
        except (redis.TimeoutError, redis.ConnectionError):
            return False
        except redis.RedisError:
            return True
        finally:
            connection.disconnect()
        return True

    def run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call something of the client. Raises StoreError."""
        try:
            return call(*arguments)
        except redis.RedisError as error:
            raise StoreError(sentence(self.place, error)) from error
