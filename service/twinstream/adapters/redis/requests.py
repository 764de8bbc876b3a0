"""Hands resets to the owner through Redis, when they are requested at a process without matchers.

    twinstream:{NAME}:request         the requested reset, as JSON; it expires
    twinstream:{NAME}:answer:ID       the outcome of the request with this id; it expires

If several matchers share the comparison the hash tag is that of shard 0, whose owner takes the request.

There is one request at a time. The owner takes it, which removes it, so it is never executed twice. If the
owner ends between taking and answering, the outcome stays unknown, as with a matcher that ends before it
answers its service. An asker who waited in vain withdraws the request: if it is still there, nobody has begun
it.
"""

from __future__ import annotations

from twinstream.adapters.redis.connection import HastyLine, RedisConnection

LASTING_MS = 60_000
"""The longest life of a request whose asker has ended. It is longer than anybody waits."""
PAUSE_SECONDS = 10.0
"""After a failure the owner pauses for so long: waiting takes at most 2% of the time."""

TAKE = """
local lease = redis.call('GET', KEYS[1])
if lease ~= ARGV[1] then return false end
local request = redis.call('GET', KEYS[2])
if request then redis.call('DEL', KEYS[2]) end
return request
"""

WITHDRAW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""


class RedisRequests:
    """The requests to the owner of the store with this hash tag. It connects with the first call."""

    def __init__(self, url: str, tag: str) -> None:
        self._prefix = f"twinstream:{{{tag}}}"
        self._request = f"{self._prefix}:request"
        self._connection = RedisConnection(url)
        self._line = HastyLine(self._connection, PAUSE_SECONDS, find=self._find)

    # -- the asker -----------------------------------------------------------------------------------------

    def put(self, request: bytes) -> bool:
        """Leave a request; returns False if there is another one. Raises StoreError."""
        put = self._connection.client.set
        return bool(self._connection.run(lambda: put(self._request, request, px=LASTING_MS, nx=True)))

    def answered(self, identifier: str) -> bytes | None:
        """The outcome of the request with this id, if it is known. Raises StoreError."""
        found: bytes | None = self._connection.run(self._connection.client.get, self._answer(identifier))
        return found

    def withdraw(self, request: bytes) -> bool:
        """Withdraw a request; returns False if it is gone. Raises StoreError."""
        withdraw = self._connection.client.register_script(WITHDRAW)
        return bool(self._connection.run(withdraw, [self._request], [request]))

    # -- the owner -----------------------------------------------------------------------------------------

    def take(self, token: str) -> bytes | None:
        """The request, if there is one and this owner's lease runs; waits only a moment for Redis."""
        keys = [f"{self._prefix}:lease", self._request]
        taken: bytes | None = self._line.call(lambda client: client.register_script(TAKE)(keys, [token]))
        return taken

    def answer(self, identifier: str, text: bytes) -> None:
        """Write the outcome of a taken request, if Redis answers at once."""
        self._line.call(lambda client: client.set(self._answer(identifier), text, px=LASTING_MS))

    def close(self) -> None:
        """Close the connections."""
        self._line.close()
        self._connection.client.close()

    def _find(self) -> None:
        self._connection.run(self._connection.client.exists, self._request)

    def _answer(self, identifier: str) -> str:
        return f"{self._prefix}:answer:{identifier}"
