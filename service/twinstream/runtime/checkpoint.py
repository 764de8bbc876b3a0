"""A checkpoint as bytes: a versioned format of our own, never pickle.

    b"TWINSTREAM" | format version (1 byte) | zlib of: length of header (8 bytes) | header | records

The header is JSON. The raw records of waiting events are joined behind it, and the header holds their
lengths: they need not be texts. zlib's checksum tells damage.

The steps of a checkpoint, in this order, so that a crash between any two loses nothing:

1. what was fed up to now is explained and closed (`Comparison.review`);
2. state and positions are taken in one snapshot: they describe the same moment;
3. both are saved in one step of the store, which refuses it to anyone but the owner;
4. only then is a new DIVERGED published.
"""

from __future__ import annotations

import zlib
from itertools import accumulate, pairwise
from typing import Any

import orjson

from twinstream.errors import CheckpointError

MAGIC = b"TWINSTREAM"
FORMAT = 1
_LEVEL = 1


def encode(state: dict[str, Any]) -> bytes:
    """The bytes of a state of JSON values, in which lists under ``records`` hold bytes."""
    records: list[bytes] = []
    header = orjson.dumps(_packed(state, records))
    body = b"".join((len(header).to_bytes(8, "big"), header, *records))
    return MAGIC + bytes((FORMAT,)) + zlib.compress(body, _LEVEL)


def decode(data: bytes) -> dict[str, Any]:
    """The state that `encode` was given. Raises CheckpointError where it is newer or damaged."""
    if not data.startswith(MAGIC) or len(data) == len(MAGIC):
        raise CheckpointError("the stored state is not a Twinstream checkpoint")
    found = data[len(MAGIC)]
    if found != FORMAT:
        raise CheckpointError(
            f"the stored state has format {found}, this version reads format {FORMAT}: upgrade it"
        )
    try:
        body = zlib.decompress(data[len(MAGIC) + 1 :])
        end = 8 + int.from_bytes(body[:8], "big")
        state: dict[str, Any] = _unpacked(orjson.loads(body[8:end]), memoryview(body)[end:])
    except (zlib.error, orjson.JSONDecodeError, KeyError, IndexError) as error:
        raise CheckpointError(
            f"the stored state is damaged ({error}): remove the comparison's keys in Redis to begin anew"
        ) from None
    return state


def _packed(value: Any, records: list[bytes]) -> Any:
    """The value with each list of records replaced by their place and lengths."""
    if isinstance(value, list):
        return [_packed(item, records) for item in value] if value and isinstance(value[0], dict) else value
    if not isinstance(value, dict):
        return value
    packed = {}
    for name, member in value.items():
        if name == "records":
            packed["record_lengths"] = list(map(len, member))
            records.extend(member)
        else:
            packed[name] = _packed(member, records)
    return packed


def _unpacked(state: Any, blob: memoryview) -> Any:
    return _unpack(state, _Cursor(blob))


class _Cursor:
    """Takes records from the joined bytes, in the order in which they were packed."""

    def __init__(self, blob: memoryview) -> None:
        self._blob, self._at = blob, 0

    def take(self, lengths: list[int]) -> list[bytes]:
        ends = list(accumulate(lengths, initial=self._at))
        self._at = ends[-1]
        return [bytes(self._blob[start:end]) for start, end in pairwise(ends)]


def _unpack(value: Any, cursor: _Cursor) -> Any:
    if isinstance(value, list):
        return [_unpack(item, cursor) for item in value] if value and isinstance(value[0], dict) else value
    if not isinstance(value, dict):
        return value
    return {
        "records" if name == "record_lengths" else name: (
            cursor.take(member) if name == "record_lengths" else _unpack(member, cursor)
        )
        for name, member in value.items()
    }
