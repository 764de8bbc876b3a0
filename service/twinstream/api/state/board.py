"""The board: all that the API process knows about its comparisons.

Matchers publish, the board keeps the newest status, requests read it. It is used from one thread, the event
loop: code on other threads hands publications over with
``loop.call_soon_threadsafe(board.accept, publication)``.

Several matchers, the shards, may share a comparison. The last status of each is kept apart; they are shown as
one (see `merging`), which is no better than the worst of them.

The board must never show an old verdict as if it were live. So everything leaves it as a `View`: the status
with its freshness, and with degraded health unless it is fresh.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial

from twinstream.api.gate.freshness import FreshnessState
from twinstream.api.gate.gate_hints import PACE_SECONDS, pace_of
from twinstream.api.gate.samples import Sample
from twinstream.api.http.rendered import Rendered
from twinstream.api.state.divergences import DivergenceLog
from twinstream.api.state.entry import Entry, View
from twinstream.api.state.expectation import Expectation
from twinstream.api.stream.mailbox import BoardEvent, Mailbox
from twinstream.api.stream.sse_events import event_of, phase_event, sample_event, status_event, verdict_event
from twinstream.api.stream.timeline import Phase, log_phase
from twinstream.status.comparison import (
    ComparisonStatus,
    DivergenceReport,
    Publication,
    Reset,
    Resumed,
    ShardStatus,
    UnmatchedEvent,
    UnmatchedSample,
    Withdrawn,
)

STALE_AFTER_SECONDS = 5.0
"""Matchers publish about once a second; five missing statuses are no jitter."""
NAMED = 20
"""The most comparisons that are named to whoever asks for one that is not there."""
LONGEST_NAME = 63
"""No name of a comparison is longer, and to look for near ones takes longer with each character."""


class UnknownComparisonError(LookupError):
    """No comparison of this name is expected; the text names those that are, the nearest first."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        near = get_close_matches(name[:LONGEST_NAME], known, NAMED, 0)
        more = f" and {len(known) - NAMED:,} more" if len(known) > NAMED else ""
        available = ", ".join(near) or "none yet"
        super().__init__(f"there is no comparison {name!r}; available: {available}{more}")
        self.name = name


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class Board:
    """The newest publications of every comparison.

    Args:
        monotonic: seconds on a clock that never jumps, the one of all processes of this machine; ages are
            measured on it.
        now: the wall clock, for times shown to people; it decides nothing.
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
        self._entries: dict[str, Entry] = {}
        self._mailboxes: set[Mailbox] = set()
        self._closed = False

    def expect(self, expectation: Expectation) -> None:
        """List a comparison before its matcher has published: PENDING, with an undecided gate."""
        if expectation.name not in self._entries:
            times = self._now(), self._monotonic()
            self._entries[expectation.name] = Entry.awaited(expectation, *times, self._stale_after)

    def accept(self, publication: Publication, shard: int = 0, made_at: float | None = None) -> None:
        """Accept a publication of a matcher.

        It was true at `made_at`, on the monotonic clock; without it, now.

        A status seen before (with the same run and time of writing) says nothing new: reading it again does
        not make it fresh. Raises UnknownComparisonError.
        """
        match publication:
            case ComparisonStatus():
                self._accept_status(ShardStatus(status=publication), shard, made_at)
            case ShardStatus():
                self._accept_status(publication, shard, made_at)
            case DivergenceReport():
                self._accept_divergence(publication, shard)
            case Withdrawn():
                self._withdraw(self._entry(publication.comparison), shard, [publication.id])
            case Resumed():
                entry, standing = self._entry(publication.comparison), set(publication.divergences)
                self._withdraw(entry, shard, entry.matchers[shard].shown.keys() - standing)
            case UnmatchedSample():
                self._entry(publication.comparison).matchers[shard].waiting = publication.events
            case Reset():
                self._end(self._entry(publication.comparison), publication)

    def lost(self, name: str, reason: str, shard: int = 0) -> None:
        """Mark a matcher of a comparison as gone: nothing that it said counts until a new status comes.

        `reason` is a sentence that says so. Raises UnknownComparisonError.
        """
        matcher = self._entry(name).matchers[shard]
        matcher.fall(reason, self._monotonic())
        self._forget(name, shard)

    def unheard(self, name: str, reason: str, shard: int = 0) -> None:
        """Mark a matcher of a comparison as unheard, for this reason; like `lost`, but nothing fell here."""
        matcher = self._entry(name).matchers[shard]
        if matcher.unheard != reason:
            matcher.unheard = reason
            self._forget(name, shard)

    def _end(self, entry: Entry, reset: Reset) -> None:
        """End a comparison by a reset: earlier and late statuses about it no longer count.

        Both the matcher of this process and whoever asked for the reset report it: it is told once.
        """
        if reset == entry.last_reset:
            return
        entry.last_reset = reset
        for matcher in entry.matchers:
            matcher.end(reset)
        self._tell_state(entry)
        self._tell(lambda: event_of("reset", reset))

    def _forget(self, name: str, shard: int) -> None:
        """Drop everything that a matcher said."""
        entry = self._entry(name)
        matcher = entry.matchers[shard]
        matcher.ended = None  # The next matcher may resume it, if the reset was lost.
        # Its successor starts from the last checkpoint, and does not know what was shown since.
        self._withdraw(entry, shard, [key for key, provisional in matcher.shown.items() if provisional])
        self._tell_state(entry)

    def tick(self) -> None:
        """Notify subscribers of changes caused by time alone; to be called about once a second."""
        for entry in self._entries.values():
            if entry.freshness(self._monotonic()).state != entry.told:
                self._tell_state(entry)
            else:
                self._note_phase(entry, entry.view(self._monotonic()))

    def view(self, name: str) -> View:
        """The present view of one comparison. Raises UnknownComparisonError."""
        return self._entry(name).view(self._monotonic())

    def expected(self, name: str) -> Expectation:
        """What the file of a comparison declares. Raises UnknownComparisonError."""
        return self._entry(name).expected

    def pace(self, name: str) -> float:
        """The recent pace of matching, in pairs a second. Raises UnknownComparisonError."""
        return pace_of(self._entry(name).samples.latest(PACE_SECONDS))

    def matcher_state(self, name: str, shard: int = 0) -> tuple[FreshnessState, bool]:
        """The freshness of a matcher's status, and whether it stands by. Raises UnknownComparisonError."""
        entry = self._entry(name)
        matcher = entry.matchers[shard]
        stands_by = matcher.said is not None and matcher.said.status.health.standby
        return entry.freshness_of(matcher, self._monotonic()).state, stands_by

    def views(self) -> list[View]:
        """The present views of all comparisons, in the order in which they became known."""
        return [entry.view(self._monotonic()) for entry in self._entries.values()]

    def body(self, name: str) -> Rendered:
        """The status of a comparison as bytes, rendered once a publication. Raises UnknownComparisonError."""
        return self.view(name).shown.body

    def bodies(self) -> list[Rendered]:
        """The statuses of all comparisons as bytes, in the order of their names."""
        return [self.body(name) for name in sorted(self._entries)]

    def unmatched(self, name: str) -> list[UnmatchedEvent]:
        """The events that have waited longest for a partner. Raises UnknownComparisonError."""
        return self._entry(name).waiting

    def divergences(self, name: str) -> DivergenceLog:
        """The divergences of a comparison. Raises UnknownComparisonError."""
        return self._entry(name).divergences

    def timeline(self, name: str) -> list[Phase]:
        """The phases of a comparison since the service began, oldest first. Raises UnknownComparisonError."""
        return self._entry(name).timeline.items()

    def samples(self, name: str) -> list[Sample]:
        """The recent past of a comparison, oldest first. Raises UnknownComparisonError."""
        return self._entry(name).samples.items()

    def subscribe(self, comparison: str | None = None) -> Mailbox:
        """A mailbox that gets the current state and then every change, of one comparison or of all.

        Raises UnknownComparisonError. The caller hands it back with `unsubscribe`.
        """
        entries = [self._entry(comparison)] if comparison is not None else list(self._entries.values())
        mailbox = Mailbox(comparison)
        for entry in entries:
            view = entry.view(self._monotonic())
            mailbox.put(status_event(view.name, view.shown.body))
            if view.status.trial_of is None:
                mailbox.put(event_of("gate", view.gate))
        self._mailboxes.add(mailbox)
        if self._closed:
            mailbox.close()
        return mailbox

    def unsubscribe(self, mailbox: Mailbox) -> None:
        """Put no more events into `mailbox`."""
        self._mailboxes.discard(mailbox)

    @property
    def listeners(self) -> int:
        """The number of open event streams."""
        return len(self._mailboxes)

    def close(self) -> None:
        """End all event streams, so that a server which waits for its connections can stop."""
        self._closed = True
        for mailbox in self._mailboxes:
            mailbox.close()

    def _accept_status(self, said: ShardStatus, shard: int, made_at: float | None) -> None:
        status, now = said.status, self._monotonic()
        entry = self._entry(status.name)
        matcher = entry.matchers[shard]
        known = matcher.said is not None and _same_writing(matcher.said.status, status)
        has_ended = matcher.ended == status.started_at and said.waiting_for is None
        if known or has_ended:
            return
        entry.hear(said, shard, now if made_at is None else min(made_at, now))
        self._tell_verdict(entry, entry.merge(self._now()))
        complete = all(one.said is not None for one in entry.matchers)
        sample = entry.samples.add(entry.status, matcher.as_of) if complete else None
        self._tell_state(entry)
        if sample is not None:
            self._tell(lambda: sample_event(status.name, sample))

    def _accept_divergence(self, report: DivergenceReport, shard: int) -> None:
        entry = self._entry(report.comparison)
        entry.matchers[shard].shown[report.id] = report.provisional
        entry.divergences.upsert(report)
        self._tell(lambda: event_of("divergence", report, report.id))

    def _withdraw(self, entry: Entry, shard: int, keys: Iterable[str]) -> None:
        for key in keys:
            entry.matchers[shard].shown.pop(key, None)
            if entry.divergences.withdraw(key):
                gone = Withdrawn(id=key, comparison=entry.status.name)
                self._tell(partial(event_of, "withdrawn", gone, key))

    def _entry(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownComparisonError(name, self._entries) from None

    def _tell_verdict(self, entry: Entry, previous: ComparisonStatus) -> None:
        status = entry.status
        if status.verdict != previous.verdict and status.trial_of is None:
            self._tell(lambda: verdict_event(status, previous.verdict))

    def _tell_state(self, entry: Entry) -> None:
        view = entry.view(self._monotonic())
        entry.told = view.freshness.state
        self._tell(lambda: status_event(view.name, view.shown.body))
        if view.status.trial_of is None:
            self._tell(lambda: event_of("gate", view.gate))
        self._note_phase(entry, view)

    def _note_phase(self, entry: Entry, view: View) -> None:
        if view.status.trial_of is not None:  # Without a gate there are no phases, and no log of an alarm.
            return
        phase = entry.timeline.note(view.status, view.gate, self._now())
        if phase is not None:
            log_phase(view.name, phase)
            self._tell(lambda: phase_event(view.name, phase))

    def _tell(self, make: Callable[[], BoardEvent]) -> None:
        """Put an event into every mailbox; made once, and only if anybody listens."""
        if self._mailboxes:
            event = make()
            for mailbox in self._mailboxes:
                mailbox.put(event)


def _same_writing(one: ComparisonStatus, other: ComparisonStatus) -> bool:
    """Whether they are one status; that of a matcher which waits is kept with an earlier `started_at`."""
    return one.updated_at == other.updated_at and (
        one.started_at == other.started_at or other.waiting_for is not None
    )
