r"""The keys of rows that replace each other, and the rows that delete.

Equal keys are those of one thing. A key of one field that is a text, a number or a truth value is its text:
so the deletion ``7`` is that of ``{"id": 7}`` and of ``{"id": "7"}``, as it is for Kafka.
"""

from __future__ import annotations

from typing import Any

from twinstream.errors import DecodeError
from twinstream.spec.codec.canonical import canonical_value, is_number
from twinstream.spec.codec.reduction import visit, without_nulls
from twinstream.spec.decode.deletions import Deletion
from twinstream.spec.decode.times import UNITS, milliseconds
from twinstream.spec.file.emits import Retract
from twinstream.spec.file.model import DEFAULT_KIND, Spec
from twinstream.spec.file.paths import ABSENT, path_text, read

DELETED = b"\x00deleted "
"""The canonical form of a deletion begins with it, and no other does."""


def spelled(member: Any) -> Any:
    """A number or truth value that is a key as its text; any other value is itself."""
    return canonical_value(member).decode() if is_number(member) or isinstance(member, bool) else member


class RowKeys:
    """Reads the keys of the rows of one comparison."""

    def __init__(self, spec: Spec) -> None:
        assert spec.folding is not None, "rows have keys where they replace each other"
        form = spec.folding.form
        kind = spec.row_kinds[0] if spec.row_kinds else DEFAULT_KIND
        self._absent_is_null = spec.equality_of(kind).absent_is_null
        self._paths = [spec.path_of(field) for field in spec.folding.key]
        self._spelled = self._paths[0] if len(self._paths) == 1 and spec.order_fields else None
        self._window_end = None if spec.folding.window_end is None else spec.path_of(spec.folding.window_end)
        self._unit = UNITS[spec.overdue.unit]
        self._lifetime = (
            [spec.path_of(form.valid_from), spec.path_of(form.valid_to)] if isinstance(form, Retract) else []
        )

    def key(self, value: Any) -> bytes:
        """The key of a row. Raises DecodeError where a field of it is missing."""
        members = [self._member(value, path) for path in self._paths]
        if len(members) > 1:
            return canonical_value(members)
        member = spelled(members[0])
        if not isinstance(member, str):
            return b"\0" + canonical_value(member)
        text = member.encode("utf-8", "surrogatepass")
        return b"\0" + text if text.startswith(b"\0") else text

    def spell(self, value: Any) -> None:
        """Write a key as its text, in place, if the order reads it: both are one key."""
        if self._spelled is None:
            return
        member = read(value, self._spelled)
        text = spelled(member)
        if text is not member:
            visit(value, self._spelled, lambda _: text)

    def check(self, value: Any) -> None:
        """Raises DecodeError where the end of a row's window decides, and the row names none."""
        if self._window_end is not None and milliseconds(read(value, self._window_end), self._unit) is None:
            named = path_text(self._window_end)
            raise DecodeError(f"field `{named}`, that tells when a row is final, holds no time")

    def deletes(self, value: Any) -> bool:
        """Whether a row deletes what its key names. Raises DecodeError where a field is missing."""
        if isinstance(value, Deletion):
            return True
        if not self._lifetime:
            return False
        begin, end = (canonical_value(self._member(value, path)) for path in self._lifetime)
        return begin == end

    def _member(self, value: Any, path: tuple[str, ...]) -> Any:
        member = read(value, path)
        if self._absent_is_null:
            return None if member is ABSENT else without_nulls(member)
        if member is ABSENT:
            named = path_text(path)
            if isinstance(value, Deletion):
                raise DecodeError(f"the key of a deletion has no `{named}`")
            raise DecodeError(f"field `{named}`, that tells which rows replace each other, is missing")
        return member
