"""What a process without matchers hears of a comparison: all that it knows of it.

A watcher never contends for a lease and reads nothing of Kafka. About once a second it asks the owner, as
one does who stands by (see `standby`, with the argument why nothing from the past can come of it), and says
either what is new or why nobody is heard. There is one for each shard.
"""

from __future__ import annotations

from typing import NamedTuple

from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import StoreError, Unready
from twinstream.ports import Clock, Shelf, Stored
from twinstream.processes.standby import Asking, OwnerWord
from twinstream.status.comparison import ComparisonStatus, Publication

UNHEARD = (
    "no matcher is heard that owns this comparison: start one with the same comparison file and Redis, "
    "or wait until it answers"
)
FOREIGN = (
    "the matcher that owns this comparison has another comparison file, or is of another version: start this "
    "process and the matchers with the same ones"
)


def other_number(theirs: int | None, own: int) -> str:
    """Why nobody is heard where matchers share the work by another number."""
    return (
        f"its matchers run with --shards {theirs}, and this process with --shards {own}: start both with the "
        "same number"
    )


class Heard(NamedTuple):
    """What has come since the last time; `silence` says why nothing that was said holds any more.

    With each publication goes when what it tells was so, on the monotonic clock; None where that is now.
    """

    publications: list[tuple[Publication, float | None]]
    silence: str | None


class Watcher:
    """One shard of a comparison, as its owner tells of it."""

    def __init__(self, digest: str, told: Asking, clock: Clock) -> None:
        self._news = _News()
        self._hearing = OwnerWord(digest, told, self._news, clock, _as_it_is)

    def listen(self) -> Heard:
        """Ask once; to be called about once a second. It waits no longer than the store does."""
        silence = None
        try:
            if not self._hearing.pass_on():
                silence = FOREIGN if self._hearing.foreign else UNHEARD
        except StoreError as error:
            silence = str(error)
        if silence is not None:
            self._hearing.end()
        return Heard(self._news.taken(), silence)


def _as_it_is(status: ComparisonStatus) -> ComparisonStatus:
    """A watcher would take nothing over, so there is nothing to add."""
    return status


class _News:
    """What was published since it was taken last."""

    def __init__(self) -> None:
        self._published: list[tuple[Publication, float | None]] = []

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        self._published.append((publication, made_at))

    def taken(self) -> list[tuple[Publication, float | None]]:
        taken, self._published = self._published, []
        return taken


class ShardView:
    """The store of one shard, for one who only asks."""

    def __init__(self, shelf: Shelf, shard: Shard) -> None:
        self._shelf, self._shard, self._store = shelf, shard, shelf.store(shard)

    def ask(self, question: str) -> bytes | None:
        """Put a question, and get the last bulletin of the owner. Raises StoreError."""
        told = self._store.ask(question)
        if told is None and (shards := self._shelf.shards()) not in (None, self._shard.of):
            raise Unready(other_number(shards, self._shard.of))
        return told

    def glance(self) -> Stored:
        """What is new of what was saved. Raises CheckpointError and StoreError."""
        return self._store.glance()

    def close(self) -> None:
        """Close connections."""
        self._store.close()
        self._shelf.close()
