"""Follows a comparison in a process without matchers: everything that it learns from the owner.

A watcher never contends for a lease and reads nothing from Kafka. About once a second it reads the owner's
bulletin, as a standby does (see `standby`, with the argument why nothing stale can come of it), and returns
either the news or the reason why no owner is heard. There is one watcher for each shard.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import StoreError
from twinstream.ports import Clock, ReadShelf
from twinstream.processes.standby import OwnersWord
from twinstream.status.comparison import ComparisonStatus, Publication, ShardStatus

UNHEARD = (
    "no matcher is heard that owns this comparison: start one with the same comparison file and Redis, "
    "or wait until it answers"
)
FOREIGN = (
    "the matcher that owns this comparison has another comparison file or Kafka, or is of another version: "
    "start this process and the matchers with the same ones"
)
OTHER_NUMBER = (
    "its matchers run with --shards {theirs}, and this process with --shards {own}: start both with the same "
    "number"
)


class News(NamedTuple):
    """The publications since the last call; `silence` is the reason why earlier ones no longer count.

    Each publication comes with the time at which it was true, on the monotonic clock; None means now.
    """

    publications: list[tuple[Publication, float | None]]
    silence: str | None


class _Verified(NamedTuple):
    """Up to when a run had verified its topics, and since when, on the monotonic clock, that is known."""

    run: tuple[str, datetime, int]
    through: datetime
    at: float


class Watcher:
    """One shard of a comparison, as its owner reports it. `unheard` is what to say while none does."""

    def __init__(
        self, digest: str, shelf: ReadShelf, shard: Shard, clock: Clock, unheard: str = UNHEARD
    ) -> None:
        self._unheard = unheard
        self._shelf, self._shard = shelf, shard
        self._store, self._relay = shelf.store(shard), shelf.relay(shard)
        self._clock = clock
        self._published: list[tuple[Publication, float | None]] = []
        self._verified: _Verified | None = None
        self._word = OwnersWord(digest, self._relay, self._store, self, clock)

    def listen(self) -> News:
        """Read once; to be called about once a second. It waits no longer than the store does."""
        try:
            silence = None if self._word.pass_on() else self._silence()
        except StoreError as error:
            silence = str(error)
            self._word.end()
        published, self._published = self._published, []
        return News(published, silence)

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        """Keep a publication until `listen` returns it."""
        at = self._clock.monotonic() if made_at is None else made_at
        if isinstance(publication, ComparisonStatus):
            publication = self._still_verified(publication, at)
        elif isinstance(publication, ShardStatus):
            status = self._still_verified(publication.status, at)
            publication = publication.model_copy(update={"status": status})
        self._published.append((publication, made_at))

    def _still_verified(self, said: ComparisonStatus, at: float) -> ComparisonStatus:
        """The status with what its run had verified, if it does not say: a task of Spark may just have begun.

        What was settled stays so, and only ages.
        """
        run = said.spec_digest, said.started_at, said.reset_count
        if said.verified_through is not None and said.verified_age_seconds is not None:
            self._verified = _Verified(run, said.verified_through, at - said.verified_age_seconds)
        known = self._verified
        if known is None or known.run != run or said.verified_through or said.waiting_for:
            return said
        age = {"verified_age_seconds": at - known.at}
        return said.model_copy(update={"verified_through": known.through, **age})

    def _silence(self) -> str:
        """The reason why no owner is heard. Raises StoreError."""
        if self._word.foreign:
            return FOREIGN
        if (shards := self._shelf.shards()) not in (None, self._shard.of):
            return OTHER_NUMBER.format(theirs=shards, own=self._shard.of)
        return self._unheard

    def close(self) -> None:
        """Close connections."""
        for opened in (self._store, self._relay, self._shelf):
            opened.close()
