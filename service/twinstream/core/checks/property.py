"""What a check is made of: the facts of rows, what is found in them, and the property that judges them.

A comparison relates two topics. A check is about one: a property that each of its rows must have, alone or
with the rows before it. It never changes the verdict, which is about equivalence.

Rules of this room:

- A property is fed and never fetches. It sees of a row only its place, its time and a *fact*: what the
  property reads of it, such as the digest of a key. So no content of a row is kept, except values that are
  ordered (`ascending`) and ends of windows (`closed_windows`).
- What it finds depends on the rows of each partition and on the order in which rows were read, never on how
  they were cut into batches, nor on when a control record was heard.
- A property that cannot judge a row says so: a *doubt*. It is no violation, and no pass.
- What is remembered is bounded, by a number that the comparison file declares or a constant with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side

BARRIER: Final = object()
"""The fact of a barrier, for a property that it matters to; it is no row of its own."""


class Row(NamedTuple):
    """One row as a property sees it; `fact` is what the property reads of it, `mark` that of its event."""

    partition: int
    offset: int
    timestamp_ms: int
    fact: Any
    mark: Any = None


class Lacking(NamedTuple):
    """Stands for the fact of a row that has none: the reason, as it continues "the row …"."""

    reason: str


class Finding(NamedTuple):
    """A row, or a control record, that violates a property; or one that it cannot judge: a `doubt`.

    `text` continues "the record at …". A control record has the partition 0.
    """

    partition: int
    offset: int
    text: str
    doubt: bool = False


class Property:
    """A property of one side. Each method has a default that does nothing.

    `of_records`: it is one of the control records, not of the rows.
    """

    of_records = False

    def expect(self, partitions: int) -> None:
        """Set the number of partitions of the topic, before the first row."""

    def expect_rows(self, partitions: int) -> None:
        """Set the number of partitions that have rows, as far as is known, before the first row."""

    def take(self, row: Row) -> Finding | None:  # noqa: ARG002
        """Judge the next row that was read. Complexity: O(1)."""
        return None

    def hear(self, fact: Finished) -> Iterable[Finding]:  # noqa: ARG002
        """Judge the next control record of the side."""
        return ()

    def look(self, positions: Mapping[int, int]) -> Iterable[Finding]:  # noqa: ARG002
        """Judge what waited for a control record; all rows below these offsets were taken."""
        return ()

    def unsettled(self) -> str | None:
        """Why the property cannot be judged as a whole now, as a sentence; None if it can."""
        return None

    def state(self, *, whole: bool) -> dict[str, Any]:  # noqa: ARG002
        """The state as plain data; unless `whole`, of the `memory` only what has changed since the last."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a whole `state`."""


class Declared(NamedTuple):
    """A check of the comparison file: the sides that it looks at, and what makes its property for each."""

    sides: tuple[Side, ...]
    made: Callable[[], Property]


NO_PROBLEM = ""
"""The fact of a row that has, by itself, the property."""


class EachRow(Property):
    """A property of each row by itself: its fact is the problem with it, or `NO_PROBLEM`."""

    def take(self, row: Row) -> Finding | None:
        """Report the problem."""
        return Finding(row.partition, row.offset, row.fact) if row.fact else None
