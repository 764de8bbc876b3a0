"""The board: all that the API process knows about its comparisons.

Matchers publish, the board keeps the newest, requests read. It is used from one thread, the event loop:
whoever receives publications elsewhere hands them over with
``loop.call_soon_threadsafe(board.accept, publication)``.

A comparison may be shared by several matchers, its shards. What each said last is kept apart; they are shown
as one (see `merging`), and no better than the worst of them.

What it must never do is to show an old verdict as if it were live. So everything leaves the board as a
`View`: the status together with its freshness, its health degraded unless it is fresh.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from twinstream.api import freshness as fresh
from twinstream.api.deciding import PACE_SECONDS, Known, pace_of, to_decide
from twinstream.api.divergences import DivergenceLog, TrialLog
from twinstream.api.expectation import Expectation, placeholder
from twinstream.api.freshness import Freshness
from twinstream.api.gate import Answer, GateAnswer, gate
from twinstream.api.mailbox import BoardEvent, Mailbox
from twinstream.api.matchers import Matcher
from twinstream.api.merging import at_least, merged
from twinstream.api.notices import (
    divergence_event,
    gate_event,
    phase_event,
    reset_event,
    sample_event,
    status_event,
    verdict_event,
    withdrawn_event,
)
from twinstream.api.progress import progress_of
from twinstream.api.rendered import Kept, Rendered, of_model
from twinstream.api.samples import Sample, Samples
from twinstream.api.timeline import Phase, Timeline, log_phase
from twinstream.spec.exclusions import Exclusion
from twinstream.status import (
    ComparisonStatus,
    DivergenceReport,
    OnTrial,
    Publication,
    Relayed,
    Reset,
    Resumed,
    ShardStatus,
    UnmatchedEvent,
    UnmatchedSample,
    Withdrawn,
)

STALE_AFTER_SECONDS = 5.0
"""Matchers publish about once a second; five silent ones are no jitter."""


class UnknownComparisonError(LookupError):
    """Nobody expects, and nobody has published, a comparison of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no comparison {name!r}")
        self.name = name


@dataclass(frozen=True, slots=True)
class View:
    """One comparison as it may be shown at one moment.

    `falls` of its matcher since the service started; `exclusions` are what its file leaves out.
    """

    status: ComparisonStatus
    freshness: Freshness
    gate: GateAnswer
    falls: int = 0
    in_crash_loop: bool = False
    exclusions: tuple[Exclusion, ...] = ()

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


class _Shown(NamedTuple):
    """A status as it is shown, what it was made of, and what is said of its freshness and its matchers."""

    of: ComparisonStatus
    reasons: tuple[str, ...]
    status: ComparisonStatus


@dataclass(slots=True)
class _Entry:
    """What is known of one comparison. `status` is that of all its matchers together."""

    expected: Expectation | None
    status: ComparisonStatus
    matchers: list[Matcher]
    awaited_since: datetime
    told: str = "awaited"
    samples: Samples = field(default_factory=Samples)
    timeline: Timeline = field(default_factory=Timeline)
    divergences: DivergenceLog = field(default_factory=DivergenceLog)
    on_trial: TrialLog = field(default_factory=TrialLog)
    shown: _Shown | None = None
    body: Kept[ComparisonStatus] = field(default_factory=lambda: Kept[ComparisonStatus](of_model))
    progress: Kept[ComparisonStatus] = field(default_factory=lambda: Kept[ComparisonStatus](_progress))


def _progress(status: ComparisonStatus) -> Rendered:
    return of_model(progress_of(status))


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class Board:
    """The newest publications of every comparison.

    Args:
        monotonic: seconds on a clock that never jumps, the one of all processes of this machine; ages are
            measured on it.
        now: the wall clock, for what is shown to people; nothing is decided by it.
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
            status, now = placeholder(expectation, self._now()), self._monotonic()
            matchers = [Matcher(now) for _ in range(expectation.shards)]
            self._entries[expectation.name] = _Entry(expectation, status, matchers, status.updated_at)

    def accept(self, publication: Publication, shard: int = 0, made_at: float | None = None) -> None:
        """Take in what a matcher publishes.

        It was so at `made_at`, on the monotonic clock; without it, now.

        A status that was seen before (the same run and time of writing) says nothing new: reading it again
        does not make it fresh.
        """
        match publication:
            case ComparisonStatus():
                self._accept_status(ShardStatus(status=publication), shard, made_at)
            case ShardStatus():
                self._accept_status(publication, shard, made_at)
            case Relayed(said=said):
                self._accept_status(said, shard, made_at, relayed=True)
            case DivergenceReport():
                self._accept_divergence(publication, shard)
            case Withdrawn():
                self._withdraw(self._entry(publication.comparison), shard, [publication.id])
            case Resumed():
                entry, standing = self._entry(publication.comparison), set(publication.divergences)
                self._withdraw(entry, shard, entry.matchers[shard].shown.keys() - standing)
            case OnTrial(said=said):
                self._entry(publication.comparison).on_trial.accept(said)
            case UnmatchedSample():
                self._entry(publication.comparison).matchers[shard].waiting = publication.events
            case Reset():
                self._end(self._entry(publication.comparison), publication)
                self._tell(lambda: reset_event(publication))

    def lost(self, name: str, reason: str, shard: int = 0) -> None:
        """A matcher of a comparison is gone: nothing that it said counts until a new status comes.

        `reason` is a sentence that says so. Raises UnknownComparisonError.
        """
        matcher = self._entry(name).matchers[shard]
        matcher.fall(reason, self._monotonic())
        self._forget(name, shard)

    def unheard(self, name: str, reason: str, shard: int = 0) -> None:
        """No matcher of a comparison is heard, for this reason; likewise, but nothing has fallen here."""
        matcher = self._entry(name).matchers[shard]
        if matcher.unheard != reason:
            matcher.unheard = reason
            self._forget(name, shard)

    def _end(self, entry: _Entry, reset: Reset) -> None:
        """A comparison has ended with this reset: what was said of it counts no more, nor what comes yet."""
        for matcher in entry.matchers:
            matcher.end(reset)
        self._tell_state(entry)

    def _forget(self, name: str, shard: int) -> None:
        """Nothing that a matcher said counts any more."""
        entry = self._entry(name)
        matcher = entry.matchers[shard]
        matcher.ended = None  # Whoever comes next may go on with it, where the reset was lost.
        # Its successor starts from the last checkpoint, and does not know what was shown since.
        self._withdraw(entry, shard, [key for key, provisional in matcher.shown.items() if provisional])
        entry.on_trial.lost()
        self._tell_state(entry)

    def tick(self) -> None:
        """Tell subscribers of what time alone has changed; to be called about once a second."""
        for entry in self._entries.values():
            if self._freshness(entry).state != entry.told:
                self._tell_state(entry)
            else:
                self._note_phase(entry, self._view(entry))

    def view(self, name: str) -> View:
        """One comparison now. Raises UnknownComparisonError."""
        return self._view(self._entry(name))

    def pace(self, name: str) -> float:
        """How many pairs a second matched of late. Raises UnknownComparisonError."""
        return pace_of(self._entry(name).samples.latest(PACE_SECONDS))

    def hears(self, name: str, shard: int = 0) -> bool:
        """Whether what a matcher said last is from one that lives. Raises UnknownComparisonError."""
        entry = self._entry(name)
        return self._freshness_of(entry.matchers[shard], entry).fresh

    def views(self) -> list[View]:
        """All comparisons now, in the order in which they became known."""
        return [self._view(entry) for entry in self._entries.values()]

    def body(self, name: str) -> Rendered:
        """The status of a comparison as bytes, made once a publication. Raises UnknownComparisonError."""
        entry = self._entry(name)
        return entry.body.of(self._view(entry).status)

    def bodies(self) -> list[Rendered]:
        """Those of all comparisons, in the order in which they became known."""
        return [self.body(name) for name in self._entries]

    def progress(self, name: str) -> Rendered:
        """How far a comparison has come, as bytes, likewise. Raises UnknownComparisonError."""
        entry = self._entry(name)
        return entry.progress.of(self._view(entry).status)

    def unmatched(self, name: str) -> list[UnmatchedEvent]:
        """The events that have waited longest for a partner. Raises UnknownComparisonError."""
        return [event for matcher in self._entry(name).matchers for event in matcher.waiting]

    def divergences(self, name: str) -> DivergenceLog:
        """The divergences of a comparison. Raises UnknownComparisonError."""
        return self._entry(name).divergences

    def timeline(self, name: str) -> list[Phase]:
        """How a comparison stood since the service started, oldest first. Raises UnknownComparisonError."""
        return self._entry(name).timeline.items()

    def trial_divergences(self, name: str) -> DivergenceLog | None:
        """The divergences of rules on trial; None where they are with another process.

        Raises UnknownComparisonError.
        """
        entry = self._entry(name)
        return None if any(matcher.relayed for matcher in entry.matchers) else entry.on_trial.divergences

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
            mailbox.put(status_event(view.name, entry.body.of(view.status)))
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

    def _accept_status(
        self, said: ShardStatus, shard: int, made_at: float | None, *, relayed: bool = False
    ) -> None:
        status, now = said.status, self._monotonic()
        entry = self._entries.get(status.name)
        if entry is None:
            entry = self._entries[status.name] = _Entry(None, status, [Matcher(now)], status.updated_at)
        matcher = entry.matchers[shard]
        known = matcher.said is not None and _same_writing(matcher.said.status, status)
        if known or matcher.ended == status.started_at:
            return
        matcher.ended = None
        matcher.said, matcher.lost, matcher.unheard = said, None, None
        matcher.as_of = now if made_at is None else min(made_at, now)
        matcher.relayed = relayed
        previous, entry.status = entry.status, self._merged(entry)
        self._tell_verdict(entry, previous)
        complete = all(one.said is not None for one in entry.matchers)
        sample = entry.samples.add(entry.status, matcher.as_of) if complete else None
        self._tell_state(entry)
        if sample is not None:
            self._tell(lambda: sample_event(status.name, sample))

    def _merged(self, entry: _Entry) -> ComparisonStatus:
        said = {number: one.said for number, one in enumerate(entry.matchers) if one.said is not None}
        if len(entry.matchers) == 1 or entry.expected is None:
            status = said[0].status
        else:
            status = merged(entry.expected, said, self._now(), entry.status)
        if status.reset_count > entry.status.reset_count:
            return status
        # A matcher that has not taken up what is saved counts nothing yet, and what was counted is counted.
        counted = at_least(entry.status.closed_divergences, status.closed_divergences)
        resets = max(status, entry.status, key=attrgetter("reset_count"))
        known = {"resets": resets.resets, "reset_count": resets.reset_count}
        return status.model_copy(update={"closed_divergences": counted, **known})

    def _accept_divergence(self, report: DivergenceReport, shard: int) -> None:
        entry = self._entry(report.comparison)
        entry.matchers[shard].shown[report.id] = report.provisional
        entry.divergences.upsert(report)
        self._tell(lambda: divergence_event(report))

    def _withdraw(self, entry: _Entry, shard: int, keys: Iterable[str]) -> None:
        for key in keys:
            entry.matchers[shard].shown.pop(key, None)
            if entry.divergences.withdraw(key):
                gone = Withdrawn(id=key, comparison=entry.status.name)
                self._tell(partial(withdrawn_event, gone))

    def _entry(self, name: str) -> _Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownComparisonError(name) from None

    def _freshness(self, entry: _Entry) -> Freshness:
        return fresh.of_all([self._freshness_of(matcher, entry) for matcher in entry.matchers])

    def _freshness_of(self, matcher: Matcher, entry: _Entry) -> Freshness:
        age = self._age(matcher)
        since = None if matcher.said is None else matcher.said.status.updated_at
        if matcher.lost is not None:
            return fresh.lost(since, age, matcher.lost)
        if matcher.unheard is not None:
            return fresh.unheard(since, age, matcher.unheard)
        if since is None:
            return fresh.awaited(entry.awaited_since, age)
        return fresh.heard(since, age, self._stale_after)

    def _age(self, matcher: Matcher) -> float:
        return self._monotonic() - matcher.as_of

    def _verified_age(self, entry: _Entry) -> float | None:
        """How old the verified prefix is now, in seconds: as old as that of the matcher furthest behind.

        Each has said how old its own was, and since then it is older by the age of what was said.
        """
        ages = []
        for matcher in entry.matchers:
            age = None if matcher.said is None else matcher.said.status.verified_age_seconds
            if age is None:
                return None
            ages.append(age + self._age(matcher))
        return max(ages)

    def _view(self, entry: _Entry) -> View:
        freshness, loops, status = self._freshness(entry), self._loops(entry), entry.status
        for reason in loops:
            status = fresh.with_reason(status, reason)
        return View(
            self._shown(entry, (*loops, freshness.reason), fresh.with_freshness(status, freshness)),
            freshness,
            self._gate(entry, status, freshness),
            sum(matcher.falls for matcher in entry.matchers),
            bool(loops),
            () if entry.expected is None else entry.expected.exclusions,
        )

    def _gate(self, entry: _Entry, status: ComparisonStatus, freshness: Freshness) -> GateAnswer:
        age = self._verified_age(entry)
        answer = gate(status, freshness, age)
        if not answer.undecided:
            return answer
        waiting = [event for matcher in entry.matchers for event in matcher.waiting]
        known = Known(status, freshness, waiting, entry.samples.latest(PACE_SECONDS), age)
        return answer.model_copy(update={"to_decide": "\n".join(to_decide(known))})

    def _loops(self, entry: _Entry) -> list[str]:
        """What is said of matchers that fall again and again."""
        sole, now = len(entry.matchers) == 1, self._monotonic()
        named = ("Its matcher" if sole else f"The matcher of shard {n}" for n in range(len(entry.matchers)))
        found = (matcher.loop(name, now) for name, matcher in zip(named, entry.matchers, strict=True))
        return [reason for reason in found if reason is not None]

    def _shown(self, entry: _Entry, reasons: tuple[str, ...], status: ComparisonStatus) -> ComparisonStatus:
        """The same value as long as it says the same, so that what is made of it is made once."""
        if entry.shown is None or entry.shown.of is not entry.status or entry.shown.reasons != reasons:
            entry.shown = _Shown(entry.status, reasons, status)
        return entry.shown.status

    def _tell_verdict(self, entry: _Entry, previous: ComparisonStatus) -> None:
        status = entry.status
        if status.verdict != previous.verdict:
            self._tell(lambda: verdict_event(status, previous.verdict))

    def _tell_state(self, entry: _Entry) -> None:
        view = self._view(entry)
        entry.told = view.freshness.state
        self._tell(lambda: status_event(view.name, entry.body.of(view.status)))
        self._tell(lambda: gate_event(view.gate))
        self._note_phase(entry, view)

    def _note_phase(self, entry: _Entry, view: View) -> None:
        phase = entry.timeline.note(view.status, view.gate, self._now())
        if phase is not None:
            log_phase(view.name, phase)
            self._tell(lambda: phase_event(view.name, phase))

    def _tell(self, make: Callable[[], BoardEvent]) -> None:
        """Leave an event in every mailbox; made once, and only if anybody listens."""
        if self._mailboxes:
            event = make()
            for mailbox in self._mailboxes:
                mailbox.put(event)


def _same_writing(one: ComparisonStatus, other: ComparisonStatus) -> bool:
    return one.updated_at == other.updated_at and one.started_at == other.started_at
