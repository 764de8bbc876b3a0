"""Any of these is right: a result that may be chosen freely among several, by a function of the user.

A reducer that keeps one of the largest rows, the first few rows, or a text in any order is right with any of
several results. Which one it writes depends on the order in which its input came. "Both are right for one
input" is an equality by pairs, and whether that is transitive would hang on the function. So it decides for
*one* event whether the value of a field is right, and in the canonical form one mark then stands for all
right values. Two events are equal if all else in them is, and the values are both right or the same. Whatever
the function answers, this is an equivalence. Equal events have equal dependences, too: no field that decides
kind, order or identity may be judged.

Rules of this file:

- What decides is in the event, such as the input group of a reducer. The function gets the compared part of
  the value and nothing else: it does not see what is ignored, and arrays without an order come sorted. So
  events that are equal in all it sees are judged alike. (If it looks at the spelling of a number or at the
  order of members, one of them may count as wrong: a difference too many, and never one too few.)
- A right value becomes `[]` and any other `[value]`: no wrong value can be taken for a right one.
- All functions are asked before any value is replaced. So those of two fields may judge them together.
- No function is asked about an event before the start, which may be older than the group it reads. Any value
  is right there: such events match nothing, and the attempts of their batches agree whatever they chose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twinstream.spec.codec.reduction import visit
from twinstream.spec.file.paths import Path, read

Judge = Callable[[Any], bool]
"""Whether a field of an event has a right value. Raises RelationError, and nothing else."""


class AnyOf:
    """The fields of one equality that may have any right value, each with its judge.

    `inside` is the path of an event's value in what was decoded, which may be a whole record. With
    `absent_is_null` a field that is absent has the value null, and that may be right. `is_before` may be set:
    whether the event of a value lies before the start.
    """

    def __init__(
        self, judges: Sequence[tuple[Path, Judge]], inside: Path = (), *, absent_is_null: bool = False
    ) -> None:
        self._judges, self._inside, self.absent_is_null = judges, inside, absent_is_null
        self.paths = [path for path, _ in judges]
        self.is_before: Callable[[Any], bool] = lambda _: False

    def right(self, value: Any) -> set[Path]:
        """The fields of an event that have a right value. Raises RelationError."""
        event = read(value, self._inside)
        return {path for path, judge in self._judges if judge(event)}

    def marked(self, value: Any) -> Any:
        """The canonical value of an event, changed in place. Raises RelationError."""
        right = set(self.paths) if self.is_before(value) else self.right(value)
        for path, _ in self._judges:
            if path in right and self.absent_is_null:
                _put_null(value, path)
            visit(value, path, _as_right if path in right else _as_it_is)
        return value


def _put_null(value: Any, path: Path) -> None:
    """Put null where an object lacks the member at a path, in each element of an array on the way."""
    if type(value) is list:
        for item in value:
            _put_null(item, path)
    elif type(value) is dict and len(path) == 1:
        value.setdefault(path[0], None)
    elif type(value) is dict:
        _put_null(value.get(path[0]), path[1:])


def _as_right(_value: Any) -> Any:
    return []


def _as_it_is(value: Any) -> Any:
    return [value]
