"""Follows a comparison in a process without matchers: everything that it learns from the owner.

A watcher never contends for a lease and reads nothing from Kafka. About once a second it asks the owner, as a
standby does (see `standby`, with the argument why nothing stale can come of it), and returns either the news
or the reason why no owner is heard. There is one watcher for each shard.
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
    """The reason why no owner is heard if the matchers use another number of shards."""
    return (
        f"its matchers run with --shards {theirs}, and this process with --shards {own}: start both with the "
        "same number"
    )


class Heard(NamedTuple):
    """The publications since the last call; `silence` is the reason why earlier ones no longer count.

    Each publication comes with the time at which it was true, on the monotonic clock; None means now.
    """

    publications: list[tuple[Publication, float | None]]
    silence: str | None


class Watcher:
    """One shard of a comparison, as its owner reports it."""

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
    """Leave the status unchanged: a watcher would not take over."""
    return status


class _News:
    """The publications since the last call."""

    def __init__(self) -> None:
        self._published: list[tuple[Publication, float | None]] = []

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        self._published.append((publication, made_at))

    def taken(self) -> list[tuple[Publication, float | None]]:
        taken, self._published = self._published, []
        return taken


class ShardView:
    """The store of one shard, for a process that only asks."""

    def __init__(self, shelf: Shelf, shard: Shard) -> None:
        self._shelf, self._shard, self._store = shelf, shard, shelf.store(shard)

    def ask(self, question: str) -> bytes | None:
        """Leave a question, and return the owner's last bulletin. Raises StoreError."""
        told = self._store.ask(question)
        if told is None and (shards := self._shelf.shards()) not in (None, self._shard.of):
            raise Unready(other_number(shards, self._shard.of))
        return told

    def glance(self) -> Stored:
        """The saved state, with only what is new. Raises CheckpointError and StoreError."""
        return self._store.glance()

    def close(self) -> None:
        """Close connections."""
        self._store.close()
        self._shelf.close()
