"""Truncates the values in a report: a report is for people, and the records stay in Kafka.

A record may hold a megabyte, and a report names several. So a long text is cut, and a value with many members
ends when its room is used up; a note gives the full size. Positions, names of sides and the identifier are
those of the whole records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, TypeVar

from twinstream.explain.divergence import NAMES

LONGEST_TEXT = 4_096
"""Characters of one text: more than a person reads, and enough to recognize it."""
LONGEST_VALUE = 16_384
"""Characters of one value with all its members, and of all differing fields; a report has six such parts."""
NUMBER = 8
"""The characters counted for a member that is no text, and for the punctuation of one that is."""
MORE = "…"
"""The name of the note that replaces members without room."""
T = TypeVar("T")


def cut(value: Any) -> Any:
    """A value, cut if it is too long for a report."""
    return _Room().cut(value)


def shortened(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report of a divergence with long values cut; a short one is unchanged.

    Runtime complexity: O(size kept).
    """
    witnesses = _Room()
    return {
        **report,
        **{name: cut(report[name]) for name in ("scope", "reference", "candidate")},
        "fields": _fields(report["fields"]),
        "witness": [{**event, "value": witnesses.cut(event["value"])} for event in report["witness"]],
        "text": _cut_text(report["text"], LONGEST_VALUE),
    }


def _fields(fields: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Differing fields, each with the values of both sides."""
    room = _Room()
    kept: dict[str, Any] = {}
    for path, values in room.taken(fields.items()):
        kept[room.text(path)] = {side: room.cut(value) for side, value in values.items()}
    if more := len(fields) - len(kept):
        kept[MORE] = dict.fromkeys(NAMES.values(), f"‹{more:,} more fields›")
    return kept


class _Room:
    """The remaining characters for a value."""

    def __init__(self) -> None:
        self.left = LONGEST_VALUE

    def cut(self, value: Any) -> Any:
        """A value, as far as there is room for it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._members(value)
        if isinstance(value, list):
            return self._items(value)
        self.left -= NUMBER
        return value

    def text(self, text: str) -> str:
        """A text, as far as there is room for it."""
        kept = _cut_text(text, max(0, min(LONGEST_TEXT, self.left)))
        self.left -= len(kept) + NUMBER
        return kept

    def taken(self, parts: Iterable[T]) -> Iterator[T]:
        """The parts of a value, until the room is used up."""
        return takewhile(lambda _: self.left > 0, parts)

    def _members(self, value: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for name, member in self.taken(value.items()):
            kept[self.text(name)] = self.cut(member)
        if more := len(value) - len(kept):
            kept[MORE] = f"‹{more:,} more members›"
        return kept

    def _items(self, value: list[Any]) -> list[Any]:
        kept = [self.cut(item) for item in self.taken(value)]
        return [*kept, f"‹{len(value) - len(kept):,} more›"] if len(kept) < len(value) else kept


def _cut_text(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ‹cut: {len(text):,} characters›"
