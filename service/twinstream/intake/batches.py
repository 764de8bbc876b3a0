"""Batches that may be written again (`duplicates: {policy: replays}`): their marks."""

from __future__ import annotations

from collections.abc import Sequence

from twinstream.errors import DecodeError
from twinstream.spec.codec.codec import RefusedRecord
from twinstream.spec.decode.headers import Attempt, Headers, attempt_of


def attempts_of(
    headers: Sequence[Headers], refused: list[RefusedRecord]
) -> tuple[list[Attempt | None], list[RefusedRecord]]:
    """What wrote each of some records, and those refused: for their values, or else for their marks.

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
