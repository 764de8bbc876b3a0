"""Passes the owner's status to other processes, and resets to the owner, through small keys that expire.

    twinstream:{NAME}:bulletin        token of the owner that wrote it, a line end, the bulletin
    twinstream:{NAME}:heard           present while others read bulletins
    twinstream:{NAME}:request         ticket of a requested reset, a line end, the request
    twinstream:{NAME}:answer:TICKET   the outcome of the request with this ticket

Shard I of N has the hash tag of its store (see `shelf`); requests go to shard 0. Losing one of these keys
costs a second until the next bulletin, or an answer.

A bulletin is accepted, and handed out, only while the lease of its writer runs and nobody else took over. It
is read together with the time, on the server that holds the keys: the clock that the owner has asked, too.

There is one request at a time; who asks while it waits is given that one. The owner takes it, which removes
it, so it is never executed twice. If the owner ends between taking and answering, the outcome stays unknown.
An asker who waited in vain withdraws the request: if it is still there, nobody has begun it. A request that a
fail-over brings back ends by itself, as nobody prolongs it any more.

The owner uses a separate connection that waits only for a fraction of a second, and pauses after a failure: a
Redis that hangs must not stop matching for the sake of others.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from twinstream.adapters.redis.connection import HastyLine, RedisConnection
from twinstream.ports import Asked, Heard

BULLETIN_MS = 30_000
"""Three leases."""
REQUEST_MS, ANSWER_MS = 5_000, 60_000
"""A request lasts for as long as its asker looks for the outcome, several times a second."""
HEARD_MS = 10_000
"""Longer than others show what they have read, since they compare two bulletins a few seconds apart."""
PAUSE_SECONDS = 5.0
"""After a failure others get nothing for so long: at most 4% of the owner's time goes into waiting."""

# Their keys begin with owner and lease.
_OWNS = (
    "local lease = redis.call('GET', KEYS[2])\nlocal owns = lease and lease == redis.call('GET', KEYS[1])\n"
)

TELL = f"""{_OWNS}
if not owns or lease ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[3], ARGV[1] .. '\\n' .. ARGV[2], 'PX', ARGV[3])
return 1
"""

# A replica refuses to write, and so to answer: its clock is not the one that the owner asks.
HEAR = f"""{_OWNS}
redis.call('SET', KEYS[4], '1', 'PX', ARGV[1])
local told = owns and redis.call('GET', KEYS[3])
if not told or string.sub(told, 1, #lease + 1) ~= lease .. '\\n' then return false end
local now = redis.call('TIME')
return now[1] .. ' ' .. now[2] .. ' ' .. told
"""

TAKE = f"""{_OWNS}
if not owns or lease ~= ARGV[1] then return false end
local request = redis.call('GET', KEYS[3])
if request then redis.call('DEL', KEYS[3]) end
return request
"""

ASK = """
local request = redis.call('GET', KEYS[1])
if request then return request end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
"""

ANSWERED = """
local answer = redis.call('GET', KEYS[1])
if answer then return answer end
local request = redis.call('GET', KEYS[2])
if request and string.sub(request, 1, #ARGV[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return false
"""

WITHDRAW = """
local request = redis.call('GET', KEYS[1])
if not request or string.sub(request, 1, #ARGV[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""


class RedisRelay:
    """The relay beside the store with this hash tag, over whose connection its owner is found in a cluster.

    `token` names the owner. It connects with the first call.
    """

    def __init__(self, connection: RedisConnection, tag: str, token: str) -> None:
        self._prefix, self._token = f"twinstream:{{{tag}}}", token
        self._connection = connection
        self._line = HastyLine(connection, PAUSE_SECONDS)

    # -- the owner -----------------------------------------------------------------------------------------

    def time(self) -> float | None:
        """The time by the clock of Redis, if it gives one at once."""
        told = self._line.call(lambda client: client.time())
        return None if told is None else _seconds(*told)

    def tell(self, bulletin: bytes) -> None:
        """Write a bulletin, if this is the owner and Redis answers at once."""
        keys, arguments = self._owned("bulletin"), [self._token, bulletin, BULLETIN_MS]
        self._line.call(lambda client: client.register_script(TELL)(keys, arguments))

    def take(self) -> Asked | None:
        """The request, if there is one, this owner's lease runs, and Redis answers at once."""
        keys = self._owned("request")
        taken = self._line.call(lambda client: client.register_script(TAKE)(keys, [self._token]))
        return None if taken is None else _asked(taken)

    def answer(self, ticket: str, outcome: bytes) -> None:
        """Write the outcome of a request, if Redis answers at once."""
        self._line.call(lambda client: client.set(self._key(f"answer:{ticket}"), outcome, px=ANSWER_MS))

    # -- others --------------------------------------------------------------------------------------------

    def heard(self) -> Heard | None:
        """The bulletin of the owner whose lease is running, and the time."""
        told: bytes | None = self._script(HEAR, self._owned("bulletin", "heard"), HEARD_MS)
        if told is None:
            return None
        head, _, bulletin = told.partition(b"\n")
        seconds, microseconds, token = head.decode().split(" ", 2)
        return Heard(_seconds(int(seconds), int(microseconds)), token, bulletin)

    def ask(self, request: bytes) -> Asked:
        """Leave a request, unless there is one, and return the one that is there."""
        text = uuid4().hex.encode() + b"\n" + request
        return _asked(self._script(ASK, [self._key("request")], text, REQUEST_MS))

    def answered(self, ticket: str) -> bytes | None:
        """The outcome of a request, if it is known; else prolong the request."""
        keys = [self._key(f"answer:{ticket}"), self._key("request")]
        found: bytes | None = self._script(ANSWERED, keys, ticket.encode(), REQUEST_MS)
        return found

    def withdraw(self, ticket: str) -> bool:
        """Withdraw a request; returns False if it is gone."""
        return bool(self._script(WITHDRAW, [self._key("request")], ticket.encode()))

    def listened_to(self) -> bool:
        """Whether another process has read a bulletin lately."""
        return bool(self._connection.run(self._connection.client.exists, self._key("heard")))

    def close(self) -> None:
        """Close the connections."""
        self._line.close()
        self._connection.client.close()

    def _script(self, script: str, keys: list[str], *arguments: bytes | int) -> Any:
        return self._connection.run(self._connection.client.register_script(script), keys, arguments)

    def _owned(self, *parts: str) -> list[str]:
        return [self._key(part) for part in ("owner", "lease", *parts)]

    def _key(self, part: str) -> str:
        return f"{self._prefix}:{part}"


def _asked(text: bytes) -> Asked:
    ticket, _, request = text.partition(b"\n")
    return Asked(ticket.decode(), request)


def _seconds(seconds: int, microseconds: int) -> float:
    return seconds + microseconds / 1_000_000
