r"""Packs a whole record into bytes, for comparison files that name more of a record than its value.

If `kinds`, `order` or `identity` name ``$key``, ``$timestamp``, ``$partition`` or ``$headers.NAME``, this
envelope is passed around as the record. It can be opened without knowing where it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

import msgpack

from twinstream.errors import DecodeError
from twinstream.spec.decode.headers import Headers
from twinstream.spec.file.paths import Path

NO_TIMESTAMP: Final = -1
"""Kafka's timestamp for a record that has none."""


class Whole(NamedTuple):
    """The parts of a record as Kafka has them."""

    partition: int
    timestamp_ms: int
    key: bytes | None
    headers: Headers
    value: bytes | None


def envelope(
    value: bytes | None, key: bytes | None, headers: Headers, timestamp_ms: int, partition: int
) -> bytes:
    r"""Pack the parts of a record into bytes. Complexity: O(n), about 0.5 µs.

    >>> envelope(b"{}", None, [("a", b"1")], 5, 0)
    b'\x95\x00\x05\xc0\x91\x92\xa1a\xc4\x011\xc4\x02{}'
    >>> opened(_)
    Whole(partition=0, timestamp_ms=5, key=None, headers=[['a', b'1']], value=b'{}')
    """
    packed: bytes = msgpack.packb((partition, timestamp_ms, key, list(headers), value))
    return packed


def opened(packed: bytes) -> Whole:
    """The parts of an envelope; the inverse of `envelope`."""
    return Whole(*msgpack.unpackb(packed))


def outside(named: Collection[Path]) -> Callable[[Whole], dict[str, Any]]:
    """A reader of all parts of a record besides its value, under the names that comparison files use.

    `named` are the paths that the comparison file names. Only headers named there are read, and of several
    with one name the last. The reader raises DecodeError if the key or a header is named and is not UTF-8.
    """
    names, key_is_named = [path[1] for path in named if path[0] == "$headers"], ("$key",) in named

    def read(parts: Whole) -> dict[str, Any]:
        partition, timestamp_ms, key, headers, _ = parts
        last = dict(headers) if names else {}
        return {
            "$key": _text("key", key, must=key_is_named),
            **({} if timestamp_ms == NO_TIMESTAMP else {"$timestamp": timestamp_ms}),
            "$partition": partition,
            "$headers": {n: _text(f"header `{n}`", last[n], must=True) for n in names if n in last},
        }

    return read


def _text(what: str, value: bytes | None, *, must: bool) -> str | bytes | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError as error:
        if not must:
            return value
        raise DecodeError(f"the {what} of the record is not UTF-8 at byte {error.start}") from None
