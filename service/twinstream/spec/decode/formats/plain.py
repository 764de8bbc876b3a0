"""Records without structure: a value is one text, or just its bytes."""

from __future__ import annotations

from twinstream.errors import DecodeError


def text(record: bytes) -> str:
    """The text of a record. Raises DecodeError if it is not UTF-8.

    >>> text("é".encode())
    'é'
    """
    try:
        return record.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"not UTF-8 at byte {error.start}") from None


def raw(record: bytes) -> bytes:
    """The record itself."""
    return record
