"""The knowledge of the API process about one comparison, and its view at a moment.

A moment is a time on the monotonic clock, and is an argument: nothing here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import attrgetter

from twinstream.api.gate import freshness as fresh
from twinstream.api.gate.freshness import Freshness
from twinstream.api.gate.gate import GateAnswer, gate
from twinstream.api.gate.gate_hints import PACE_SECONDS, GateFacts, to_decide
from twinstream.api.gate.samples import Samples
from twinstream.api.http.rendered import Rendered, of_model
from twinstream.api.state.divergences import DivergenceLog
from twinstream.api.state.expectation import Expectation, placeholder
from twinstream.api.state.matchers import MatcherView
from twinstream.api.state.merging import merged
from twinstream.api.state.timings import summed
from twinstream.api.stream.timeline import Timeline
from twinstream.explain.receipts.exclusions import Exclusion
from twinstream.status.comparison import ComparisonStatus, Reset, ShardStatus, UnmatchedEvent


@dataclass(frozen=True)
class Shown:
    """A status as shown, with its source, and the reasons about its freshness and its matchers.

    It changes only once a publication, and many clients may ask in between: dashboards, release tools, the
    page in several browsers. So it is kept and rendered once for all of them.
    """

    source: ComparisonStatus
    reasons: tuple[str, ...]
    status: ComparisonStatus

    @cached_property
    def body(self) -> Rendered:
        """The status as bytes."""
        return of_model(self.status)


@dataclass(frozen=True, slots=True)
class View:
    """One comparison as it may be shown at one moment.

    `falls` are those of its matcher since the service started; `exclusions` are what its file leaves out, and
    `changes` how the file of a trial differs.
    """

    shown: Shown
    freshness: Freshness
    gate: GateAnswer
    falls: int = 0
    in_crash_loop: bool = False
    exclusions: tuple[Exclusion, ...] = ()
    changes: tuple[str, ...] = ()

    @property
    def status(self) -> ComparisonStatus:
        """The status as shown."""
        return self.shown.status

    @property
    def name(self) -> str:
        """The comparison's name."""
        return self.status.name


@dataclass(slots=True)
class Entry:
    """Everything known of one comparison. `status` is that of all its matchers together.

    A status older than `stale_after` no longer counts. `told` and `last_reset` are the freshness and the
    reset that subscribers know.
    """

    expected: Expectation
    status: ComparisonStatus
    matchers: list[MatcherView]
    awaited_since: datetime
    stale_after: float
    told: str = "awaited"
    last_reset: Reset | None = None
    samples: Samples = field(default_factory=Samples)
    timeline: Timeline = field(default_factory=Timeline)
    divergences: DivergenceLog = field(default_factory=DivergenceLog)
    _shown: Shown | None = None

    @classmethod
    def awaited(cls, expectation: Expectation, now: datetime, moment: float, stale_after: float) -> Entry:
        """The entry of a comparison that nobody has published yet: PENDING, with an undecided gate."""
        status = placeholder(expectation, now)
        matchers = [MatcherView(moment) for _ in range(expectation.shards)]
        return cls(expectation, status, matchers, status.updated_at, stale_after)

    @property
    def waiting(self) -> list[UnmatchedEvent]:
        """The events that have waited longest for a partner."""
        return [event for matcher in self.matchers for event in matcher.waiting]

    def hear(self, said: ShardStatus, shard: int, as_of: float) -> None:
        """Accept a matcher's status. The first shard makes resets: one that it does not report is lost."""
        self.matchers[shard].hear(said, as_of)
        if shard == 0 and said.status.waiting_for is None:
            for matcher in self.matchers:
                matcher.go_on(said.status.resets)

    def merge(self, now: datetime) -> ComparisonStatus:
        """Merge the last statuses of all matchers; returns the previous status."""
        said = {number: one.said for number, one in enumerate(self.matchers) if one.said is not None}
        alone = len(self.matchers) == 1
        status = said[0].status if alone else merged(self.expected, said, now, self.status)
        resets = max(status, self.status, key=attrgetter("reset_count"))
        known = {"resets": resets.resets, "reset_count": resets.reset_count}
        trial = {"trial_of": self.expected.trial_of}
        timings = {
            "match_latency": summed(one.match_latency.total for one in self.matchers),
            "processing": summed(one.processing.total for one in self.matchers),
        }
        previous = self.status
        self.status = status.model_copy(update={**known, **trial, **timings})
        return previous

    def freshness(self, moment: float) -> Freshness:
        """The freshness of all matchers' statuses: that of the worst."""
        return fresh.of_all([self.freshness_of(matcher, moment) for matcher in self.matchers])

    def freshness_of(self, matcher: MatcherView, moment: float) -> Freshness:
        """The freshness of one matcher's status."""
        age = moment - matcher.as_of
        since = None if matcher.said is None else matcher.said.status.updated_at
        if matcher.lost is not None:
            return fresh.lost(since, age, matcher.lost)
        if matcher.unheard is not None:
            return fresh.unheard(since, age, matcher.unheard)
        if since is None:
            return fresh.awaited(self.awaited_since, age)
        return fresh.heard(since, age, self.stale_after)

    def view(self, moment: float) -> View:
        """The view of the comparison at a moment."""
        freshness, loops, status = self.freshness(moment), self._loops(moment), self.status
        for reason in loops:
            status = fresh.with_reason(status, reason)
        return View(
            self._once((*loops, freshness.reason), fresh.with_freshness(status, freshness)),
            freshness,
            self._gate(status, freshness, moment),
            sum(matcher.falls for matcher in self.matchers),
            bool(loops),
            self.expected.exclusions,
            self.expected.changes,
        )

    def _verified_age(self, moment: float) -> float | None:
        """The present age of the verified prefix, in seconds: that of the matcher furthest behind.

        Each matcher gave the age of its own prefix; the age of the status is added.
        """
        ages = []
        for matcher in self.matchers:
            age = None if matcher.said is None else matcher.said.status.verified_age_seconds
            if age is None:
                return None
            ages.append(age + moment - matcher.as_of)
        return max(ages)

    def _gate(self, status: ComparisonStatus, freshness: Freshness, moment: float) -> GateAnswer:
        age = self._verified_age(moment)
        answer = gate(status, freshness, age)
        if status.trial_of is not None or not answer.undecided:
            return answer
        known = GateFacts(status, freshness, self.waiting, self.samples.latest(PACE_SECONDS), age)
        return answer.model_copy(update={"to_decide": "\n".join(to_decide(known))})

    def _loops(self, moment: float) -> list[str]:
        """The sentences about matchers that fall repeatedly."""
        count = len(self.matchers)
        named = ("Its matcher" if count == 1 else f"The matcher of shard {n}" for n in range(count))
        found = (matcher.loop(name, moment) for name, matcher in zip(named, self.matchers, strict=True))
        return [reason for reason in found if reason is not None]

    def _once(self, reasons: tuple[str, ...], status: ComparisonStatus) -> Shown:
        """The same object as long as it is equal, so that its rendering is made only once."""
        if self._shown is None or self._shown.source is not self.status or self._shown.reasons != reasons:
            self._shown = Shown(self.status, reasons, status)
        return self._shown
