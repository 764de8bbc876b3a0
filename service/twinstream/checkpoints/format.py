"""A checkpoint's parts as bytes: a versioned format of our own, never pickle.

    b"TWINSTREAM" | format version (1 byte) | checksum (4 bytes) | zstd frame of `columns.pack`

A head, a base and a delta have the same form. The checksum is the CRC-32 of the frame; it shows damage before
anything is read. Format 1 held a state with another structure, and is refused.

The steps of a checkpoint, in this order, so that a crash between any two loses nothing:

1. the events fed up to now are explained and closed (`Comparison.review`);
2. state and positions are taken in one snapshot: they describe the same moment;
3. both take effect in one step of the store, which refuses it to anyone but the owner;
4. only then is a new DIVERGED published.
"""

from __future__ import annotations

import zlib
from typing import Any

import msgpack
import zstandard

from twinstream.checkpoints import column_encoding as columns
from twinstream.errors import CheckpointError

MAGIC = b"TWINSTREAM"
FORMAT = 2
_LEVEL = 1
_CHECKSUM = slice(len(MAGIC) + 1, len(MAGIC) + 5)


def encode(state: dict[str, Any]) -> bytes:
    """The bytes of a state of plain values: see `columns.pack`."""
    pieces = columns.pack(state)
    compressor = zstandard.ZstdCompressor(level=_LEVEL).compressobj(size=sum(map(len, pieces)))
    frame = [*map(compressor.compress, pieces), compressor.flush()]
    checksum = 0
    for part in frame:
        checksum = zlib.crc32(part, checksum)
    return b"".join((MAGIC, bytes((FORMAT,)), checksum.to_bytes(4, "big"), *frame))


def decode(data: bytes, start_over: str = "remove the comparison's keys to start over") -> dict[str, Any]:
    """The state that was given to `encode`. Raises CheckpointError if it is newer or damaged.

    `start_over` says how to begin without it.
    """
    if not data.startswith(MAGIC) or len(data) == len(MAGIC):
        raise CheckpointError("the stored state is not a Twinstream checkpoint")
    found = data[len(MAGIC)]
    if found != FORMAT:
        what = "upgrade Twinstream" if found > FORMAT else start_over
        raise CheckpointError(
            f"the stored state has format {found}, this version reads format {FORMAT}: {what}"
        )
    try:
        state: dict[str, Any] = _read(data)
    except (zstandard.ZstdError, msgpack.UnpackException, ValueError, TypeError, IndexError) as error:
        raise CheckpointError(
            f"the stored state is damaged ({error}): restore Redis from a backup, or remove the comparison's "
            "keys to start over"
        ) from None
    return state


def _read(data: bytes) -> Any:
    frame = memoryview(data)[_CHECKSUM.stop :]
    if zlib.crc32(frame) != int.from_bytes(data[_CHECKSUM], "big"):
        raise ValueError("its checksum is another")
    return columns.unpack(zstandard.ZstdDecompressor().decompress(frame))
