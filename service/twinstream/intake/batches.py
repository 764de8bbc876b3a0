"""Batches that may be written again (`duplicates: {policy: replays}`): their marks and messages."""

from __future__ import annotations

from collections.abc import Sequence

from twinstream.core.comparison import Comparison
from twinstream.errors import DecodeError
from twinstream.spec.codec.codec import RefusedRecord
from twinstream.spec.decode.headers import Attempt, Headers, attempt_of

HELD = "a difference was found, which counts when the batches that were open then are finished"


def attempts_of(
    headers: Sequence[Headers], refused: list[RefusedRecord]
) -> tuple[list[Attempt | None], list[RefusedRecord]]:
    """The attempt that wrote each record, and the refused records: for their values, or for their marks.

    Complexity: about 1 µs a record.
    """
    attempts: list[Attempt | None] = []
    unreadable = {}
    for place, one in enumerate(headers):
        try:
            attempts.append(attempt_of(one))
        except DecodeError as error:
            attempts.append(None)
            unreadable[place] = str(error)
    reasons = {**unreadable, **dict(refused)}
    return attempts, [RefusedRecord(place, reasons[place]) for place in sorted(reasons)]


def unmarked(comparison: Comparison) -> str:
    """The text to add to a difference if records do not name their attempt."""
    count = 0 if comparison.retries is None else comparison.retries.unmarked
    if count == 1:
        return "; one record without marks was taken as it is"
    return f"; {count:,} records without marks were taken as they are" if count else ""
