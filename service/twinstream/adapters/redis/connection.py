"""A connection to Redis: it opens with the first call, and what goes wrong is one sentence.

Of a Redis cluster it is a connection to the one node that holds the keys: those of a store share a hash tag,
and so those of a shelf. A node that does not hold them says who does (MOVED), having done nothing; from then
on that one is asked. So nothing has to be set, and what a store does in one step stays one step. When a node
does not answer, the next call goes to another one, which knows who has taken its place.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import MovedError
from redis.retry import Retry

from twinstream.adapters.redis.errors import sentence
from twinstream.errors import StoreError, without_secrets

FORM = (
    "redis://[USER:PASSWORD@]HOST:PORT/DATABASE, rediss://… or unix://PATH; in a password write / as %2F, "
    "# as %23, ? as %3F, @ as %40 and % as %25"
)
TIMEOUT_SECONDS = 2.0
AT_ONCE_SECONDS = 0.2
RETRIES = 1
"""A connection that the server closed while it was idle is opened again at once; nothing else is repeated."""
REDIRECTS = 5
"""Nodes that point to each other have not agreed yet: that is tried again later."""


class RedisConnection:
    """The client of one address. Raises StoreError where it is none.

    Its pool of connections is another one as soon as another node of a cluster is asked. `nodes` are those
    that may be asked; it is empty where there is no cluster.
    """

    def __init__(self, url: str) -> None:
        try:
            _check_database(url)
            self.client = redis.Redis.from_url(
                url,
                socket_timeout=TIMEOUT_SECONDS,
                socket_connect_timeout=TIMEOUT_SECONDS,
                retry=Retry(NoBackoff(), RETRIES),
            )
        except ValueError:  # Its text may have a part of the password.
            raise StoreError(f"redis address {without_secrets(url)!r} is not of the form {FORM}") from None
        self.nodes: list[tuple[str, int]] = []

    @property
    def place(self) -> str:
        """The address without its secrets."""
        path = self.client.connection_pool.connection_kwargs.get("path")
        return str(path or ":".join(map(str, node_of(self.client))))

    def unreadable(self, what: str) -> str:
        """In a sentence, that what is stored there is damaged, or of another version."""
        return (
            f"redis at {self.place} holds {what} that this version cannot read: "
            "remove the comparison's keys to begin anew"
        )

    def answers(self) -> bool:
        """Whether Redis says anything within `AT_ONCE_SECONDS`, be it that it refuses."""
        connection = self.client.connection_pool.connection_class(**self._hasty_settings())
        try:
            connection.connect()
            connection.send_command("PING")
            connection.read_response()
        except (redis.AuthenticationError, redis.BusyLoadingError):
            return True
        except (redis.TimeoutError, redis.ConnectionError):
            self._ask_another()
            return False
        except redis.RedisError:
            return True
        finally:
            connection.disconnect()
        return True

    def hasty(self) -> redis.Redis:
        """A client of its own to the same place, that waits for an answer no longer than that."""
        kind = self.client.connection_pool.connection_class
        return redis.Redis(connection_pool=redis.ConnectionPool(kind, **self._hasty_settings()))

    def _hasty_settings(self) -> dict[str, Any]:
        return {
            **self.client.connection_pool.connection_kwargs,
            "socket_timeout": AT_ONCE_SECONDS,
            "socket_connect_timeout": AT_ONCE_SECONDS,
            "retry": Retry(NoBackoff(), 0),
        }

    def run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call something that asks the client, once more for each node of a cluster that refers to another.

        Raises StoreError.
        """
        for left in reversed(range(REDIRECTS)):
            place = self.place
            try:
                return call(*arguments)
            except MovedError as error:
                if not left:
                    raise StoreError(sentence(place, error)) from error
                self._move(error)
            except redis.RedisError as error:
                if isinstance(error, (redis.ConnectionError, redis.TimeoutError)):
                    self._ask_another()
                raise StoreError(sentence(place, error)) from error
        raise AssertionError("the last redirection is an error")

    # -- clusters ------------------------------------------------------------------------------------------

    def learn(self) -> None:
        """Ask for the other nodes of the cluster, if it is one; who may not ask them does without."""
        with suppress(redis.RedisError):
            self.nodes = sorted(_nodes(self.client.cluster("nodes")))

    def _move(self, moved: MovedError) -> None:
        """Ask the node that holds the keys from now on, and know of the others."""
        self._ask(moved.host or node_of(self.client)[0], moved.port)
        self.learn()

    def _ask_another(self) -> None:
        """Ask the next node that is known from now on."""
        if self.nodes:
            here = node_of(self.client)
            self._ask(*next((node for node in self.nodes if node > here), self.nodes[0]))

    def _ask(self, host: str, port: int) -> None:
        before = self.client.connection_pool
        settings = {**before.connection_kwargs, "host": host, "port": port}
        self.client.connection_pool = redis.ConnectionPool(before.connection_class, **settings)
        before.disconnect()


class HastyLine:
    """A line of its own to where a connection is, that is waited for `AT_ONCE_SECONDS` at most.

    Who asks can do without an answer: a Redis that hangs must not stop matching for its sake. After a failure
    it is left be for `pause_seconds`. That the keys have moved is none where there is `find`, which has the
    connection find them, and may take longer.
    """

    def __init__(
        self,
        connection: RedisConnection,
        pause_seconds: float,
        find: Callable[[], object] | None = None,
    ) -> None:
        self._connection, self._pause_seconds, self._find = connection, pause_seconds, find
        self._client: redis.Redis | None = None
        self._next_try = 0.0
        self._monotonic = time.monotonic

    def call(self, ask: Callable[[Any], Any]) -> Any:
        """What it answers; None where it does not answer at once, or has not a moment ago."""
        if self._monotonic() < self._next_try:
            return None
        if self._client is None:
            self._client = self._connection.hasty()
        try:
            return ask(self._client)
        except redis.RedisError as error:
            self.close()  # The next one asks the node that the connection asks by then.
            if self._find is not None and isinstance(error, MovedError):
                with suppress(StoreError):
                    self._find()
            else:
                self._next_try = self._monotonic() + self._pause_seconds
            return None

    def close(self) -> None:
        """Close it; the next call opens it again."""
        if self._client is not None:
            self._client.close()
            self._client = None


def node_of(client: redis.Redis) -> tuple[str, int]:
    """The address that a client asks."""
    settings = client.connection_pool.connection_kwargs
    return str(settings.get("host", "localhost")), int(settings.get("port", 6379))


def _nodes(told: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """The addresses in what a node tells of its cluster, but for those of nodes that it takes for dead."""
    for address, node in told.items():
        host, _, port = address.rpartition(":")
        if host and not {"fail", "noaddr", "handshake"} & set(node["flags"].split(",")):
            yield host, int(port)


def _check_database(url: str) -> None:
    """Raise ValueError where the path names no database: the client would take 0 instead, and say nothing."""
    scheme, _, path, *_ = urlsplit(url)
    if scheme != "unix" and not re.fullmatch(r"/?[0-9]*", path):
        raise ValueError(f"{path!r} names no database")
