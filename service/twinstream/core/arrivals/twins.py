"""Twins: an unmatched event and a new record of the other side with the same bytes.

Equal bytes are equal events where both sides are read in one way. Most partners are twins, and a new record
whose twin is unmatched need not be read: it has the form of its twin. So the events that came lately are
looked up by their records.

This memory is bounded and only proposes. An index matches a new record with its twin only if the twin is
still unmatched and minimal (`Index.match_twins`). In every other case the record is an event like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from operator import itemgetter
from typing import cast

from twinstream.core.events import FORM, RECORD, Event, Form, Side

LIMIT = 200_000
"""Events of a side that are looked up by their records: those of some batches."""


class Twins:
    """The events of both sides that came lately, by record.

    >>> twins, event = Twins(), Event(Form("", b"1", "event", b"1"), 0, 7, 0, 0.0)
    >>> twins.note(Side.LEFT, [event])
    >>> twins.of(Side.RIGHT, [b"1", b"2"]) == [event, None], twins.of(Side.RIGHT, [b"1"])
    (True, [None])
    """

    def __init__(self) -> None:
        self._by_record: tuple[dict[bytes | None, Event], dict[bytes | None, Event]] = ({}, {})

    def note(self, side: Side, events: Sequence[Event]) -> None:
        """Note events of a side that are unmatched. Complexity: about 0.1 µs each."""
        known = self._by_record[side]
        if len(known) > LIMIT:
            known.clear()
        known.update(zip(map(_RECORD, map(_FORM, events)), events, strict=True))

    def of(self, side: Side, records: Sequence[bytes | None]) -> list[Event | None]:
        """For each new record of a side its twin, if it has one. A twin is given away once.

        Complexity: about 0.1 µs a record.
        """
        return list(map(self._by_record[side.other].pop, records, repeat(None)))


def forms_of(twins: Sequence[Event | None]) -> list[Form | None]:
    """The forms of twins."""
    if all(twins):
        return list(map(_FORM, cast("Sequence[Event]", twins)))
    return [twin and twin[FORM] for twin in twins]


_FORM = itemgetter(FORM)
_RECORD = itemgetter(RECORD)
