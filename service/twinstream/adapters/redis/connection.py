"""A connection to Redis that opens with the first call, and describes each error in one sentence.

In a Redis cluster it is a connection to the one node that holds the keys: the keys of a store share a hash
tag, and so do those of a shelf. A node without the keys answers with the node that has them (MOVED), and does
nothing else; that node is asked from then on. So nothing needs configuration, and a single step of a store
stays a single step. If a node does not answer, the next call goes to another one, which knows the node that
has taken its place.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

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
OPTIONS = frozenset({"db", "username", "password", "client_name"})
"""The options of an address, beside those of TLS: any other would change how the client works."""
_OPTIONS = f"can have only the options {', '.join(sorted(OPTIONS))} and, with rediss://, valid ones for ssl_…"
TIMEOUT_SECONDS = 2.0
AT_ONCE_SECONDS = 0.2
RETRIES = 1
"""A connection that the server closed while idle is opened again at once; nothing else is repeated."""
REDIRECTS = 5
"""If nodes redirect to each other they have not agreed yet: that is tried again later."""


class RedisConnection:
    """The client of one address. Raises StoreError if the address is invalid.

    Its pool of connections is replaced as soon as another node of a cluster is asked. `nodes` are those that
    may be asked; it is empty if there is no cluster.
    """

    def __init__(self, url: str) -> None:
        try:
            _check_place(url)
            _check_options(url)
            self.client = redis.Redis.from_url(
                url,
                socket_timeout=TIMEOUT_SECONDS,
                socket_connect_timeout=TIMEOUT_SECONDS,
                retry=Retry(NoBackoff(), RETRIES),
            )
            pool = self.client.connection_pool
            pool.connection_class(**pool.connection_kwargs)  # Options that do not fit are refused here.
        except (TypeError, redis.RedisError):  # They may be part of the password, too.
            raise StoreError(f"redis address {without_secrets(url)!r} {_OPTIONS}") from None
        except ValueError:  # Its text may contain a part of the password.
            raise StoreError(f"redis address {without_secrets(url)!r} is not of the form {FORM}") from None
        self.nodes: list[tuple[str, int]] = []

    @property
    def place(self) -> str:
        """The address without its secrets."""
        path = self.client.connection_pool.connection_kwargs.get("path")
        return str(path or ":".join(map(str, node_of(self.client))))

    def unreadable(self, what: str) -> str:
        """A sentence that the stored data is damaged, or of another version."""
        return (
            f"redis at {self.place} holds {what} that this version cannot read: "
            "remove the comparison's keys to start over"
        )

    def answers(self) -> bool:
        """Whether Redis answers within `AT_ONCE_SECONDS`, even with a refusal."""
        client = self.hasty()
        try:
            client.ping()
        except (redis.AuthenticationError, redis.BusyLoadingError):
            return True
        except (redis.TimeoutError, redis.ConnectionError):
            self._ask_another()
            return False
        except redis.RedisError:
            return True
        finally:
            client.connection_pool.disconnect()
        return True

    def hasty(self) -> redis.Redis:
        """A separate client of the same node that waits no longer than that for an answer."""
        pool = self.client.connection_pool
        settings = {
            **pool.connection_kwargs,
            "socket_timeout": AT_ONCE_SECONDS,
            "socket_connect_timeout": AT_ONCE_SECONDS,
            "retry": Retry(NoBackoff(), 0),
        }
        return redis.Redis(connection_pool=redis.ConnectionPool(pool.connection_class, **settings))

    def run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Make a call that uses the client, again for each node of a cluster that redirects to another.

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
        """Ask for the other nodes of the cluster, if it is one; a user who may not do so does without."""
        with suppress(redis.RedisError):
            self.nodes = sorted(_nodes(self.client.cluster("nodes")))

    def _move(self, moved: MovedError) -> None:
        """Ask the node that holds the keys from now on, and learn of the others."""
        self._ask(moved.host or node_of(self.client)[0], moved.port)
        self.learn()

    def _ask_another(self) -> None:
        """Ask the next known node from now on."""
        if self.nodes:
            here = node_of(self.client)
            self._ask(*next((node for node in self.nodes if node > here), self.nodes[0]))

    def _ask(self, host: str, port: int) -> None:
        before = self.client.connection_pool
        settings = {**before.connection_kwargs, "host": host, "port": port}
        self.client.connection_pool = redis.ConnectionPool(before.connection_class, **settings)
        before.disconnect()


class HastyLine:
    """A separate connection to the same node, with answers awaited for at most `AT_ONCE_SECONDS`.

    Its users can do without an answer: a Redis that hangs must not stop matching for their sake. After a
    failure it pauses for `pause_seconds`.
    """

    def __init__(self, connection: RedisConnection, pause_seconds: float) -> None:
        self._connection, self._pause_seconds = connection, pause_seconds
        self._client: redis.Redis | None = None
        self._next_try = 0.0
        self._monotonic = time.monotonic

    def call(self, ask: Callable[[Any], Any]) -> Any:
        """The answer to a call; None if none comes at once, or a call failed a moment ago."""
        if self._monotonic() < self._next_try:
            return None
        if self._client is None:
            self._client = self._connection.hasty()
        try:
            return ask(self._client)
        except redis.RedisError:
            self.close()  # The next call opens it again, to the node that the connection uses by then.
            self._next_try = self._monotonic() + self._pause_seconds
            return None

    def close(self) -> None:
        """Close it; the next call opens it again."""
        if self._client is not None:
            self._client.close()
            self._client = None


def node_of(client: redis.Redis) -> tuple[str, int]:
    """The address that a client connects to."""
    settings = client.connection_pool.connection_kwargs
    return str(settings.get("host", "localhost")), int(settings.get("port", 6379))


def _nodes(told: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """The addresses that a node reports of its cluster, except those of nodes that it considers dead."""
    for address, node in told.items():
        host, _, port = address.rpartition(":")
        if host and not {"fail", "noaddr", "handshake"} & set(node["flags"].split(",")):
            yield host, int(port)


def _check_place(url: str) -> None:
    """Raise ValueError if the path names no database or socket: the client would take another one."""
    scheme, _, path, *_ = urlsplit(url)
    if not re.fullmatch("/.+" if scheme == "unix" else "/?[0-9]*", path):
        raise ValueError(f"{path!r} names no database, or no socket")


def _check_options(url: str) -> None:
    """Raise TypeError for an option that changes more than the place and who asks."""
    for name in parse_qs(urlsplit(url).query):
        if name not in OPTIONS and not name.startswith("ssl_"):
            raise TypeError(f"{name} is no option")
