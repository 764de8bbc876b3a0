"""Leaders: the rows that stand for all rows close to them, if numbers have a tolerance (see `replays`).

Without a tolerance a row is identified by its canonical form. With one that is not enough: the form has 0 in
place of each tolerated number. So a row is identified by a *leader* of its form: the first row of the batch
with its content, or one that it is close to. A row that an attempt writes is

1. a copy of the leader with its own content, if the execution has not written all copies of that yet;
2. else a copy of a leader that it is close to and that another attempt of its task has written;
3. else a copy of any leader that it is close to, if the execution has not written all copies of that yet;
4. else one more copy of the leader with its own content, or a leader itself.

So a retry that differs within the tolerance writes the letters that were written before. And a row is only
ever a replay of a row that it is close to: the new rows of its leader have the leader's content.

The leader of a row is chosen once. If several are close, the choice may be wrong: then attempts disagree
that could agree, which is a hole. Or a row is counted in the place of one that is close to it: an execution
writes a copy of a leader with another content, and then the leader's own content, for which there is no copy
left. The second was the copy, and the first a new row. So the batch is a hole, too. If the second differs
from the leader, it may have been either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

from twinstream.core.events import Close

Room = Callable[[bytes], int]
"""The room of a leader: `FULL` if one more copy raises M, `ROOM` if it only raises N, else `COVERED`."""
FULL, ROOM, COVERED = range(3)
HASH_BYTES = 16
"""The size of the hashes of forms and contents."""
LOOKED_AT = 256
"""Leaders of a form that a row is compared with: the rows of a batch that differ only in tolerated numbers.
Beyond that a row is identified by its content alone."""
ROW_BYTES = 100
"""The bytes of a record for which a leader counts as one more row."""


class CloseTo(NamedTuple):
    """The data that decide which rows a row is close to: hash of its content, record, and tolerance."""

    own: bytes
    record: bytes
    close: Close


class Leaders:
    """The leaders of one batch, oldest first; `weight` is the memory that they take, in rows."""

    __slots__ = ("_forms", "_records", "_saved", "weight")

    def __init__(self) -> None:
        self._records: dict[bytes, tuple[bytes, bytes]] = {}
        self._forms: dict[bytes, bytes | list[bytes]] = {}
        self._saved = self.weight = 0

    def take(self, form: bytes, near: CloseTo, room: Room) -> bytes:
        """The leader of a row, by the hash of its content; a row without one becomes its own.

        Complexity: O(1), and for a retry O(k) in the leaders of the form, up to `LOOKED_AT`.
        """
        own = near.own
        known = own in self._records
        if known and room(own) != FULL:
            return own
        rooms = [(other, room(other)) for other in islice(self._of(form), LOOKED_AT) if other != own]
        for wanted in (COVERED, ROOM):
            for other, left in rooms:
                if left == wanted and near.close(self._records[other][1], near.record):
                    return other
        if not known:
            self._add(form, own, near.record)
        return own

    def _of(self, form: bytes) -> Iterable[bytes]:
        found = self._forms.get(form, ())
        return (found,) if isinstance(found, bytes) else found

    def _add(self, form: bytes, own: bytes, record: bytes) -> None:
        self._records[own] = form, record
        self.weight += 2 + len(record) // ROW_BYTES
        others = self._forms.setdefault(form, own)
        if isinstance(others, list):
            others.append(own)
        elif others != own:
            self._forms[form] = [others, own]

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The leaders as plain data; unless `whole`, only those that are new since the last call."""
        since = 0 if whole else self._saved
        self._saved = len(self._records)
        rows = [[own, *leader] for own, leader in islice(self._records.items(), since, None)]
        return {"since": since, "rows": rows}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Leaders:
        """The leaders of a whole state."""
        leaders = cls()
        for own, form, record in state["rows"]:
            leaders._add(form, own, record)
        leaders._saved = len(leaders._records)
        return leaders


def joined(states: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Several states of the leaders of a batch, the first of them whole, as one whole state."""
    rows: list[list[bytes]] = []
    for state in states:
        rows[state["since"] :] = state["rows"]
    return {"since": 0, "rows": rows}
