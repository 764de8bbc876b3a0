"""What an owner tells those who stand by, and how they ask for it: two small keys that expire.

    twinstream:{NAME}:asked           the latest questions, one word each, the newest first
    twinstream:{NAME}:bulletin        token of the owner that wrote it, a line end, the bulletin

None of it is live state: both end by themselves, and losing them costs nothing but a second of asking again.

An owner asks and tells over a line of its own that waits for a fraction of a second only, and leaves it be
for a while when that did not do: a Redis that hangs must not stop matching for the sake of those who watch.
A bulletin is accepted, and handed out, only while the lease of its writer runs and nobody else took over.
"""

from __future__ import annotations

from twinstream.adapters.redis.connection import HastyLine, RedisConnection

LASTING_MS = 30_000
"""Three leases."""
PAUSE_SECONDS = 5.0
"""After a failure those who stand by are left alone for so long: at most 4% of the time goes into waiting."""
QUESTIONS, QUESTION_LENGTH = 32, 16
"""So many processes may stand by, or show what the owner says, and be answered each second."""

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
    """The bulletins of one comparison, or of a shard. It connects with the first call."""

    def __init__(self, connection: RedisConnection, prefix: str, token: str) -> None:
        self._connection, self._token = connection, token
        self._keys = [f"{prefix}:{part}" for part in ("owner", "lease", "bulletin", "asked")]
        self._line = HastyLine(connection, PAUSE_SECONDS)

    def asked(self) -> bytes:
        """What was asked last; nothing while Redis does not answer at once."""
        asked: bytes | None = self._line.call(lambda client: client.get(self._keys[3]))
        return asked or b""

    def tell(self, bulletin: bytes) -> None:
        """Leave a bulletin, if this is the owner and Redis answers at once."""
        arguments = [self._token, bulletin, LASTING_MS]
        self._line.call(lambda client: client.register_script(TELL)(self._keys, arguments))

    def ask(self, question: str) -> bytes | None:
        """Leave a question, and get the bulletin of the owner of now. Raises StoreError."""
        length = QUESTIONS * (QUESTION_LENGTH + 1) - 1
        script = self._connection.client.register_script(ASK)
        told: bytes | None = self._connection.run(script, self._keys, [question, LASTING_MS, length])
        return told

    def close(self) -> None:
        """Close the line of the owner."""
        self._line.close()
