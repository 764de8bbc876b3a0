"""Events, and the two sides they come from.

An *event* is one output of a pipeline version. The theory sees of its content only its `Form`: its *route*
through the declared order, which decides which events depend on it, and bytes that decide which events
may match it.

Rules of this file:

- Equality is a canonical form. `Form.content` may be the record itself as long as equal bytes mean equal
  events; where two contents differ, `Canonical` decides. So byte-equal records are never canonicalised.
- Where a tolerance is declared, that is not enough: `Close` must compare the two records as well. Copies
  within one side are recognised without a tolerance: by the exact form, which keeps the numbers as written.
- Equal events have one route: it is read from fields that the canonical form keeps.
- An event is a plain tuple of the shape of `Event`, made by `zip` at the speed of C. It is read by the index
  constants, `event[OFFSET]`, except in the loops of `matching`, where looking up a constant costs too much.

Source: Kallas, Niksic, Stanford, Alur, "DiffStream" (OOPSLA 2020), section 3: traces and dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import IntEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Never, NewType


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
    """The content of an event as matching reads it.

    `route` is the event's part in each node of the order. `content` decides equality (see the
    module). `kind` is the declared class of the event. `record` is the raw form, kept for explanations.
    """

    route: Hashable
    content: bytes
    kind: str
    record: bytes


class Event(NamedTuple):
    """One output of one side: its form, its place in Kafka, and the time at which it was read.

    `timestamp_ms` is Kafka's, `read_at` the reader's monotonic clock in seconds. `mark` is the value that the
    clock of progress reads from the event, if it reads any.
    """

    form: Form
    partition: int
    offset: int
    timestamp_ms: int
    read_at: float
    mark: Any = None


ROUTE: Final = 0
CONTENT: Final = 1
KIND: Final = 2
RECORD: Final = 3
"""The members of a form, by their index."""
FORM: Final = 0
PARTITION: Final = 1
OFFSET: Final = 2
TIMESTAMP_MS: Final = 3
READ_AT: Final = 4
MARK: Final = 5
"""The members of an event, by their index."""
place_in_side = itemgetter(PARTITION, OFFSET)
"""The place of an event in its side."""
LIFE: Final = 1 << 50
"""The distance between the offsets of two lives of a partition (see `arrivals.lives`)."""


def in_kafka(offset: int) -> int:
    """The offset in Kafka of what a comparison has at an offset.

    >>> in_kafka(7), in_kafka(2 * LIFE + 7)
    (7, 7)
    """
    return offset % LIFE


def life_of(event: Event) -> int:
    """The number of the life of its partition that an event is from; 0 is the first."""
    return event[OFFSET] // LIFE


if TYPE_CHECKING:

    class CanonicalForm(bytes):
        """Bytes that equal events have in common.

        Without a tolerance two events with one form are equal. With one they are only *alike*, so comparing
        two forms does not decide equality, and a type checker refuses it. Compare letters, or call
        `Rules.equal`. A form serves to look events up, and to be hashed.
        """

        def __eq__(self, other: Never) -> bool: ...  # type: ignore[override]
        def __ne__(self, other: Never) -> bool: ...  # type: ignore[override]
        def __hash__(self) -> int: ...

else:
    CanonicalForm = bytes

Canonical = Callable[[bytes], CanonicalForm]
"""Maps the content of a form to its canonical form."""


def alike(one: bytes, other: bytes) -> bool:
    """Whether two events with these canonical forms are alike: equal, if there is no tolerance."""
    return one == other


class Near:
    """The letter of an event where equality has a tolerance: equal to the events that may match it.

    That is not transitive. A look-up by such a letter finds an equal one, if there is any.
    """

    __slots__ = ("_close", "_event", "_exact", "_exactly", "form")

    def __init__(self, form: CanonicalForm, event: Event, close: Close, exactly: Exactly) -> None:
        self.form, self._event, self._close, self._exactly = form, event, close, exactly
        self._exact: Exact | None = None

    @property
    def exact(self) -> Exact:
        """The exact form of the event, computed once."""
        if self._exact is None:
            self._exact = self._exactly(self._event[FORM][CONTENT])
        return self._exact

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Near):
            return False
        one, another = self._event[FORM], other._event[FORM]
        if one[CONTENT] == another[CONTENT]:
            return True
        return alike(self.form, other.form) and self._close(one[RECORD], another[RECORD])

    def __hash__(self) -> int:
        return hash(self.form)


Exact = NewType("Exact", bytes)
"""The canonical form that an event would have without any tolerance."""
Exactly = Callable[[bytes], Exact]
"""Maps the content of a form to its exact form: equal for contents that are equal without a tolerance."""
Letter = Exact | Near
"""Stands for an event in equality: two events are equal when their letters are."""
Place = tuple[Side, int, int]
"""The place of an event: side, partition and offset."""
PartitionOffset = tuple[int, int]
"""The place of an event whose side is known."""

Close = Callable[[bytes, bytes], bool]
"""Where a tolerance is declared: decides whether two alike events are equal, by their records."""
