"""Relays the owner's status to other processes, and never a stale one.

About once a second an owner asks the relay for the time, *then* makes its status, and stores both as one
*bulletin*: "not before this time, this was the status". About once a second each of the others (standbys, and
processes that only show statuses) reads the bulletin together with the present time of the relay.

Why no stale pass can result. Let such a process answer `pass` at a time t on its own monotonic clock.

1. The status behind it was made after its stamp, and read at a time of the same clock. So by then it was no
   older than the difference of both, whatever the clocks of the hosts say, however long the owner was paused
   between asking for the time, making the status and sending it, and however late its command arrived.
2. This process noted its own time before it read, and adds what has passed since. The board counts this age,
   and no status older than `STALE_AFTER_SECONDS` passes. The same bulletin read again makes nothing fresh.
3. A bulletin counts only if an earlier one of the same owner was there when this process read before, a few
   seconds ago: it has come since then. So what stood in the relay before this process began, or what a
   fail-over has brought back, says nothing, whatever the clock of the server says that serves it.
4. The relay accepts a bulletin only from the owner while its lease is running, and hands it out only while
   that same owner's lease is still running; tokens are used once. So a bulletin of an owner that was
   replaced, released its lease, or was silent for the length of a lease, is not handed out. Anything shown
   from it is withdrawn then, and before this process loads the state to take over itself.
5. The owner sends the age of the verified prefix with its status (see `clock_skew`); since then the prefix
   has aged as much as the status. The clock of this host has no part in it.

The clock of the relay may be set back, and that of the server after a fail-over may be behind. A stamp in
the future shows that, and such a bulletin does not count; any other one has come within seconds (3). Its
status is older than that only if its owner stood still as well before it sent the bulletin, and then it still
held the lease.

A bulletin that is not understood (another version, another comparison file) is not relayed. Nor is that of an
owner with topics of another Kafka, which shares the store by mistake: topics are known by their ids.
After any failure the process only says that it stands by: `PENDING`, with an undecided gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from twinstream.ports import Clock, GlancedStore, HeardRelay, Publisher
from twinstream.processes.relayed import OwnersReports
from twinstream.status.common import Frozen
from twinstream.status.comparison import (
    ComparisonStatus,
    DivergenceReport,
    ShardStatus,
    UnmatchedEvent,
    UnmatchedSample,
)

RELAYED = "another process owns this comparison; this one stands by, and shows what that one says"
REPORTS_TOLD, REPORTS_BYTES = 20, 200_000
"""The most provisional reports in a bulletin; saved ones are in the store anyway."""
WAITING_BYTES = 50_000
"""The most unmatched events of each side in a bulletin: those that have waited longest."""
ASK_SECONDS = 10.0
"""Kafka is not asked more often for the ids of the topics."""
FURTHEST_APART_SECONDS = 5.0
"""Two reads that are further apart do not tell when a bulletin came."""
F = TypeVar("F", bound=Frozen)


class Bulletin(Frozen):
    """What an owner tells others.

    `stamp` is the time of the relay before `said` was made; `number` grows with each bulletin of a process.
    `owner` names the process in words, for people who look for it. `topics` are the ids of those that it
    reads. `reports` are provisional, `waiting` are the events that have waited longest.
    """

    stamp: float
    number: float
    owner: str = ""
    topics: tuple[str, ...] = ()
    said: ShardStatus
    reports: tuple[DivergenceReport, ...] = ()
    waiting: tuple[UnmatchedEvent, ...] = ()

    @classmethod
    def of(
        cls,
        said: ComparisonStatus | ShardStatus,
        reports: Iterable[DivergenceReport],
        waiting: Sequence[UnmatchedEvent],
        **told: Any,
    ) -> Bulletin:
        """A bulletin with the first of these reports and events, up to their bounds."""
        sides = ((event for event in waiting if event.side == side) for side in ("reference", "candidate"))
        return cls(
            said=ShardStatus(status=said) if isinstance(said, ComparisonStatus) else said,
            reports=tuple(_first(islice(reports, REPORTS_TOLD), REPORTS_BYTES)),
            waiting=tuple(event for side in sides for event in _first(side, WAITING_BYTES)),
            **told,
        )


class OwnersWord:
    """The owner's word in another process: its last bulletin, and the divergences that it has saved.

    `as_shown` changes the status for this process, and `own_topics` are the ids of the topics that it would
    read itself, None where it does not know. `foreign` tells whether the owner read last has another file,
    version or Kafka.
    """

    def __init__(
        self,
        digest: str,
        relay: HeardRelay,
        store: GlancedStore,
        publisher: Publisher,
        clock: Clock,
        as_shown: Callable[[ComparisonStatus], ComparisonStatus] = lambda status: status,
        own_topics: Callable[[], tuple[str, ...] | None] = lambda: None,
    ) -> None:
        self._digest, self._relay, self._publisher, self._clock = digest, relay, publisher, clock
        self._as_shown = as_shown
        self._ask_topics, self._next_ask = own_topics, 0.0
        self._topics: tuple[str, ...] | None = None
        self._read: _Read | None = None
        self._reports = OwnersReports(digest, store, publisher)
        self._waiting: UnmatchedSample | None = None
        self._showing = False
        self.foreign = False

    def pass_on(self) -> bool:
        """Read the owner's bulletin, and publish it if it has come since the last call.

        Returns whether its word counts, as it does while the same bulletin ages. Raises StoreError.
        """
        read_at, self.foreign = self._clock.monotonic(), False
        heard = self._relay.heard()
        bulletin = None if heard is None else self._understood(heard.bulletin)
        if heard is None or bulletin is None:
            self.end()
            return False
        before, self._read = self._read, _Read(read_at, heard.token, bulletin.number)
        if before is None or before.token != heard.token or read_at - before.at > FURTHEST_APART_SECONDS:
            self.end()
            return False
        age = heard.seconds - bulletin.stamp
        if bulletin.number > before.number and age >= 0:
            self._show(bulletin, read_at - age)
        return self._showing

    def _understood(self, text: bytes) -> Bulletin | None:
        """The bulletin, if it is of this version and about the same comparison file and topics."""
        try:
            bulletin = Bulletin.model_validate_json(text)
        except ValidationError:
            self.foreign = True
            return None
        differs = bulletin.said.status.spec_digest != self._digest
        self.foreign = differs or self._of_other_topics(bulletin.topics)
        return None if self.foreign else bulletin

    def _of_other_topics(self, told: tuple[str, ...]) -> bool:
        """Whether the owner reads topics with these names, but not those that this process would read.

        Asking Kafka takes time, so what it said last counts for a while; a topic may be created anew.
        """
        if told and told != self._topics and self._clock.monotonic() >= self._next_ask:
            if (found := self._ask_topics()) is not None:
                self._topics = found
            self._next_ask = self._clock.monotonic() + ASK_SECONDS
        return bool(told) and self._topics is not None and told != self._topics

    def _show(self, bulletin: Bulletin, made_at: float) -> None:
        said = bulletin.said
        self._reports.pass_on(said.status, bulletin.reports)
        self._show_waiting(UnmatchedSample(comparison=said.status.name, events=bulletin.waiting))
        shown = said.model_copy(update={"status": self._as_shown(said.status)})
        self._publisher.publish(shown, made_at)
        self._showing = True

    def end(self) -> bool:
        """Withdraw everything that the owner said; returns whether anything was shown."""
        shown, self._showing = self._showing, False
        self._reports.withdraw()
        if self._waiting is not None:
            self._show_waiting(self._waiting.model_copy(update={"events": ()}))
        return shown

    def _show_waiting(self, sample: UnmatchedSample) -> None:
        if sample != self._waiting:
            self._publisher.publish(sample)
        self._waiting = sample


class _Read(NamedTuple):
    """When a bulletin was read, of which owner, and its number."""

    at: float
    token: str
    number: float


def standing_by(status: ComparisonStatus) -> ComparisonStatus:
    """The status as a standby shows it."""
    told = {"standby": True, "reasons": [RELAYED, *status.health.reasons]}
    return status.model_copy(update={"health": status.health.model_copy(update=told)})


def _first(items: Iterable[F], most: int) -> Iterator[F]:
    """The first items, up to this total size as JSON."""
    size = 0
    for item in items:
        size += len(item.model_dump_json())
        if size > most:
            return
        yield item
