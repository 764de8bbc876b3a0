"""Draws one divergence in a few lines: both sides' events in the order of their offsets.

It is drawn from a report alone (an item of ``examples`` in ``check --json``, a divergence of the HTTP API),
so it needs neither the comparison file nor the records:

       reference rides.v1               candidate rides.v2
    0  {"taxi":7,"ride":"a"} ──╲ ╱── 1  {"taxi":7,"ride":"c"}
                                ╳
    2  {"taxi":7,"ride":"c"} ──╱ ╲── 2  {"taxi":7,"ride":"a"}

Rules of this file:

- Equal events are joined by a line, two that changed places by a cross, a changed event by ``≠``; an event
  without a partner ends in ``✕``.
- No line is wider than asked. A value that does not fit loses members; what names the event, what changed and
  what tells the events apart stay. Two long texts that differ lose their common beginning first.
- Characters that a terminal acts upon are shown as escapes: a value must not be able to draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any
from unicodedata import normalize

from rich.cells import cell_len, set_cell_size

from twinstream.explain.masking import json_text
from twinstream.spec.file.paths import parse_path

NARROW = 64
"""Below this width two columns are useless: the events are listed one under the other."""

_GUTTER = 9
_APART = 2
_NOTHING = "(no equal event)"


@dataclass(frozen=True)
class Strokes:
    """The characters that lines are drawn with; `paths` are the gutters of a crossing, from above."""

    equal: str = "──────── "
    changed: str = "───≠──── "
    missing: str = "───✕     "
    extra: str = "   ✕──── "
    paths: tuple[str, str, str] = ("──╲ ╱─── ", "   ╳     ", "──╱ ╲─── ")
    more: str = "…"
    arrow: str = "→"


UNICODE = Strokes()
ASCII = Strokes(
    equal="-------- ",
    changed="--!=---- ",
    missing="---X     ",
    extra="   X---- ",
    paths=("--\\ /--- ", "   X     ", "--/ \\--- "),
    more="...",
    arrow="->",
)


def printable(text: str) -> str:
    r"""The text with escapes for all characters that are invisible or that a terminal might act upon.

    >>> printable("a\x9b31mb\u202e")
    'a\\x9b31mb\\u202e'
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def diagram(report: Mapping[str, Any], width: int = 100, marks: Strokes = UNICODE) -> list[str]:
    """The lines of the picture, none wider than `width`. Complexity: O(size of the report)."""
    picture = _Picture(report, marks)
    lines = picture.listed(width) if width < NARROW else picture.columns(width)
    return [line.rstrip() for line in (*lines, *_changes(report, width, marks))]


# -- the events of a report --------------------------------------------------------------------------------


@dataclass(eq=False)
class _Cell:
    """One event: its position, its value, and the event of the other side that it is joined with."""

    partition: int
    offset: int
    value: Any
    partner: _Cell | None = None
    changed: bool = False
    named: bool = True
    """Whether the divergence is about this event; the others are its witness."""


@dataclass
class _Column:
    """The events of one side, in the order of their offsets."""

    topic: str = ""
    cells: list[_Cell] = field(default_factory=list)

    def add(self, position: Mapping[str, Any], value: Any, *, named: bool) -> _Cell:
        """The cell of an event; each event has only one."""
        for cell in self.cells:
            if (cell.partition, cell.offset) == (position["partition"], position["offset"]):
                return cell
        cell = _Cell(position["partition"], position["offset"], _flat(value), named=named)
        self.topic = position["topic"]
        self.cells.append(cell)
        self.cells.sort(key=lambda cell: (cell.partition, cell.offset))
        return cell

    @property
    def partition(self) -> int | None:
        """The partition, if all events are in one."""
        partitions = {cell.partition for cell in self.cells}
        return partitions.pop() if len(partitions) == 1 else None

    def label(self, cell: _Cell | None) -> str:
        """The offset, with the partition if the events are in several."""
        if cell is None:
            return ""
        return str(cell.offset) if self.partition is not None else f"{cell.partition}:{cell.offset}"

    @property
    def label_width(self) -> int:
        """The width of the longest label."""
        return max((len(self.label(cell)) for cell in self.cells), default=0)

    def heading(self, side: str, room: int) -> str:
        """The longest heading that fits: side, topic and partition, or without the last of these."""
        name = side if self.topic in {"", side} else f"{side} {printable(self.topic)}"
        texts = [name] if self.partition is None else [f"{name} partition {self.partition}", name]
        return next((text for text in texts if cell_len(text) <= room), side)


def _sides(report: Mapping[str, Any]) -> tuple[_Column, _Column]:
    columns = {"reference": _Column(), "candidate": _Column()}
    named = [
        column.add(report["positions"][side], report[side], named=True)
        for side, column in columns.items()
        if report["positions"][side] is not None
    ]
    _join(named, changed=report["kind"] == "changed")
    seen = [
        columns[event["side"]].add(event["position"], event["value"], named=False)
        for event in report["witness"]
    ]
    if {event["side"] for event in report["witness"]} == columns.keys():
        _join(seen, changed=False)
    return columns["reference"], columns["candidate"]


def _flat(value: Any) -> Any:
    """Of a whole record the members of its value first, the parts beside it behind them."""
    inner = value.get("$value") if isinstance(value, dict) else None
    if not isinstance(inner, dict):
        return value
    return {**inner, **{name: part for name, part in value.items() if name != "$value"}}


def _join(cells: Sequence[_Cell], *, changed: bool) -> None:
    """Draw a line between two events, one of each side, unless one of them has a line."""
    if len(cells) == 2 and not any(cell.partner for cell in cells):
        one, other = cells
        one.partner, other.partner = other, one
        one.changed = other.changed = changed


# -- drawing -----------------------------------------------------------------------------------------------


class _Picture:
    def __init__(self, report: Mapping[str, Any], marks: Strokes) -> None:
        self._marks = marks
        self._both = self._left, self._right = _sides(report)
        self._first = _ranked(report, self._left.cells, self._right.cells)

    def columns(self, width: int) -> Iterator[str]:
        """Both sides beside each other."""
        labels = self._left.label_width + _APART, self._right.label_width + _APART
        room = (width - _GUTTER - 1 - sum(labels)) // 2
        rows = [(left, right, gutter, self._texts(left, right, room)) for left, right, gutter in self._rows()]
        heads = self._left.heading("reference", room), self._right.heading("candidate", room)
        wide = max(map(cell_len, (heads[0], *(texts[0] for *_, texts in rows))))
        yield f"{' ' * labels[0]}{set_cell_size(heads[0], wide + 1 + _GUTTER)}{' ' * labels[1]}{heads[1]}"
        for left, right, gutter, (here, there) in rows:
            before = f"{self._left.label(left):>{labels[0] - _APART}}{' ' * _APART}"
            behind = f"{self._right.label(right):>{labels[1] - _APART}}{' ' * _APART}"
            stroke = gutter[0] * (wide - cell_len(here))
            yield f"{before}{here} {stroke}{gutter}{behind}{there}"

    def _texts(self, left: _Cell | None, right: _Cell | None, room: int) -> tuple[str, str]:
        if left is None and right is None:
            return "", ""
        return self._text(left, room), self._text(right, room)

    def _rows(self) -> Iterator[tuple[_Cell | None, _Cell | None, str]]:
        """The rows of the picture: an event of each side or none, and the strokes between them."""
        left, right = list(self._left.cells), list(self._right.cells)
        marks = self._marks
        while left or right:
            if left and left[0].partner is None:
                yield left.pop(0), None, marks.missing
            elif right and right[0].partner is None:
                yield None, right.pop(0), marks.extra
            elif left[0].partner is right[0]:
                yield left[0], right.pop(0), marks.changed if left.pop(0).changed else marks.equal
            else:
                yield left.pop(0), right.pop(0), marks.paths[0]
                yield None, None, marks.paths[1]
                yield left.pop(0), right.pop(0), marks.paths[2]

    def _text(self, cell: _Cell | None, room: int) -> str:
        return _NOTHING if cell is None else value_text(cell.value, room, self._first, self._marks.more)

    def listed(self, width: int) -> Iterator[str]:
        """One event on each line."""
        for side, column in zip(("reference", "candidate"), self._both, strict=True):
            yield column.heading(side, width)
            labels = column.label_width
            for cell in column.cells:
                mark, text = "*" if cell.named else " ", self._text(cell, width - labels - 5)
                yield f" {mark} {column.label(cell):>{labels}}  {text}"
            if not column.cells:
                yield f"   {_NOTHING}"


def _changes(report: Mapping[str, Any], width: int, marks: Strokes) -> Iterator[str]:
    """A line for each field that changed."""
    for path, values in report["fields"].items():
        name = printable(path) or "value"
        room = max(6, (width - cell_len(f"   {name}:  {marks.arrow} ")) // 2)
        before, after = _changed_texts(values, room, marks.more)
        yield f"   {name}: {before} {marks.arrow} {after}"


def _changed_texts(values: Mapping[str, Any], room: int, more: str) -> list[str]:
    """Both values; long ones start where they differ, objects have as many members as fit."""
    both = [values["reference"], values["candidate"]]
    if any(isinstance(value, dict) for value in both):
        return [value_text(value, room, _telling(both), more) for value in both]
    one, other = map(printable, told_apart(*map(json_text, both)))
    return [_cut(text, room, more) for text in from_difference(one, other, room, more)]


# -- the choice of members ---------------------------------------------------------------------------------


def _ranked(report: Mapping[str, Any], left: Sequence[_Cell], right: Sequence[_Cell]) -> list[str]:
    """All members of the events, those first that a picture has to show.

    A field that changed comes first, or both sides might look the same; then what names the event, the other
    changed fields, what tells the events apart, and the scope. Last comes what differs although the
    comparison file allows it (ignored, or within a tolerance): it says nothing about the divergence.
    """
    changed = _members(report["fields"])
    values = [cell.value for cell in (*left, *right)]
    names = list(dict.fromkeys(name for value in values if isinstance(value, dict) for name in value))
    allowed = {name for cell in left if cell.partner for name in _allowed(cell, changed)}
    first = (*changed[:1], *_members(report.get("identity", ())), *changed)
    compared = [name for name in (*_telling(values), *report["scope"], *names) if name not in allowed]
    return list(dict.fromkeys((*first, *compared, *names)))


def _members(paths: Iterable[str]) -> list[str]:
    """The members of an event in which some fields lie."""
    return [name for path in paths for name in parse_path(path)[:1]]


def _allowed(cell: _Cell, changed: Sequence[str]) -> set[str]:
    """The members in which an event and its partner differ without being a part of a difference."""
    if cell.partner is None or (cell.changed and not changed):  # The records were not at hand.
        return set()
    return set(_telling([cell.value, cell.partner.value])).difference(changed if cell.changed else ())


# -- values ------------------------------------------------------------------------------------------------


def _telling(values: Sequence[Any]) -> list[str]:
    """The members in which the events differ: without them the picture would show the same value twice."""
    objects = [value for value in values if isinstance(value, dict)]
    names = dict.fromkeys(name for value in objects for name in value)
    return [name for name in names if len({json_text(value.get(name)) for value in objects}) > 1]


def value_text(value: Any, room: int, first: Sequence[str] = (), more: str = "…") -> str:
    """The JSON text of a value in at most `room` cells; of an object, the members `first` are dropped last.

    >>> value_text({"a": 1, "b": 2, "c": 3}, 16, ["c"])
    '{"a":1,"c":3,…}'
    """
    text = printable(json_text(value))
    if cell_len(text) <= room:
        return text
    shortened = _shortened(value, room, first, more) if isinstance(value, dict) else None
    return shortened or _cut(text, room, more)


def _cut(text: str, room: int, more: str) -> str:
    return text if cell_len(text) <= room else set_cell_size(text, max(0, room - len(more))) + more


def _shortened(value: dict[str, Any], room: int, first: Sequence[str], more: str) -> str | None:
    """As many members as fit, in their order; those of `first` are chosen first. None if none fits."""
    parts = {name: printable(f"{json_text(name)}:{json_text(member)},") for name, member in value.items()}
    left = room - len("{}") - len(more)
    chosen = set()
    for name in dict.fromkeys((*first, *value)):
        if name in parts and cell_len(parts[name]) <= left:
            chosen.add(name)
            left -= cell_len(parts[name])
    return f"{{{''.join(parts[name] for name in value if name in chosen)}{more}}}" if chosen else None


_ENOUGH = 8
"""At least so many cells of a text are shown from the first difference on."""


def told_apart(one: str, other: str) -> tuple[str, str]:
    r"""Both texts; characters outside ASCII are escaped if the texts look alike, as with a combining accent.

    >>> print(*told_apart("é", "e\u0301"))
    \xe9 e\u0301
    """
    if one == other or normalize("NFKC", one) != normalize("NFKC", other):
        return one, other
    one, other = (text.encode("ascii", "backslashreplace").decode() for text in (one, other))
    return one, other


def from_difference(one: str, other: str, room: int, more: str = "…") -> tuple[str, str]:
    """Both texts, without their common beginning if it would push out the difference.

    `room` is the number of cells that each may take; the caller cuts a longer text at its end.

    >>> from_difference("0123456789abcdefgh-REF", "0123456789abcdefgh-CAN", 18)
    ('…defgh-REF', '…defgh-CAN')
    """
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    begin = same - room // 3
    fit = max(cell_len(one), cell_len(other)) <= room or cell_len(one[:same]) + _ENOUGH <= room
    if one == other or fit or begin <= 0:
        return one, other
    return more + one[begin:], more + other[begin:]
