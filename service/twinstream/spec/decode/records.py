"""The form in which records are passed around, and how their values are read from it.

Almost always that form is the bytes of the value as Kafka has them. Some comparison files need more:

- one that names the key, a header, the timestamp or the partition: the record is an envelope of all of them,
  which the adapters make (`Spec.whole` tells them to);
- one whose sides have different formats: the record gets a byte in front that names its side, so that it can
  be decoded by itself wherever it turns up later, in a checkpoint or in a report;
- one whose rows replace each other: a record without a value deletes, and its key stands for it (see
  `deletions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from twinstream.core.events import Side
from twinstream.errors import DecodeError
from twinstream.spec.decode.deletions import reading_deletions
from twinstream.spec.decode.formats import Decoder, decoder_of
from twinstream.spec.decode.formats.envelope import opened, outside
from twinstream.spec.file.emits import Folding
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import Path as FieldPath
from twinstream.spec.file.paths import parse_path

TOMBSTONE: Final = object()
"""The decoded value of a record without a value, if such records are left out."""

_Read = Callable[[bytes | None], Any]
_NO_VALUE = 2
"""Added to the byte of the side if the record is a tombstone."""


class Records:
    """The records of one comparison. `alike` tells whether both sides are read in the same way.

    `json` tells whether each is a JSON text and nothing more, `structured` whether values have members.
    Raises SpecError if a schema file cannot be used.
    """

    def __init__(self, spec: Spec) -> None:
        ways = [spec.decode_of(side) for side in Side]
        self.alike = ways[0] == ways[1]
        self.json = self.alike and ways[0].format == "json" and not spec.whole
        self.structured = spec.whole or all(way.format not in {"utf8", "bytes"} for way in ways)
        decoders = [decoder_of(way) for way in ways[: 1 if self.alike else 2]]
        outer = [spec.path_of(field) for field in spec.deciding_fields if field.startswith("$")]
        reads = [
            _read(decoder, way.tombstones == "ignore", outer, spec.folding)
            for decoder, way in zip(decoders, ways, strict=False)
        ]
        self.decode: _Read = reads[0] if self.alike else _tagged(reads)
        """The value of a record as it is held, or `TOMBSTONE`. Raises DecodeError and SourceError."""

    def held(self, records: Sequence[bytes | None], side: Side) -> Sequence[bytes | None]:
        """Records of a side, as Kafka has them or in envelopes, in the form in which they are held."""
        if self.alike:
            return records
        tag, tombstone = bytes((side,)), bytes((side + _NO_VALUE,))
        return [tombstone if record is None else tag + record for record in records]


def _tagged(reads: Sequence[_Read]) -> _Read:
    def decode(record: bytes | None) -> Any:
        assert record is not None, "a tombstone has a tag of its own"
        tag = record[0]
        return reads[tag % _NO_VALUE](None if tag >= _NO_VALUE else record[1:])

    return decode


def _read(
    decoder: Decoder, ignores_tombstones: bool, outer: Sequence[FieldPath], folding: Folding | None
) -> _Read:
    """A reader of the records of one side; if there are paths outside the value, from an envelope."""

    def tombstone() -> Any:
        if ignores_tombstones:
            return TOMBSTONE
        raise DecodeError("a tombstone (a record without a value) is not an event")

    def read(record: bytes | None) -> Any:
        return tombstone() if record is None else decoder(record)

    if folding is not None:
        window_end = folding.window_end
        more = () if window_end is None else (parse_path(window_end),)
        return reading_deletions(read, list(map(parse_path, folding.key)), more)

    beside = outside(outer)

    def read_whole(record: bytes | None) -> Any:
        parts = None if record is None else opened(record)
        if parts is None or parts.value is None:
            return tombstone()
        return {"$value": decoder(parts.value), **beside(parts)}

    return read_whole if outer else read
