"""The record formats: from the bytes of a record to a plain value.

A plain value is null, boolean, number (int, float or Decimal), text, bytes, list, or a dict with texts for
names; no other type leaves a format. The same value has the same canonical form, whatever format it was read
from, so two sides may have formats of their own.

The laws of a decoder:

- It gives exactly what the bytes say, or raises DecodeError with the reason; it repairs and drops nothing.
- Equal bytes give equal values.
- No value is nested deeper than 128, and no record makes a decoder hang or crash.
- If it cannot reach a service that it needs, it raises `SourceError`: the record may be fine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from twinstream.errors import DecodeError
from twinstream.spec.decode.formats import jsontext, messagepack
from twinstream.spec.file.model import Decode

Decoder = Callable[[bytes], Any]
"""Reads a record's value, which is not a tombstone. Raises DecodeError, and SourceError for the service."""


def text(record: bytes) -> str:
    """The text of a record without structure. Raises DecodeError if it is not UTF-8.

    >>> text("é".encode())
    'é'
    """
    try:
        return record.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"not UTF-8 at byte {error.start}") from None


_WITHOUT_SCHEMA: dict[str, Decoder] = {
    "json": jsontext.decode,
    "msgpack": messagepack.decode,
    "utf8": text,
    "bytes": bytes,
}


def decoder_of(decode: Decode) -> Decoder:
    """The decoder for a `decode` of a comparison file.

    It reads the schema file at once and connects to nothing. Raises SpecError for a file that is no schema.
    """
    if decode.format in _WITHOUT_SCHEMA:
        return _WITHOUT_SCHEMA[decode.format]
    file = Path(decode.schema_file or "")
    if decode.format == "avro":
        from twinstream.spec.decode.formats.avro import from_file, registered

        return from_file(file) if decode.registry is None else registered(decode.registry)
    from twinstream.spec.decode.formats.protobuf import from_descriptors, registered_messages

    if decode.registry is not None:
        return registered_messages(decode.registry)
    return from_descriptors(file, decode.message or "")
