"""Events, and the two sides they come from.

An *event* is one output of a pipeline version. What the theory needs of its content is its `Form`: its
*route* through the declared order, by which it is dependent on others or independent of them, and bytes that
tell which events may match.

Rules of this file:

- Equality is a canonical form. `Form.content` may be the record itself as long as equal bytes mean equal
  events; where two contents differ, `Canonical` decides. So byte-equal records are never canonicalised.
- Where a tolerance is declared, that is not enough: `Close` has to be asked of the two records as well. What
  the one side has written twice is told without it: by the exact form, which keeps the numbers as they came.
- Equal events have one route: it is read from what the canonical form keeps.
- An event is a plain tuple of the shape of `Event`, made by `zip` at the speed of C. It is read by the index
  constants, `event[OFFSET]`, but for the loops of `matching`, where looking up a constant is too dear.

Source: Kallas, Niksic, Stanford, Alur, "DiffStream" (OOPSLA 2020), section 3: traces and dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import IntEnum
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Never, NewType, cast


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

    `route` is the event's part in each node of the order. `content` decides equality (see the
    module). `kind` is the declared class of the event. `record` is the raw form, kept for explaining.
    """

    route: Hashable
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
"""Where an event stands in its side."""


if TYPE_CHECKING:

    class CanonicalForm(bytes):
        """What equal events have in common.

        Without a tolerance two events with one form are equal. With one they are *alike*, and whether they
        are equal has to be asked; so two forms are not compared: a type checker refuses it. Compare letters,
        or ask `Rules.equal`. To look events up by their form, or to hash it, is what it is for.
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
    """An event as a letter where equality has a tolerance: equal to the events that may match it.

    That is not transitive. What is looked up by such letters finds one that is equal, if there is any.
    """

    __slots__ = ("_close", "_event", "_exact", "_exactly", "form")

    def __init__(self, form: CanonicalForm, event: Event, close: Close, exactly: Exactly) -> None:
        self.form, self._event, self._close, self._exactly = form, event, close, exactly
        self._exact: Exact | None = None

    @property
    def exact(self) -> Exact:
        """The exact form of the event, for which its record is read once."""
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
"""The canonical form of an event as a letter, where there is no tolerance; where there is one, without it."""
Exactly = Callable[[bytes], Exact]
"""Maps the content of a form to its exact form: equal for contents that are equal without a tolerance."""
Letter = Exact | Near
"""An event as far as equality goes: two events are equal when their letters are."""
Place = tuple[Side, int, int]
"""Where an event stands: side, partition and offset."""
PartitionOffset = tuple[int, int]
"""The same, where the side is known."""

Close = Callable[[bytes, bytes], bool]
"""Where a tolerance is declared: tells of the records of two alike events whether they are equal."""


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
