"""Redis (or Valkey) as a store: one comparison's checkpoint under a lease, each change one atomic script.

Keys, with the comparison's name as hash tag, so that they live together on a cluster:

    twinstream:{NAME}:owner        token of the latest owner; it never expires: the fence
    twinstream:{NAME}:lease        token of the owner while its lease runs
    twinstream:{NAME}:epoch        grows with each change of owner
    twinstream:{NAME}:checkpoint   hash: sequence, state
    twinstream:{NAME}:divergences  hash: id -> report

A write is refused unless `owner` is still the writer's token, whatever its lease says: a process that was
paused beyond its lease may go on if nobody has taken over, and may not if somebody has. A write with a
sequence number that is already there changes nothing, so the client may repeat it after a timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from twinstream.errors import Fenced, StoreError
from twinstream.ports import Stored

LEASE_MS = 10_000
TIMEOUT_SECONDS = 2.0
RETRIES = 1
"""A connection that the server closed while it was idle is opened again at once; nothing else is repeated."""

_ACQUIRE = """
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then return 0 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  redis.call('INCR', KEYS[3])
  redis.call('SET', KEYS[1], ARGV[1])
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
"""

_SAVE = """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
local saved = redis.call('HGET', KEYS[4], 'sequence')
if saved == ARGV[3] then return 1 end
redis.call('HSET', KEYS[4], 'sequence', ARGV[3], 'state', ARGV[4])
for i = 5, #ARGV, 2 do redis.call('HSET', KEYS[5], ARGV[i], ARGV[i + 1]) end
return 1
"""

_CLEAR = """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[4], KEYS[5])
return 1
"""

_RENEW = """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
if redis.call('HGET', KEYS[4], 'sequence') == ARGV[3] then return 1 end
return 2
"""

_RELEASE = """
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
"""

T = TypeVar("T")


class RedisStore:
    """The checkpoints of one comparison. `token` names this owner; it connects with the first call."""

    def __init__(self, url: str, name: str, token: str | None = None) -> None:
        self._token = token or uuid4().hex
        self._keys = [
            f"twinstream:{{{name}}}:{part}"
            for part in ("owner", "lease", "epoch", "checkpoint", "divergences")
        ]
        try:
            self._redis = redis.Redis.from_url(
                url,
                socket_timeout=TIMEOUT_SECONDS,
                socket_connect_timeout=TIMEOUT_SECONDS,
                retry=Retry(NoBackoff(), RETRIES),
            )
        except ValueError as error:
            raise StoreError(f"redis address {url!r}: {error}") from None
        self._place = _without_secret(self._redis)
        self._acquire, self._save, self._clear, self._renew, self._release = (
            self._redis.register_script(script) for script in (_ACQUIRE, _SAVE, _CLEAR, _RENEW, _RELEASE)
        )
        self._checked = False

    def acquire(self) -> bool:
        """Take ownership if no other lease is running."""
        if not self._checked:
            self._check_policy()
        return bool(self._run(lambda: self._acquire(self._keys, [self._token, LEASE_MS])))

    def load(self) -> Stored:
        """What was saved last."""
        checkpoint = self._run(lambda: self._redis.hget(self._keys[3], "state"))
        divergences = self._run(lambda: self._redis.hgetall(self._keys[4]))
        return Stored(checkpoint, {key.decode(): value for key, value in divergences.items()})

    def save(self, sequence: int, checkpoint: bytes, divergences: Mapping[str, bytes]) -> None:
        """Replace the checkpoint and add divergences in one step. Raises Fenced."""
        arguments: list[Any] = [self._token, LEASE_MS, sequence, checkpoint]
        for key, report in divergences.items():
            arguments += (key, report)
        if not self._run(lambda: self._save(self._keys, arguments)):
            raise Fenced("another process has taken this comparison over")

    def clear(self) -> None:
        """Forget everything that was saved. Raises Fenced."""
        if not self._run(lambda: self._clear(self._keys, [self._token])):
            raise Fenced("another process has taken this comparison over")

    def renew(self, sequence: int) -> bool:
        """Prolong the lease; whether the checkpoint of this sequence number is there. Raises Fenced."""
        answer = self._run(lambda: self._renew(self._keys, [self._token, LEASE_MS, sequence]))
        if not answer:
            raise Fenced("another process has taken this comparison over")
        return bool(answer == 1)

    def release(self) -> None:
        """Give the lease back, if it is this owner's."""
        self._run(lambda: self._release(self._keys, [self._token]))

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()

    def _check_policy(self) -> None:
        policy = self._run(lambda: self._redis.info("memory")).get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise StoreError(
                f"redis at {self._place} has maxmemory-policy {policy}, which may drop checkpoints: "
                "set it to noeviction"
            )
        self._checked = True

    def _run(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except redis.RedisError as error:
            raise StoreError(f"redis at {self._place} cannot be used: {error}") from error


def _without_secret(client: redis.Redis) -> str:
    settings = client.connection_pool.connection_kwargs
    return str(settings.get("path") or f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}")
