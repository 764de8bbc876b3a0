"""Finds the records over which a task falls, by trying them in a copy of its process.

Spark runs a task that fell once more, and ends the query after a few falls over the same record. So a task
that runs again *rehearses*: it forks a copy of itself, which takes the records first and notes in shared
memory which ones it is taking (`intake.falls`). If the copy dies, the next one takes those records one by
one. The record over which three copies fell is left out, as a gap, as in the service. A first run of a task
pays nothing.

A copy has one thread and no connections, so it only takes records, and saves and tells nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import RawArray

import structlog
from pyspark import TaskContext

from twinstream.core.events import Side
from twinstream.errors import QueryFailed, TwinstreamError, place_of
from twinstream.intake.falls import TRAIL_LENGTH, FallenStretch, Falls, Trail, part_of, without
from twinstream.ports import Batch, Item

MOST_LEFT_OUT = 10
"""Of one batch; more have a cause that a person has to find."""
STUCK_SECONDS = 60.0
"""A copy that notes nothing for so long hangs, perhaps on a lock of a thread that it does not have. Then
nothing is known, and the records are taken as they are."""
_POLL_SECONDS = 0.01
Take = Callable[[Side, Sequence[Item]], object]
Step = tuple[Side, Sequence[Item]]
"""Items of one side that are taken at once."""


def runs_again() -> bool:
    """Whether this is a task of Spark that fell before."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def shared_trail() -> Trail:
    """A trail that copies of this process share with it."""
    return Trail(RawArray("q", TRAIL_LENGTH))


def survivable(
    steps: Sequence[Step], take: Take, trail: Trail, names: Mapping[Side, str], ids: Mapping[Side, str]
) -> list[Step]:
    """The steps with a gap in place of each record over which `take` falls.

    `take` has to enter and leave the trail with each batch. `names` and `ids` are those of the topics.

    Raises QueryFailed for more than `MOST_LEFT_OUT` records. Complexity: one run of `take`, and at most three
    more for each record that is left out.
    """
    falls, tried = Falls(), list(steps)
    while (fallen := _fallen(tried, take, trail)) is not None:
        falls.fell_over(fallen)
        if len(falls.left_out) > MOST_LEFT_OUT:
            raise QueryFailed(
                f"the matcher falls over more than {MOST_LEFT_OUT} records of one batch, and offset "
                f"{fallen.first} of partition {fallen.partition} of {names[fallen.side]} is one of them: "
                "the log of the executor says why"
            )
        tried = [(side, [*_apart(items, fallen, falls.left_out, ids[side])]) for side, items in tried]
    return [(side, [*_apart(items, None, falls.left_out, ids[side])]) for side, items in steps]


def _apart(
    items: Iterable[Item], fallen: FallenStretch | None, left_out: Sequence[FallenStretch], topic: str
) -> Iterator[Item]:
    """The items without what is left out, and with the records of a stretch one by one."""
    for item in items:
        for part in without(item, left_out, topic) if isinstance(item, Batch) else (item,):
            if isinstance(part, Batch) and fallen is not None and _meet(part, fallen):
                yield from (part_of(part, slice(at, at + 1)) for at in range(len(part.records)))
            else:
                yield part


def _meet(batch: Batch, fallen: FallenStretch) -> bool:
    same = (batch.side, batch.partition) == (fallen.side, fallen.partition)
    return same and batch.offsets[0] <= fallen.last and fallen.first <= batch.offsets[-1]


def _fallen(steps: Sequence[Step], take: Take, trail: Trail) -> FallenStretch | None:
    """The records over which a copy of this process falls; None if it takes all, or nobody knows."""
    trail.leave()
    copy = os.fork()
    if not copy:
        _take_and_exit(steps, take)
    seen, deadline = trail.stretch(), time.monotonic() + STUCK_SECONDS
    while True:
        ended, status = os.waitpid(copy, os.WNOHANG)
        if ended:
            return trail.stretch() if status else None
        if (now := trail.stretch()) != seen:
            seen, deadline = now, time.monotonic() + STUCK_SECONDS
        if time.monotonic() > deadline:
            os.kill(copy, signal.SIGKILL)
            os.waitpid(copy, 0)
            return None
        time.sleep(_POLL_SECONDS)


def _take_and_exit(steps: Sequence[Step], take: Take) -> None:
    """Take all, in the copy. An error that says what to do is told by the run that counts."""
    status = 1
    try:
        for side, items in steps:
            take(side, items)
        status = 0
    except TwinstreamError:
        status = 0
    except BaseException as error:  # noqa: BLE001 - whatever it is, it ends the copy
        structlog.get_logger().error("falls over a record", why=place_of(error))
    finally:
        sys.stdout.flush()
        os._exit(status)
