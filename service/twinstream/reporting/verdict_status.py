"""Builds the status of a comparison: the verdict with its reason, and everything else that is published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from itertools import chain, islice
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from twinstream.core.comparison import Comparison
from twinstream.core.diagnosis.ceilings import Choices
from twinstream.core.diagnosis.findings import KINDS, Kind
from twinstream.core.events import FORM, ROUTE, Side
from twinstream.core.order import BARRIER
from twinstream.core.verdict import Verdict, verdict_of
from twinstream.explain.coverage import coverage_of
from twinstream.explain.divergence import NAMES
from twinstream.explain.reason import compared_text, found_text, undiverged
from twinstream.grouping.extent import whole_of
from twinstream.grouping.wording import provisional_with_sentences, with_sentences
from twinstream.intake.clock_skew import SeenAt
from twinstream.intake.intake import Intake, Undecodable
from twinstream.ports import Clock
from twinstream.reporting.accounts import account_of, differ_text, doubts_of, hole_of
from twinstream.reporting.checks import results
from twinstream.reporting.progress_text import frontier_of
from twinstream.spec.file.evidence import wanted
from twinstream.spec.file.model import Spec
from twinstream.starting.reset_model import Resets
from twinstream.status import common as parts
from twinstream.status import comparison as status
from twinstream.status.comparison import Dependency
from twinstream.status.groups import Group
from twinstream.status.timestamps import moment_of

HOLES_SHOWN = 20
UNPAIRED_TOLD = 250
"""At most so many unpaired events, left over last or still unmatched: 16 bytes each."""
_UNCHANGED = "both topics are confirmed unchanged, and all their partitions read as far"
T = TypeVar("T")


class Verified(NamedTuple):
    """Up to when all is settled: the smallest Kafka time of an unsettled event, or a look that found none.

    `at` is the monotonic time at which that was so: it gives the age, whatever happens to other clocks.
    """

    through: datetime
    at: float


class Standing(NamedTuple):
    """The results at a moment, to be published once a look confirms them.

    `open_ms` is the Kafka time of the oldest unsettled event, where the time of the evidence ends then.
    `explained` are known differences that stay known, by the rules that each could count against.
    """

    moment: int
    verified: Verified | None
    evidence: status.Coverage
    open_ms: int | None
    explained: Mapping[Choices, int] = MappingProxyType({})


class Saved(NamedTuple):
    """The differences of a checkpoint by their kinds now, by those first found, and the checks violated."""

    by_kind: Mapping[Kind, int] = MappingProxyType({})
    by_first_kind: Mapping[Kind, int] = MappingProxyType({})
    checks: frozenset[tuple[Side, int]] = frozenset()

    @classmethod
    def of(cls, comparison: Comparison) -> Saved:
        """What a checkpoint that was made just now has."""
        found = comparison.differences
        return cls(found.closed_by_kind.copy(), found.found_by_kind.copy(), comparison.checks.certain())


@dataclass
class Situation:
    """The worker's knowledge besides the comparison itself.

    `rereading`: the state was lost, and how far reading again has come. `behind`: why it has not been reset
    with the other shards. `unsaved_divergence`: a difference was found, and no checkpoint has it as a certain
    one. `standing`: the last confirmed results. `saved`: what the last checkpoint has of differences,
    `groups`: these in groups, `found`: these by time. `provisional_groups`: those of open scopes. `ends`: as
    of the last survey, which may be a minute ago; `heard_ends`: as of the latest fetch.
    """

    started_at: datetime
    troubles: list[str] = field(default_factory=list)
    unreachable: list[Dependency] = field(default_factory=list)
    stalled: list[Side] = field(default_factory=list)
    standby: bool = False
    waiting_for: str | None = None
    behind: str | None = None
    rereading: str | None = None
    unsaved_divergence: bool = False
    standing: Standing | None = None
    saved: Saved = field(default_factory=Saved)
    groups: tuple[Group, ...] = ()
    provisional_groups: tuple[Group, ...] = ()
    found: status.FoundOverTime = field(default_factory=status.FoundOverTime)
    checkpoint: status.CheckpointInfo = field(default_factory=status.CheckpointInfo)
    firsts: Mapping[Side, Mapping[int, int]] = field(default_factory=lambda: {side: {} for side in Side})
    resets: Resets = field(default_factory=Resets)
    ends: Mapping[Side, Mapping[int, int]] = field(default_factory=lambda: {side: {} for side in Side})
    heard_ends: Mapping[Side, Mapping[int, int]] = field(default_factory=lambda: {side: {} for side in Side})

    @property
    def awaits_save(self) -> bool:
        """Whether a difference is announced once a checkpoint has it: without a start none is made."""
        return self.unsaved_divergence and self.waiting_for is None


class Reporter:
    """Builds statuses, and remembers since when the verdict holds."""

    def __init__(self, spec: Spec, digest: str, comparison: Comparison, intake: Intake, clock: Clock) -> None:
        self._spec, self._digest, self._clock = spec, digest, clock
        self._comparison, self._intake = comparison, intake
        self.verdict = Verdict.PENDING
        self.since: datetime | None = None
        self.holes_seen: list[SeenAt] = []

    def glance(self, situation: Situation, made_at: float) -> status.ComparisonStatus:
        """The status of the comparison; `made_at` is the present time on the monotonic clock."""
        comparison, spec, now = self._comparison, self._spec, self._clock.now()
        verified = None if situation.standing is None else situation.standing.verified
        divergences = self._divergences()
        verdict, reason = self._judge(situation, divergences)
        progress, coverage = _sides(lambda side: self._progress(side, situation)), self._coverage(situation)
        whole = whole_of(progress, coverage, _moment(self._intake.first_ms))
        if verdict is not self.verdict or self.since is None:
            self.verdict, self.since = verdict, now
        return status.ComparisonStatus(
            name=spec.name,
            spec_digest=self._digest,
            order=spec.order_text,
            reference=status.Version(topic=spec.reference.topic, version=spec.reference.version),
            candidate=status.Version(topic=spec.candidate.topic, version=spec.candidate.version),
            verdict=verdict.value,
            reason=reason,
            since=self.since,
            health=status.Health(
                status="degraded" if situation.troubles else "ok",
                reasons=situation.troubles,
                unreachable=situation.unreachable,
                stalled=[NAMES[side] for side in situation.stalled],
                standby=situation.standby,
            ),
            events=_sides(lambda side: comparison.accounts[side].consumed),
            matched=comparison.matched,
            unmatched=_sides(comparison.unmatched),
            max_unmatched=self._intake.max_unmatched,
            accounts=_sides(lambda side: parts.Accounts(**account_of(comparison, side))),
            divergences=divergences,
            closed_divergences=_counts(situation.saved.by_kind),
            counted_divergences=_counts(situation.saved.by_first_kind),
            groups=with_sentences(situation.groups, whole),
            provisional_groups=provisional_with_sentences(
                situation.provisional_groups, situation.groups, whole
            ),
            found=situation.found,
            explained_by_rule=comparison.differences.known.counts,
            checks=results(comparison, spec, situation.saved.checks, situation.waiting_for),
            suspicions=comparison.surveyed.suspicions,
            waiting_for=self._waiting_for(situation),
            difference_awaits=self._difference_awaits(situation),
            hole_count=len(comparison.holes),
            holes=self._holes(),
            undecodable=[self._undecodable(record) for record in self._intake.undecodable],
            coverage=coverage,
            verified_up_to=_sides(self._verified_up_to),
            verified_through=None if verified is None else verified.through,
            verified_age_seconds=None if verified is None else made_at - verified.at,
            progress=progress,
            frontier=_sides(
                lambda side: frontier_of(
                    spec, comparison, side, self._intake.positions[side], situation.ends[side]
                )
            ),
            match_latency=self._intake.match_latency.published(),
            processing=self._intake.processing.published(),
            checkpoint=situation.checkpoint,
            max_staleness_seconds=spec.gate.max_staleness.total_seconds(),
            resets=list(situation.resets.records),
            reset_count=situation.resets.made,
            started_at=situation.started_at,
            updated_at=now,
        )

    def ended(self, situation: Situation) -> status.Ended:
        """The state of the comparison, for the record of the reset that ends it."""
        positions = self._intake.positions
        return status.Ended(
            verdict=self.verdict.value,
            since=self.since,
            started_at=situation.started_at,
            matched=self._comparison.matched,
            divergences=self._divergences().total,
            positions=_sides(lambda side: {str(p): offset for p, offset in sorted(positions[side].items())}),
        )

    def part(self, situation: Situation, made_at: float, secret: bytes) -> status.ShardStatus:
        """The status of one shard, with the additions for merging; `secret` is shared by all shards."""
        glance = self.glance(situation, made_at)
        return status.ShardStatus(
            status=glance,
            waiting_for=situation.behind or self._waiting_for(situation),
            doubts=[] if glance.verdict == "DIVERGED" else self._doubts(situation),
            first_at=_moment(self._intake.first_ms),
            open_since=_moment(self._stands(situation).open_ms),
            constants=self._intake.seen.constants(),
            unpaired=_sides(lambda side: self._unpaired(side, secret)),
            explained=self._explained(situation),
        )

    def _explained(self, situation: Situation) -> list[status.ExplainedCount]:
        counted = self._comparison.differences.known.by_choices
        final = self._stands(situation).explained
        return [
            status.ExplainedCount(rules=list(rules), count=count, final=final.get(rules, 0))
            for rules, count in counted.items()
        ]

    def _explained_for_good(self, before: Standing | None) -> Mapping[Choices, int]:
        """Known differences that are so for good: at least so many, and never less than `before`.

        Another half may still come to some; and behind a hole, or in an open batch, nothing is for good.
        """
        found = self._comparison.differences
        if not found.certainty.doubts_nothing():
            return {} if before is None else before.explained
        waiting = len(found.explained)
        return {rules: max(0, count - waiting) for rules, count in found.known.by_choices.items()}

    def _unpaired(self, side: Side, secret: bytes) -> list[str]:
        """The digests of unpaired events of a side: equal for equal events.

        Copies of a barrier are equal in all shards, and are left out.
        """
        ledger, differences = self._comparison.ledger, self._comparison.differences
        left = (
            half
            for leftovers in (differences.unpaired, differences.independent)
            for half in leftovers.all(side)
        )
        latest = sorted(left, key=lambda half: half.moment)[-UNPAIRED_TOLD:]
        events = chain((half.finding.event for half in latest), islice(ledger.held[side], UNPAIRED_TOLD))
        forms = (self._comparison.rules.form(one) for one in events if one[FORM][ROUTE] is not BARRIER)
        return [blake2b(form, digest_size=8, key=secret).hexdigest() for form in forms]

    def resume(self, verdict: str, since: str | None, hole_times: list[str]) -> None:
        """Resume the verdict of a checkpoint, and the times at which its holes were seen."""
        moments = map(datetime.fromisoformat, hole_times)
        self.holes_seen = [SeenAt.before(moment, self._clock) for moment in moments]
        self.verdict = Verdict(verdict)
        self.since = None if since is None else datetime.fromisoformat(since)

    # -- verdict -------------------------------------------------------------------------------------------

    def _judge(self, situation: Situation, found: parts.DivergenceCounts) -> tuple[Verdict, str]:
        comparison = self._comparison
        doubts = self._doubts(situation)
        waiting = list(filter(None, [self._waiting_for(situation)]))
        missing = [] if waiting else self._coverage(situation).missing
        diverged = comparison.diverged and not (situation.unsaved_divergence or situation.rereading)
        verdict = verdict_of(diverged=diverged, doubts=bool(doubts), lacking=bool(waiting or missing))
        if verdict is Verdict.DIVERGED:
            return verdict, self._diverged_reason(situation, found)
        explained = sum(comparison.differences.known.counts.values())
        compared = compared_text(comparison.matched, explained, self._spec.order_text)
        return verdict, undiverged(verdict, doubts, waiting, missing, compared)

    def _waiting_for(self, situation: Situation) -> str | None:
        return situation.waiting_for or self._intake.waiting or situation.rereading

    def _difference_awaits(self, situation: Situation) -> list[status.Awaited]:
        comparison = self._comparison
        awaited: dict[status.Awaited, bool] = {
            "checkpoint": situation.awaits_save,
            "classification": comparison.in_dispute,
            "batches": comparison.proven.waits_for_batches,
        }
        return [name for name, holds in awaited.items() if holds]

    def _doubts(self, situation: Situation) -> list[str]:
        comparison = self._comparison
        doubts = doubts_of(comparison, self._spec)
        if situation.rereading and comparison.diverged:
            doubts.insert(0, situation.rereading)
        if situation.awaits_save:
            until = "it is saved" if comparison.proven.for_sure else _UNCHANGED
            doubts.insert(0, f"a difference was found; it is announced once {until}")
        if suspicions := comparison.surveyed.suspicions:
            doubts.append(self._overdue(suspicions))
        return doubts

    def _overdue(self, count: int) -> str:
        its, them, partners = (
            ("its", "it", "its partner") if count == 1 else ("their", "them", "their partners")
        )
        after = f"{self._spec.overdue.after.total_seconds():g} s"
        gone_on = f"the other side went on for {after} without {partners}"
        if self._spec.overdue.clock == "input":
            gone_on = f"the other side has consumed {its} input without {partners}"
        elif self._spec.overdue.clock == "event_time":
            gone_on = f"the other side's event times are at least {after} ahead of {them}"
        events = "1 unmatched event is" if count == 1 else f"{count:,} unmatched events are"
        return f"{events} overdue: {gone_on}"

    def _diverged_reason(self, situation: Situation, found: parts.DivergenceCounts) -> str:
        halted = "classified by what came before the halt, behind which nothing is compared"
        why = halted if self._comparison.halted else ""
        final = sum(situation.saved.by_kind.values())
        return differ_text(self._comparison, self._spec, f": {found_text(found.by_kind, final, why)}")

    def _divergences(self) -> parts.DivergenceCounts:
        """The divergences of closed scopes, and the best explanation of the open ones."""
        open_kinds = Counter(divergence.finding.kind for divergence in self._comparison.provisional())
        return _counts(self._comparison.differences.closed_by_kind + open_kinds)

    # -- evidence ------------------------------------------------------------------------------------------

    def _coverage(self, situation: Situation) -> status.Coverage:
        """The confirmed evidence, and the evidence now missing."""
        found = self._stands(situation).evidence
        missing = [*found.missing, *self._comparison.disagreeing_batches, *self._never_final()]
        return found.model_copy(update={"missing": missing})

    def _never_final(self) -> Iterator[str]:
        """Says so if a key has changed before both sides were past it, for longer than `overdue.after`."""
        tables, folding = self._comparison.tables, self._spec.folding
        oldest_ms = None if tables is None else tables.oldest_ms()
        if oldest_ms is None or folding is None or folding.settled_by != "input":
            return
        newest_ms = max(moment for side in Side for moment in self._intake.newest_ms[side].values())
        seconds, after = (newest_ms - oldest_ms) / 1000, self._spec.overdue.after.total_seconds()
        if seconds > after:
            yield (
                f"a key has had no final row for {seconds:,.0f} s: each time a newer row came before both "
                "sides had consumed the same input, or a side is behind"
            )

    def standing(self, verified: Verified | None, before: Standing | None = None) -> Standing:
        """The results now; known differences are never less than those of the standing `before`."""
        moment, open_ms = self._comparison.certainty.moment, self._comparison.surveyed.oldest_ms
        return Standing(moment, verified, self.evidence(), open_ms, self._explained_for_good(before))

    def _stands(self, situation: Situation) -> Standing:
        """The confirmed results; before the first ones those of now, without known differences."""
        if situation.standing is not None:
            return situation.standing
        return self.standing(None)._replace(explained={})

    def evidence(self) -> status.Coverage:
        """The evidence so far against the evidence in the spec."""
        comparison = self._comparison
        first, until = self._verified_time()
        seconds = 0.0 if first is None or until is None else max(0, until - first) / 1000
        kinds = {
            kind: comparison.ledger.matched_by_kind[kind] for kind in self._spec.compared_kinds or ("event",)
        }
        timeline, seen = comparison.ledger.timeline.state(), self._intake.seen.told()
        asked, matched = wanted(self._spec), comparison.matched
        return coverage_of(asked, matched, seconds, kinds, _moment(until), timeline, seen)

    def _verified_time(self) -> tuple[int | None, int | None]:
        """The Kafka times of the first record, and of the oldest unsettled one, or else the newest.

        The time of a record that is ahead of the present has not passed, unless the first record is, too.
        """
        oldest_open = self._comparison.surveyed.oldest_ms
        newest = [moment for side in Side for moment in self._intake.newest_ms[side].values()]
        until = oldest_open if newest and oldest_open is not None else max(newest, default=None)
        first, now_ms = self._intake.first_ms, int(self._clock.now().timestamp() * 1000)
        if first is not None and until is not None and first <= now_ms < until:
            until = now_ms
        return first, until

    # -- parts ---------------------------------------------------------------------------------------------

    def _verified_up_to(self, side: Side) -> dict[str, int]:
        found = self._comparison.verified_up_to(side, self._intake.surveyed_positions[side])
        return {str(partition): offset for partition, offset in found.items()}

    def _progress(self, side: Side, situation: Situation) -> list[status.PartitionProgress]:
        newest, firsts = self._intake.newest_ms[side], situation.firsts[side]
        ends = situation.heard_ends[side]
        settled = self._comparison.settled_up_to(side, self._intake.surveyed_positions[side])
        return [
            status.PartitionProgress(
                partition=partition,
                first=firsts.get(partition),
                begin=self._intake.compared_from[side].get(partition),
                settled=settled.get(partition),
                position=position,
                end=ends.get(partition),
                lag=max(0, ends[partition] - position) if partition in ends else None,
                newest_event_at=_moment(newest.get(partition)),
            )
            for partition, position in sorted(self._intake.positions[side].items())
        ]

    def _holes(self) -> list[status.Hole]:
        found = self._comparison.holes
        self.holes_seen += [SeenAt.of(self._clock)] * (len(found) - len(self.holes_seen))
        shown = list(zip(found, self.holes_seen, strict=False))[:HOLES_SHOWN]
        return [status.Hole(**hole_of(hole, self._spec), seen_at=seen.when) for hole, seen in shown]

    def _undecodable(self, record: Undecodable) -> status.Undecodable:
        topic = self._spec.version_of(record.side).topic
        position = status.Position(topic=topic, partition=record.partition, offset=record.offset)
        return status.Undecodable(side=NAMES[record.side], position=position, reason=record.reason)


def _sides(value_of: Callable[[Side], T]) -> parts.Sides[T]:
    return parts.Sides(reference=value_of(Side.LEFT), candidate=value_of(Side.RIGHT))


def _counts(by_kind: Mapping[Kind, int]) -> parts.DivergenceCounts:
    counts = {kind: by_kind.get(kind, 0) for kind in KINDS}
    return parts.DivergenceCounts(total=sum(counts.values()), by_kind=counts)


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else moment_of(milliseconds)
