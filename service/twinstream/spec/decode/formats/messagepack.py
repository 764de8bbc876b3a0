"""MessagePack: the values that JSON has, and bytes, NaN and infinities.

The names of a map are texts, each used once. A timestamp is its number of nanoseconds since 1970. Other
extension types have no meaning shared by two programs, so they are refused. A float of 32 bits is the float
of 64 bits of the same value, since writers shorten floats if that loses nothing.
"""

from __future__ import annotations

from typing import Any

import msgpack

from twinstream.core.canonical import check
from twinstream.errors import DecodeError

_FLAT = frozenset((str, int, float, bool, bytes, type(None)))


def decode(record: bytes) -> Any:
    """Read one MessagePack value. Raises DecodeError."""
    try:
        value = msgpack.unpackb(
            record, raw=False, timestamp=2, ext_hook=_refuse_extension, object_pairs_hook=_members
        )
    except DecodeError:
        raise
    except msgpack.StackError:
        raise DecodeError("nested deeper than 128") from None
    except msgpack.ExtraData:
        raise DecodeError("not MessagePack: more bytes follow the value") from None
    except UnicodeDecodeError:
        raise DecodeError("not MessagePack: a text of it is not UTF-8") from None
    except (ValueError, TypeError) as error:
        reason = str(error) or "a byte of it begins no value"
        raise DecodeError(f"not MessagePack: {reason}") from None
    if not (type(value) is dict and _FLAT.issuperset(map(type, value.values()))):
        check(value)
    return value


def _refuse_extension(code: int, data: bytes) -> Any:
    raise DecodeError(f"extension type {code} ({len(data)} bytes) has no value that can be compared")


def _members(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if set(map(type, members)) - {str}:
        raise DecodeError("a member of a map has a name that is not a text")
    if len(members) < len(pairs):
        raise DecodeError("a member stands twice in one map")
    return members
