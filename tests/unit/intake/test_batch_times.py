"""The Kafka times of a batch, which need not grow: its size must not decide what is known of them."""

from __future__ import annotations

from tests.support.retries import Reader
from tests.support.streams import LEFT
from twinstream.ports import Batch

TIMES = [100, 0, 200, 50]


def read(size: int) -> Reader:
    """A reader that has taken records of these times, so many at once."""
    reader = Reader("unordered")
    for first in range(0, len(TIMES), size):
        times = TIMES[first : first + size]
        offsets = range(first, first + len(times))
        reader.intake.take(Batch(LEFT, 0, [b"{}"] * len(times), offsets, times))
    return reader


def test_the_time_starts_at_the_first_record_and_the_newest_may_be_anywhere_in_a_batch() -> None:
    for size in range(1, len(TIMES) + 1):
        intake = read(size).intake
        assert (intake.first_ms, intake.newest_ms[LEFT]) == (100, {0: 200})
