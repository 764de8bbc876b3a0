r"""Deletions: a record without a value, whose Kafka key names the row that it deletes.

Everything that passes records around passes one piece of bytes. So a reader of topics or files that compares
rows by key makes one of the key (`deletion`), and the decoder of the record reads the key from it. It begins
with bytes that no value begins with.

The key is a JSON object with the key's fields. If the key is one field, it may also be the text, the whole
number or the truth value itself. A text that reads as another JSON value stands in quotes: else it may be
either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from twinstream.errors import DecodeError
from twinstream.spec.decode.formats.jsontext import decode
from twinstream.spec.describe import trait
from twinstream.spec.file.paths import ABSENT, Path, path_text, put, read

MARK: Final = b"\x00twinstream deletes\x00"
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,19})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


class Deletion(dict[str, Any]):
    """The value of a deletion: the fields of its key, and no others."""


def deletion(key: bytes | None) -> bytes | None:
    """The record that stands for a deletion; None without a key, which names nothing."""
    return None if key is None else MARK + key


def row_or_deletion(value: bytes | None, key: bytes | None) -> bytes | None:
    """A record as a comparison of rows reads it."""
    return deletion(key) if value is None else value


def reading_deletions(
    read_value: Callable[[bytes | None], Any], fields: Sequence[Path], more: Sequence[Path] = ()
) -> Callable[[bytes | None], Any]:
    """A reader of records that reads deletions, too.

    `fields` are those of the key, `more` those that it may have besides. An absent one stays absent. The
    reader raises DecodeError for a key that names no row in any comparison.
    """

    def read_record(record: bytes | None) -> Any:
        if record is None or not record.startswith(MARK):
            return read_value(record)
        return _deletion_of(record[len(MARK) :], fields, more)

    return read_record


def _deletion_of(key: bytes, fields: Sequence[Path], more: Sequence[Path]) -> Deletion:
    value: dict[str, Any] = {}
    members = _members(key)
    if isinstance(members, dict):
        for path in (*fields, *more):
            if (member := read(members, path)) is not ABSENT:
                put(value, path, member)
    elif len(fields) == 1:
        put(value, fields[0], members)
    else:
        named = ", ".join(map(path_text, fields))
        raise DecodeError(f"the key of a deletion is no JSON object with {named} ({trait(members)})")
    return Deletion(value)


def _members(key: bytes) -> Any:
    """The content of a key: a JSON object, a text (that of a truth value, too), or a whole number."""
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"the key of a deletion is not UTF-8 at byte {error.start}") from None
    if text.startswith("{") or (text.startswith('"') and text.endswith('"') and len(text) > 1):
        try:
            return decode(key)
        except DecodeError as error:
            raise DecodeError(f"the key of a deletion is {error}") from None
    if _WHOLE.fullmatch(text):
        return text if text == "-0" else int(text)
    if text == "null" or _NUMBER.fullmatch(text):
        other = text if text == "null" else "a number"
        raise DecodeError(
            f"the key of a deletion may be a text or {other}; write it in quotes or as a JSON object"
        )
    return text
