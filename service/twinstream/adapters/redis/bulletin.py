"""Passes an owner's bulletins, and the questions for them, through two small keys that expire.

    twinstream:{NAME}:asked           the latest questions, one word each, the newest first
    twinstream:{NAME}:bulletin        token of the owner that wrote it, a line end, the bulletin

None of it is live state: both keys expire, and losing them only costs a second until the next question.

An owner reads questions and writes bulletins over a separate connection that waits only for a fraction of a
second, and pauses after a failure: a Redis that hangs must not stop matching for the sake of observers. A
bulletin is accepted, and handed out, only while the lease of its writer runs and nobody else took over.
"""

from __future__ import annotations

from twinstream.adapters.redis.connection import HastyLine, RedisConnection

LASTING_MS = 30_000
"""Three leases."""
PAUSE_SECONDS = 5.0
"""After a failure standbys get no answers for so long: at most 4% of the time goes into waiting."""
QUESTIONS, QUESTION_LENGTH = 32, 16
"""At most so many processes that stand by, or show the owner's status, are answered each second."""

_OWNER = (
    "local lease = redis.call('GET', KEYS[2])\nlocal owns = lease and lease == redis.call('GET', KEYS[1])\n"
)

TELL = (
    _OWNER
    + """
if not owns or lease ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[3], ARGV[1] .. '\\n' .. ARGV[2], 'PX', ARGV[3])
return 1
"""
)

ASK = (
    _OWNER
    + """
local asked = redis.call('GET', KEYS[4])
asked = asked and ARGV[1] .. ' ' .. asked or ARGV[1]
redis.call('SET', KEYS[4], string.sub(asked, 1, tonumber(ARGV[3])), 'PX', ARGV[2])
local told = owns and redis.call('GET', KEYS[3])
if not told or string.sub(told, 1, #lease + 1) ~= lease .. '\\n' then return false end
return string.sub(told, #lease + 2)
"""
)


class RedisBulletins:
    """The bulletins of one comparison, or of one shard. It connects with the first call."""

    def __init__(self, connection: RedisConnection, prefix: str, token: str) -> None:
        self._connection, self._token = connection, token
        self._keys = [f"{prefix}:{part}" for part in ("owner", "lease", "bulletin", "asked")]
        self._line = HastyLine(connection, PAUSE_SECONDS)

    def asked(self) -> bytes:
        """The latest questions; empty if Redis does not answer at once."""
        asked: bytes | None = self._line.call(lambda client: client.get(self._keys[3]))
        return asked or b""

    def tell(self, bulletin: bytes) -> None:
        """Write a bulletin, if this is the owner and Redis answers at once."""
        arguments = [self._token, bulletin, LASTING_MS]
        self._line.call(lambda client: client.register_script(TELL)(self._keys, arguments))

    def ask(self, question: str) -> bytes | None:
        """Leave a question, and return the current owner's bulletin. Raises StoreError."""
        length = QUESTIONS * (QUESTION_LENGTH + 1) - 1
        script = self._connection.client.register_script(ASK)
        told: bytes | None = self._connection.run(script, self._keys, [question, LASTING_MS, length])
        return told

    def close(self) -> None:
        """Close the owner's connection."""
        self._line.close()
