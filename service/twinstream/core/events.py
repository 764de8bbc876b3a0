"""Events, and the two sides they come from.

An *event* is one output of a pipeline version. What the theory needs of its content is its `Form`: the lane
that the declared order puts it in, and bytes that tell which events may match. Events of one lane are
dependent (their order counts), events of different lanes are independent (their order is free).

Rules of this file:

- Equality is a canonical form. `Form.content` may be the record itself as long as equal bytes mean equal
  events; where two contents differ, `Canonical` decides. So byte-equal records are never canonicalised.
- Equal events are in the same lane: the lane is read from what the canonical form keeps.
- On the hot path an event is a plain tuple of the shape of `Event`, made by `zip` at the speed of C; it is
  read by the index constants. Cold code wraps it: ``Event._make(event)``.

Source: Kallas, Niksic, Stanford, Alur, "DiffStream" (OOPSLA 2020), section 3: traces and dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import IntEnum
from itertools import repeat
from typing import Any, NamedTuple, cast


class Side(IntEnum):
    """One of the two streams. Everything here is symmetric in it."""

    LEFT = 0
    RIGHT = 1

    @property
    def other(self) -> Side:
        """The opposite side."""
        return _OTHER[self]


_OTHER = (Side.RIGHT, Side.LEFT)


class Form(NamedTuple):
    """What matching reads of an event.

    `lane` is what the order relates: dependent events have equal lanes. `content` decides equality (see the
    module). `kind` is the declared class of the event. `record` is the raw form, kept for explaining.
    """

    lane: Hashable
    content: bytes
    kind: str
    record: bytes


class Event(NamedTuple):
    """One output of one side: its form, where it stands in Kafka, and when it was read.

    `timestamp_ms` is Kafka's, `read_at` the reader's monotonic clock in seconds. `mark` is what the clock of
    progress reads of an event, where it reads something.
    """

    form: Form
    partition: int
    offset: int
    timestamp_ms: int
    read_at: float
    mark: Any = None


Canonical = Callable[[bytes], bytes]
"""Maps the content of a form to its canonical form: two events are equal when these bytes are."""


def events_of(
    forms: Sequence[Form],
    partition: int,
    offsets: Sequence[int],
    timestamps: Sequence[int],
    read_at: float,
    marks: Sequence[Any] | None = None,
) -> Iterator[Event]:
    """Join the columns of a run of records of one partition into events.

    Complexity: about 30 ns an event.
    """
    marked = repeat(None) if marks is None else marks
    return cast(
        "Iterator[Event]", zip(forms, repeat(partition), offsets, timestamps, repeat(read_at), marked)
    )
