"""The board: all that the API process knows about its comparisons.

Matchers publish, the board keeps the newest, requests read. It is used from one thread, the event loop:
whoever receives publications elsewhere hands them over with
``loop.call_soon_threadsafe(board.accept, publication)``.

What it must never do is to show an old verdict as if it were live. So everything leaves the board as a
`View`: the status together with its freshness, its health degraded unless it is fresh.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from twinstream.api import freshness as fresh
from twinstream.api.divergences import DivergenceLog
from twinstream.api.expectation import Expectation, placeholder
from twinstream.api.freshness import Freshness
from twinstream.api.gate import Answer, GateAnswer, gate
from twinstream.api.mailbox import BoardEvent, Mailbox
from twinstream.api.notices import (
    divergence_event,
    gate_event,
    sample_event,
    status_event,
    verdict_event,
    withdrawn_event,
)
from twinstream.api.samples import Sample, Samples
from twinstream.status import ComparisonStatus, DivergenceReport, Publication, Withdrawn

LOOP_FALLS, LOOP_SECONDS = 3, 600.0
"""A matcher that falls so often within this time is in a crash loop, also while it happens to be up."""
STALE_AFTER_SECONDS = 5.0
"""Matchers publish about once a second; five silent ones are no jitter."""


class UnknownComparisonError(LookupError):
    """Nobody expects, and nobody has published, a comparison of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no comparison {name!r}")
        self.name = name


@dataclass(frozen=True, slots=True)
class View:
    """One comparison as it may be shown at one moment; `falls` of its matcher since the service started."""

    status: ComparisonStatus
    freshness: Freshness
    gate: GateAnswer
    falls: int = 0
    in_crash_loop: bool = False

    @property
    def name(self) -> str:
        """The comparison's name."""
        return self.status.name

    @property
    def is_fresh(self) -> bool:
        """Whether its status is from a living matcher."""
        return self.freshness.fresh

    @property
    def age_seconds(self) -> float:
        """Since its status was written, or is waited for."""
        return self.freshness.age_seconds

    @property
    def answer(self) -> Answer:
        """What its gate answers."""
        return self.gate.answer


@dataclass(slots=True)
class _Entry:
    """What is known of one comparison. `heard_at` is on the monotonic clock, `age` what it was then."""

    status: ComparisonStatus
    heard_at: float
    age: float = 0.0
    awaited: bool = True
    lost: str | None = None
    told: str = "awaited"
    falls: int = 0
    fell_at: deque[float] = field(default_factory=lambda: deque(maxlen=LOOP_FALLS))
    fell_last: str = ""
    samples: Samples = field(default_factory=Samples)
    divergences: DivergenceLog = field(default_factory=DivergenceLog)


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class Board:
    """The newest publications of every comparison.

    Args:
        monotonic: seconds on a clock that never jumps; ages are measured on it.
        now: the wall clock, for what is compared with times in Kafka or shown to people.
        stale_after_seconds: a status older than this no longer counts.
    """

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
        stale_after_seconds: float = STALE_AFTER_SECONDS,
    ) -> None:
        self._monotonic = monotonic
        self._now = now
        self._stale_after = stale_after_seconds
        self._entries: dict[str, _Entry] = {}
        self._mailboxes: set[Mailbox] = set()
        self._closed = False

    def expect(self, expectation: Expectation) -> None:
        """List a comparison before its matcher has published: PENDING, and its gate undecided."""
        if expectation.name not in self._entries:
            status = placeholder(expectation, self._now())
            self._entries[expectation.name] = _Entry(status, self._monotonic())

    def accept(self, publication: Publication) -> None:
        """Take in what a matcher publishes.

        A status that was seen before (the same run and time of writing) says nothing new: reading it again
        does not make it fresh.
        """
        match publication:
            case ComparisonStatus():
                self._accept_status(publication)
            case DivergenceReport():
                self._entry(publication.comparison).divergences.upsert(publication)
                self._tell(lambda: divergence_event(publication))
            case Withdrawn():
                if self._entry(publication.comparison).divergences.withdraw(publication.id):
                    self._tell(lambda: withdrawn_event(publication))

    def lost(self, name: str, reason: str) -> None:
        """The matcher of a comparison is gone: nothing that it said counts until a new status comes.

        `reason` is a sentence that says so. Raises UnknownComparisonError.
        """
        entry = self._entry(name)
        entry.lost = entry.fell_last = reason
        entry.falls += 1
        entry.fell_at.append(self._monotonic())
        # Its successor starts from the last checkpoint, and does not know what was shown since.
        for key in entry.divergences.withdraw_provisional():
            self._tell(partial(withdrawn_event, Withdrawn(id=key, comparison=name)))
        self._tell_state(entry)

    def tick(self) -> None:
        """Tell subscribers of statuses that have become stale; to be called about once a second."""
        for entry in self._entries.values():
            if self._freshness(entry).state != entry.told:
                self._tell_state(entry)

    def view(self, name: str) -> View:
        """One comparison now. Raises UnknownComparisonError."""
        return self._view(self._entry(name))

    def views(self) -> list[View]:
        """All comparisons now, in the order in which they became known."""
        return [self._view(entry) for entry in self._entries.values()]

    def divergences(self, name: str) -> DivergenceLog:
        """The divergences of a comparison. Raises UnknownComparisonError."""
        return self._entry(name).divergences

    def samples(self, name: str) -> list[Sample]:
        """The recent past of a comparison, oldest first. Raises UnknownComparisonError."""
        return self._entry(name).samples.items()

    def subscribe(self, comparison: str | None = None) -> Mailbox:
        """A mailbox that gets the state of now and then every change, of one comparison or of all.

        Raises UnknownComparisonError. The caller hands it back with `unsubscribe`.
        """
        entries = [self._entry(comparison)] if comparison is not None else list(self._entries.values())
        mailbox = Mailbox(comparison)
        for entry in entries:
            view = self._view(entry)
            mailbox.put(status_event(view.status))
            mailbox.put(gate_event(view.gate))
        self._mailboxes.add(mailbox)
        if self._closed:
            mailbox.close()
        return mailbox

    def unsubscribe(self, mailbox: Mailbox) -> None:
        """Leave nothing more in `mailbox`."""
        self._mailboxes.discard(mailbox)

    @property
    def listeners(self) -> int:
        """How many event streams are open."""
        return len(self._mailboxes)

    def close(self) -> None:
        """End all event streams, so that a server which waits for its connections can stop."""
        self._closed = True
        for mailbox in self._mailboxes:
            mailbox.close()

    def _accept_status(self, status: ComparisonStatus) -> None:
        entry = self._entries.get(status.name)
        if entry is None:
            entry = self._entries[status.name] = _Entry(status, self._monotonic())
        elif not entry.awaited and _same_writing(entry.status, status):
            return
        previous, entry.status = entry.status, status
        entry.heard_at = self._monotonic()
        entry.age = max(0.0, (self._now() - status.updated_at).total_seconds())
        entry.awaited, entry.lost = False, None
        sample = entry.samples.add(status)
        if status.verdict != previous.verdict:
            self._tell(lambda: verdict_event(status, previous.verdict))
        self._tell_state(entry)
        if sample is not None:
            self._tell(lambda: sample_event(status.name, sample))

    def _entry(self, name: str) -> _Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownComparisonError(name) from None

    def _freshness(self, entry: _Entry) -> Freshness:
        age = entry.age + self._monotonic() - entry.heard_at
        since = None if entry.awaited else entry.status.updated_at
        if entry.lost is not None:
            return fresh.lost(since, age, entry.lost)
        if since is None:
            return fresh.awaited(entry.status.updated_at, age)
        return fresh.heard(since, age, self._stale_after)

    def _view(self, entry: _Entry) -> View:
        freshness, status = self._freshness(entry), entry.status
        looping = len(entry.fell_at) == LOOP_FALLS and self._monotonic() - entry.fell_at[0] < LOOP_SECONDS
        if looping:
            status = fresh.with_reason(
                status,
                f"Its matcher fell {entry.falls} times, {LOOP_FALLS} of them within the last "
                f"{LOOP_SECONDS / 60:g} minutes, lately because: {entry.fell_last}",
            )
        return View(
            fresh.with_freshness(status, freshness),
            freshness,
            gate(status, freshness, self._now()),
            entry.falls,
            looping,
        )

    def _tell_state(self, entry: _Entry) -> None:
        view = self._view(entry)
        entry.told = view.freshness.state
        self._tell(lambda: status_event(view.status))
        self._tell(lambda: gate_event(view.gate))

    def _tell(self, make: Callable[[], BoardEvent]) -> None:
        """Leave an event in every mailbox; made once, and only if anybody listens."""
        if self._mailboxes:
            event = make()
            for mailbox in self._mailboxes:
                mailbox.put(event)


def _same_writing(one: ComparisonStatus, other: ComparisonStatus) -> bool:
    return one.updated_at == other.updated_at and one.started_at == other.started_at
