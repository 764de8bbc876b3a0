"""A simulated Redis: the commands that the stores use, the shipped scripts in real Lua, and simulated time.

The batteries of `tests/contract` hold it against the same laws as a real one. Values are never changed in
place, so that a copy of the keys is all that a fail-over to an older state needs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import lupa.lua51 as lua
import redis

Value = bytes | Mapping[bytes, bytes] | frozenset[bytes]
Data = dict[bytes, tuple[Value, float | None]]
"""By key its value, and when it ends."""

_LUA = lua.LuaRuntime(encoding=None, unpack_returned_tuples=True)
_HEAD = b"local KEYS, ARGV, call = ...\nlocal redis = {call = call}\n"


@cache
def _compiled(script: bytes) -> Any:
    return _LUA.compile(_HEAD + script)


class SimulatedRedis:
    """One server. `now` tells seconds, by which keys end, `time` those since 1970.

    `alter` may plant a bug into a script.
    """

    def __init__(
        self,
        now: Callable[[], float],
        time: Callable[[], float],
        data: Data | None = None,
        alter: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._now, self._wall, self._alter = now, time, alter
        self.data: Data = {} if data is None else data
        self._scripts: dict[bytes, bytes] = {}

    def execute(self, *command: bytes) -> Any:
        """Carry one command out. Raises redis.ResponseError."""
        name, *arguments = command
        try:
            method = getattr(self, f"_{name.decode().lower()}")
        except AttributeError:
            raise redis.ResponseError(f"unknown command {name!r}") from None
        return method(*arguments)

    # -- keys ----------------------------------------------------------------------------------------------

    def _held(self, key: bytes) -> Value | None:
        value, ends = self.data.get(key, (None, None))
        return None if ends is not None and ends <= self._now() else value

    def _put(self, key: bytes, value: Value) -> None:
        self.data[key] = (value, None)

    def _get(self, key: bytes) -> Value | None:
        return self._held(key)

    def _set(self, key: bytes, value: bytes, *options: bytes) -> str | None:
        if b"NX" in options and self._held(key) is not None:
            return None
        lasting = dict(pairwise(options)).get(b"PX")
        ends = None if lasting is None else self._now() + int(lasting) / 1000
        self.data[key] = (value, ends)
        return "OK"

    def _pexpire(self, key: bytes, lasting: bytes) -> int:
        value = self._held(key)
        if value is None:
            return 0
        self.data[key] = (value, self._now() + int(lasting) / 1000)
        return 1

    def _setnx(self, key: bytes, value: bytes) -> int:
        return int(self._set(key, value, b"NX") == "OK")

    def _del(self, *keys: bytes) -> int:
        return sum(self.data.pop(key, None) is not None for key in keys)

    _unlink = _del

    def _exists(self, *keys: bytes) -> int:
        return sum(self._held(key) is not None for key in keys)

    def _incr(self, key: bytes) -> int:
        number = int(self._held(key) or 0) + 1
        self._put(key, b"%d" % number)
        return number

    def _hget(self, key: bytes, field: bytes) -> bytes | None:
        return (self._held(key) or {}).get(field)

    def _hset(self, key: bytes, *pairs: bytes) -> int:
        before = self._held(key) or {}
        after = {**before, **dict(zip(pairs[::2], pairs[1::2], strict=True))}
        self._put(key, after)
        return len(after) - len(before)

    def _hgetall(self, key: bytes) -> dict[bytes, bytes]:
        return dict(self._held(key) or {})

    def _sadd(self, key: bytes, *members: bytes) -> int:
        before = self._held(key) or frozenset()
        self._put(key, before.union(members))
        return len(before.union(members)) - len(before)

    def _srem(self, key: bytes, *members: bytes) -> int:
        before = self._held(key) or frozenset()
        left = before.difference(members)
        self._put(key, left)
        if not left:
            del self.data[key]
        return len(before) - len(left)

    def _smembers(self, key: bytes) -> set[bytes]:
        return set(self._held(key) or ())

    # -- scripts -------------------------------------------------------------------------------------------

    def _script(self, what: bytes, script: bytes) -> bytes:
        assert what == b"LOAD"
        digest = hashlib.sha1(script, usedforsecurity=False).hexdigest().encode()
        self._scripts[digest] = script
        return digest

    def script(self, digest: bytes) -> bytes | None:
        """The text of a script that was loaded."""
        return self._scripts.get(digest)

    def forget_scripts(self) -> None:
        """Know no script any more, as a server that has just taken over."""
        self._scripts.clear()

    def _evalsha(self, digest: bytes, count: bytes, *rest: bytes) -> Any:
        script = self._scripts.get(digest)
        if script is None:
            raise redis.exceptions.NoScriptError("No matching script.")
        keys, arguments = rest[: int(count)], rest[int(count) :]
        answer = _compiled(self._alter(script))(_LUA.table_from(keys), _LUA.table_from(arguments), self._call)
        if answer is False:
            return None
        return int(answer) if isinstance(answer, float | bool) else answer

    def _call(self, *command: Any) -> Any:
        answer = self.execute(*(part if isinstance(part, bytes) else b"%d" % part for part in command))
        if isinstance(answer, list):
            return _LUA.table_from(answer)
        return False if answer is None else answer

    # -- the server itself ---------------------------------------------------------------------------------

    def _time(self) -> list[bytes]:
        microseconds = round(self._wall() * 1_000_000)
        return [b"%d" % part for part in divmod(microseconds, 1_000_000)]

    def _info(self, _: bytes) -> bytes:
        return b"# Memory\r\nmaxmemory_policy:noeviction\r\n"

    def _memory(self, what: bytes, key: bytes) -> int | None:
        assert what == b"USAGE"
        value = self._held(key)
        return None if value is None else 50 + len(key) + len(value)
