"""One comparison: matching, differences, overdue events and accounts, put together.

How to drive it: `feed` runs of events of either side as they come; after each batch `review`, which explains
open scopes; once in a while `survey`, which looks at everything that waits. `end` a side when nothing more
will come. Then read `verdict`, `accounts` and `take_closed` at any time. `snapshot` and `restore` carry all
of it over a crash.

Every consumed event is in exactly one account:
consumed = matched + ignored + undecodable + divergent + unmatched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from twinstream.core.events import Canonical, Event, Form, Side, events_of
from twinstream.core.lanes import Lanes
from twinstream.core.overdue import ArrivalClock
from twinstream.core.recent import RecentMatches
from twinstream.core.scopes import Explanation, Finding, Identity, Kind, Scope, explain_partnerless

KINDS: tuple[Kind, ...] = ("missing", "extra", "changed", "reordered", "duplicate")
PARTITION_SAMPLE = 16
"""One event in so many is checked for the partition of its lane: a stray key shows soon, at no cost."""
HOMES_LIMIT = 100_000
HOLES_LIMIT = 100


@dataclass(frozen=True)
class Rules:
    """What the comparison file fixes for matching.

    `canonical` maps contents to canonical form, `identity` a record to the thing it is about. `bag` tells
    that lanes are classes of equal events, so that no order between them can be spread over partitions.
    Limits are in events but for `unmatched_bytes`.
    """

    canonical: Canonical
    identity: Identity | None = None
    bag: bool = False
    halt: bool = False
    proves: bool = False
    overdue_after_ms: int = 60_000
    unmatched_limit: int = 5_000_000
    unmatched_bytes: int = 2 << 30
    scope_limit: int = 10_000
    recent_matches: int = 100_000


class Run(NamedTuple):
    """Columns of consecutive records of one partition of one side, all decoded."""

    forms: Sequence[Form]
    partition: int
    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    read_at: float


class Hole(NamedTuple):
    """A stretch of input that was not checked: why, and where if it is known."""

    reason: str
    side: Side | None = None
    partition: int | None = None
    offset: int | None = None


class Divergence(NamedTuple):
    """A finding with the lane it was found in. A tainted one lies behind a hole and decides nothing."""

    finding: Finding
    lane: Hashable
    tainted: bool


@dataclass
class Account:
    """The counts of one side; `unmatched` is what is left of `consumed`."""

    consumed: int = 0
    ignored: int = 0
    undecodable: int = 0
    divergent: int = 0

    def unmatched(self, matched: int) -> int:
        """The events that are not settled, given the number of pairs."""
        return self.consumed - matched - self.ignored - self.undecodable - self.divergent


@dataclass
class Survey:
    """What one look at everything unmatched found.

    `first_open` is the smallest unmatched offset by side and partition, `oldest_ms` the smallest timestamp of
    an unmatched event, `suspicions` the number of overdue events that are not proven to have no partner,
    `held_bytes` the size of the records that wait, by side.
    """

    first_open: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    oldest_ms: int | None = None
    suspicions: int = 0
    held_bytes: list[int] = field(default_factory=lambda: [0, 0])


class Comparison:
    """Decides whether two streams are equivalent, and goes on after a difference.

    >>> forms = [Form("lane", content, "event", content) for content in (b"1", b"2")]
    >>> comparison = Comparison(Rules(canonical=bytes))
    >>> _ = comparison.feed(Side.LEFT, Run(forms, 0, [0, 1], [0, 0], 0.0))
    >>> _ = comparison.feed(Side.RIGHT, Run(forms[1:], 0, [0], [0], 0.0))
    >>> comparison.diverged
    True
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.lanes = Lanes(rules.canonical, self._set_aside)
        self.scopes: dict[Hashable, Scope] = {}
        self.recent = RecentMatches(rules.recent_matches, rules.canonical)
        self.clock = ArrivalClock(rules.overdue_after_ms)
        self.accounts = (Account(), Account())
        self.matched = 0
        self.matched_by_kind: Counter[str] = Counter()
        self.ended = [False, False]
        self.diverged = False
        self.halted = False
        self.holes: list[Hole] = []
        self.closed_by_kind: Counter[Kind] = Counter()
        self.first_unverifiable: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.newest_matched_ms: list[int | None] = [None, None]
        self.surveyed = Survey()
        self.leftover_at_end = [0, 0]
        self._arriving: Iterator[Event] = iter(())
        self._closed: list[Divergence] = []
        self._homes: tuple[dict[Hashable, int], dict[Hashable, int]] = ({}, {})
        self.overflowing = False

    # -- feeding ------------------------------------------------------------------------------------------

    def feed(self, side: Side, run: Run) -> list[Event]:
        """Take a run of one side; return the events of the other side that were paired with some of it.

        Complexity: O(1) an event.
        """
        account = self.accounts[side]
        account.consumed += len(run.forms)
        if self.halted:
            account.ignored += len(run.forms)
            return []
        if self.overflowing:
            self._give_up(side, run.partition, run.offsets[0])
            return []
        if not self.rules.bag:
            self._watch_partition(side, run)
        self.clock.saw(side, run.timestamps_ms)
        self._arriving = events_of(*run)
        partners = self.lanes.feed(side, self._arriving)
        if partners:
            self._count_matched(side, partners, min(run.timestamps_ms))
        if self.ended[side.other] and self.unmatched(side):
            self._prove()
        if self.unmatched(Side.LEFT) + self.unmatched(Side.RIGHT) > self.rules.unmatched_limit:
            self._overflow(f"limits.unmatched_events ({self.rules.unmatched_limit})")
        return partners

    def _overflow(self, limit: str) -> None:
        """Memory is full: from here on events are only counted."""
        self.overflowing = True
        self.hole(Hole(f"{limit} was reached: what came after was not compared"))

    def ignore(self, side: Side, count: int) -> None:
        """Count events that a declared rule leaves out."""
        self.accounts[side].consumed += count
        self.accounts[side].ignored += count

    def undecodable(self, side: Side) -> None:
        """Count a record that is no event of this comparison."""
        self.accounts[side].consumed += 1
        self.accounts[side].undecodable += 1

    def hole(self, hole: Hole) -> None:
        """Note that something was not checked: from here on, nothing found is held against a side.

        The first `HOLES_LIMIT` are kept: one decides, and more help nobody.
        """
        if len(self.holes) < HOLES_LIMIT:
            self.holes.append(hole)

    def _watch_partition(self, side: Side, run: Run) -> None:
        homes = self._homes[side]
        if len(homes) > HOMES_LIMIT:
            homes.clear()
        for index in range(0, len(run.forms), PARTITION_SAMPLE):
            lane = run.forms[index][0]
            home = homes.setdefault(lane, run.partition)
            if home != run.partition:
                homes[lane] = run.partition
                self.hole(
                    Hole(
                        f"events whose order counts stand in two partitions ({home} and {run.partition}), "
                        "where Kafka keeps no order between them",
                        side,
                        run.partition,
                        run.offsets[index],
                    )
                )

    def _count_matched(self, side: Side, partners: list[Event], newest_ms: int) -> None:
        self.matched += len(partners)
        kinds = set(map(_KIND, map(_FORM, partners)))
        if len(kinds) == 1:
            self.matched_by_kind[kinds.pop()] += len(partners)
        else:
            self.matched_by_kind.update(map(_KIND, map(_FORM, partners)))
        self.recent.note(map(_CONTENT, map(_FORM, partners)))
        self._advance(side, newest_ms)
        self._advance(side.other, max(map(_TIMESTAMP, partners)))

    def _advance(self, side: Side, moment_ms: int) -> None:
        newest = self.newest_matched_ms[side]
        if newest is None or moment_ms > newest:
            self.newest_matched_ms[side] = moment_ms

    def _prove(self) -> None:
        """A difference is certain: it counts unless a hole lies before it."""
        if not self.holes:
            self.diverged = True
        if self.rules.halt:
            self.halted = True

    def _set_aside(self, side: Side, event: Event, lane: Hashable) -> None:
        scope = Scope(lane, self.rules.canonical, tainted=bool(self.holes))
        self.adopt(scope)
        scope.add(side, event)
        self._prove()
        if self.halted:
            self.accounts[side].ignored += sum(1 for _ in self._arriving)

    def adopt(self, scope: Scope) -> None:
        """Set a lane aside: what it holds and what will come to it goes to `scope`."""
        self.lanes.set_aside(scope)
        self.scopes[scope.lane] = scope

    # -- after a difference -------------------------------------------------------------------------------

    def review(self) -> None:
        """Explain the open scopes that have grown, and close those whose sides have met again.

        Complexity: O(1) an open scope, plus an alignment for each that has grown.
        """
        for scope in tuple(self.scopes.values()):
            if scope.lost or not scope.due():
                continue
            explanation = self._explain(scope)
            if explanation.met:
                self._close(scope, explanation)
            elif len(scope) > self.rules.scope_limit:
                self._lose(scope)

    def _explain(self, scope: Scope) -> Explanation:
        return scope.explain(ended=all(self.ended), identity=self.rules.identity, recent=self.recent.has)

    def _close(self, scope: Scope, explanation: Explanation) -> None:
        tails = scope.tails(explanation)
        del self.scopes[scope.lane]
        self.lanes.reopen(scope)
        for finding in explanation.findings:
            self._settle(finding, scope.lane, tainted=scope.tainted)
        if explanation.matched:
            newest_ms = max(left[3] for left, _ in explanation.matched)
            self._count_matched(Side.LEFT, [right for _, right in explanation.matched], newest_ms)
        for side in Side:
            if partners := self.lanes.feed(side, tails[side]):
                self._count_matched(side, partners, min(event[3] for event in tails[side]))

    def _settle(self, finding: Finding, lane: Hashable, *, tainted: bool) -> None:
        self.closed_by_kind[finding.kind] += 1
        self._closed.append(Divergence(finding, lane, tainted))
        for side, event in ((Side.LEFT, finding.left), (Side.RIGHT, finding.right)):
            if event is not None:
                self.accounts[side].divergent += 1
                self._give_up(side, event[1], event[2])

    def _give_up(self, side: Side, partition: int, offset: int) -> None:
        """Nothing from here on will ever be verified in a partition."""
        first = self.first_unverifiable[side]
        first[partition] = min(first.get(partition, offset), offset)

    def _lose(self, scope: Scope) -> None:
        for side in Side:
            for event in scope.pieces[side]:
                self._give_up(side, event[1], event[2])
        self.hole(Hole(f"a difference spread over more than limits.scope_events ({self.rules.scope_limit})"))
        scope.lose()

    def end(self, side: Side) -> None:
        """Nothing more will come from a side. With both at their end, everything left is a difference."""
        self.ended[side] = True
        if self.halted or self.overflowing:
            return
        if self.unmatched(side.other):
            self._prove()
        if all(self.ended):
            self._settle_leftovers()

    def _settle_leftovers(self) -> None:
        if self.unmatched(Side.LEFT):
            self._prove()
        for scope in tuple(self.scopes.values()):
            if not scope.lost:
                explanation = self._explain(scope)
                self._count_leftover(explanation.findings)
                self._close(scope, explanation)
        left, right = ([event for event, _ in self.lanes.unmatched(side)] for side in Side)
        findings = explain_partnerless(left, right, self.rules.identity, self.recent.has)
        self._count_leftover(findings)
        self.lanes.remove(Side.LEFT, left)
        self.lanes.remove(Side.RIGHT, right)
        for finding in findings:
            self._settle(finding, _lane(finding), tainted=bool(self.holes))

    def _count_leftover(self, findings: list[Finding]) -> None:
        for finding in findings:
            if finding.kind != "reordered":
                self.leftover_at_end[Side.LEFT] += finding.left is not None
                self.leftover_at_end[Side.RIGHT] += finding.right is not None

    # -- when no partner comes ----------------------------------------------------------------------------

    def survey(self, at_end: tuple[bool, bool]) -> Survey:
        """Look at everything that waits: what is overdue, and how far each partition is settled.

        `at_end` tells by side whether it is read to its end; nothing is overdue otherwise. Where the clock
        proves, overdue events are settled as differences.

        Complexity: O(n) in the unmatched events of both sides.
        """
        proven: tuple[list[Event], list[Event]] = ([], [])
        self.surveyed = Survey()
        for side in Side:
            self._survey_side(side, all(at_end) and not self.halted, proven[side])
        if any(proven):
            self._settle_proven(proven)
            return self.survey(at_end)
        for scope in self.scopes.values():
            for side in Side:
                for event in scope.pieces[side]:
                    self._note_open(side, event)
        if sum(self.surveyed.held_bytes) > self.rules.unmatched_bytes and not self.overflowing:
            self._overflow(f"limits.unmatched_bytes ({self.rules.unmatched_bytes})")
        return self.surveyed

    def _survey_side(self, side: Side, judge: bool, proven: list[Event]) -> None:
        survey, stalls = self.surveyed, self.clock.stalls(side)
        limit = self.rules.overdue_after_ms
        newest = self.newest_matched_ms[side]
        for event, since_ms in self.lanes.unmatched(side):
            self._note_open(side, event)
            if not judge:
                continue
            if stalls.age_ms(event[3]) >= limit:
                certain = self.rules.proves and newest is not None and newest >= event[3] + limit
                if certain:
                    proven.append(event)
                else:
                    survey.suspicions += 1
            elif self.rules.bag and since_ms < event[3] and stalls.age_ms(since_ms) >= limit:
                survey.suspicions += 1

    def _note_open(self, side: Side, event: Event) -> None:
        survey = self.surveyed
        first = survey.first_open[side]
        if event[2] < first.get(event[1], event[2] + 1):
            first[event[1]] = event[2]
        if survey.oldest_ms is None or event[3] < survey.oldest_ms:
            survey.oldest_ms = event[3]
        survey.held_bytes[side] += len(event[0][3])

    def _settle_proven(self, proven: tuple[list[Event], list[Event]]) -> None:
        """Settle events without a partner, each with an unmatched one of its identity on the other side."""
        identity = self.rules.identity
        gone = proven if identity is None else self._with_partners_in_identity(proven, identity)
        tainted = bool(self.holes)
        self._prove()
        for side in Side:
            self.lanes.remove(side, gone[side])
        for finding in explain_partnerless(*gone, identity, self.recent.has):
            self._settle(finding, _lane(finding), tainted=tainted)

    def _with_partners_in_identity(
        self, proven: tuple[list[Event], list[Event]], identity: Identity
    ) -> tuple[list[Event], list[Event]]:
        gone = (list(proven[0]), list(proven[1]))
        for side in Side:
            wanted = Counter(identity(event[0][3]) for event in proven[side.other])
            wanted.subtract(Counter(identity(event[0][3]) for event in proven[side]))
            taken = {id(event) for event in proven[side]}
            for event in self.lanes.heads(side) if +wanted else ():
                name = identity(event[0][3])
                if wanted[name] > 0 and id(event) not in taken:
                    wanted[name] -= 1
                    gone[side].append(event)
        return gone

    # -- reading ------------------------------------------------------------------------------------------

    def unmatched(self, side: Side) -> int:
        """How many events of a side are not settled."""
        return self.accounts[side].unmatched(self.matched)

    def take_closed(self) -> list[Divergence]:
        """The divergences of closed scopes since the last call."""
        closed, self._closed = self._closed, []
        return closed

    def provisional(self) -> list[Divergence]:
        """The best explanations of the scopes that are still open, and what faces a side that has ended."""
        open_findings = [
            Divergence(finding, scope.lane, scope.tainted)
            for scope in self.scopes.values()
            for finding in scope.findings
        ]
        return open_findings + self._facing_an_end()

    def _facing_an_end(self) -> list[Divergence]:
        if all(self.ended) or not any(self.ended):
            return []
        waiting = Side.LEFT if self.ended[Side.RIGHT] else Side.RIGHT
        events = [event for event, _ in self.lanes.unmatched(waiting)]
        sides = (events, []) if waiting is Side.LEFT else ([], events)
        findings = explain_partnerless(*sides, None, self.recent.has)
        return [Divergence(finding, _lane(finding), bool(self.holes)) for finding in findings]

    def verified_up_to(self, side: Side, position: dict[int, int]) -> dict[int, int]:
        """By partition, the offset below which every event is settled and none is divergent.

        `position` is the next offset to read. It holds as of the last survey.
        """
        return {
            partition: min(
                following,
                self.surveyed.first_open[side].get(partition, following),
                self.first_unverifiable[side].get(partition, following),
            )
            for partition, following in position.items()
        }

    def waiting_events(self, side: Side) -> list[Event]:
        """Every unmatched event that is held, in matching or set aside."""
        aside = (scope.pieces[side] for scope in self.scopes.values())
        return [*(event for event, _ in self.lanes.unmatched(side)), *chain.from_iterable(aside)]


def _lane(finding: Finding) -> Hashable:
    event = finding.left or finding.right
    assert event is not None, "a finding has an event on at least one side"
    return event[0][0]


_FORM = itemgetter(0)
_CONTENT = itemgetter(1)
_KIND = itemgetter(2)
_TIMESTAMP = itemgetter(3)
