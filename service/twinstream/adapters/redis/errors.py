"""Explains the errors of Redis to its operator: one sentence each, with what to do."""

from __future__ import annotations

import redis

from twinstream.errors import told_of_connection

_FULL = "is full and takes no writes: raise its maxmemory, or free memory in it"
_REPLICA = "is a replica that takes no writes: give the address of the primary"
_NO_PASSWORD = "wants a password: put it into the address, as in redis://:PASSWORD@HOST:PORT/0"

_CLUSTER = (
    "is a node of a Redis cluster in which no node serves the keys of this comparison now ({error}): "
    "it is tried again; look at `redis-cli --cluster check`"
)
_MOVING = "is handing the keys of this comparison to another node of its cluster: it is tried again"

# Redis before 7 hides the code of an error in a script.
_BY_TEXT = (
    ("OOM command not allowed", _FULL),
    ("READONLY", _REPLICA),
    ("BUSY ", "is busy with a script of somebody else: it is tried again until that has ended"),
    ("Redis is busy running a script", "is busy with a script of somebody else: it is tried again"),
    ("Authentication required", _NO_PASSWORD),
    ("must be called with the client already authenticated", _NO_PASSWORD),
    ("MISCONF", "takes no writes, since it cannot save to its disk: see its log"),
)
_BY_CLASS: tuple[tuple[type[redis.RedisError], str], ...] = (
    (redis.exceptions.OutOfMemoryError, _FULL),
    (redis.exceptions.ReadOnlyError, _REPLICA),
    (redis.exceptions.MovedError, _CLUSTER),
    (redis.exceptions.TryAgainError, _MOVING),
    (redis.exceptions.AskError, _MOVING),
    (redis.exceptions.MasterDownError, "is a replica without its primary: give the address of the primary"),
    (redis.exceptions.ClusterDownError, _CLUSTER),
    (
        redis.exceptions.NoPermissionError,
        "does not let this user do what is needed ({error}): extend its ACL",
    ),
    (redis.AuthenticationError, "refuses user or password: put the right ones into the address"),
    (redis.BusyLoadingError, "is still loading its data: it is tried again until it has"),
    (redis.TimeoutError, "does not answer in time ({error}): it is tried again"),
)
_ELSE = "cannot be used: {error}"


def sentence(place: str, error: redis.RedisError) -> str:
    """The problem of the Redis at `place`."""
    told = next((text for sign, text in _BY_TEXT if sign in str(error)), None)
    told = told or next((text for kind, text in _BY_CLASS if isinstance(error, kind)), _ELSE)
    return f"redis at {place} {told.replace('{error}', told_of_connection(error))}"
