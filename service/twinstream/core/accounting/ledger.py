"""The ledger: what was settled, and how.

Every event that leaves matching is booked here once: as one of a pair, or as part of a difference, which is a
known one, the other half of an earlier one, or new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from twinstream.core.accounting.halves import Divergence, Half, tainted, weight
from twinstream.core.accounting.match_timeline import MatchTimeline
from twinstream.core.accounting.recent_matches import RecentMatches
from twinstream.core.accounting.unmatched import UnmatchedEvents
from twinstream.core.accounting.unpaired import Lookups, Reach, Unpaired
from twinstream.core.accounts import Account, Hole
from twinstream.core.arrivals.repeats import Repeats
from twinstream.core.arrivals.retries import NotAgreed, Retries
from twinstream.core.diagnosis.findings import Finding, Kind
from twinstream.core.diagnosis.known_differences import KnownDifferences
from twinstream.core.events import Event, Exact, Side
from twinstream.core.matching.index import Pairs
from twinstream.core.order import Epochs, ordered_class
from twinstream.core.proofs import NOTHING, Needs, Proof, Starts, UncheckedFrom
from twinstream.core.rules import Rules

HOLES_LIMIT = 100
UNCLEAR_LIMIT = 50
"""Holes that taint nothing leave room for those that do."""
DOUBTED_LIMIT = 10_000
"""So many differences are shown as tainted where they turn out to decide nothing."""
EXPLAINED_LIMIT, EXPLAINED_BYTES = 100_000, 256 << 20
"""Explained leftovers of a side that are remembered for another half: ten times as far as one may come."""
NEVER = 1 << 62
"""The moment of what only an end decided, later than any other."""
EVERYTHING = NEVER
"""The moment up to which all is vouched for where nobody doubts what is fed."""


class Ledger:
    """The accounts of both sides, the pairs and the differences.

    `stretches` are the pairs by time. `strays` are leftovers that may have changed places, `lone` those that
    depend on nothing and may be late. `disputed` are differences that may be known ones when their name is
    final, and are not settled before; `explained` are leftovers that are known ones, unless another half
    comes. `read` is by side and partition the last offset that came. `given_up` counts by side what is not
    kept, and unmatched for good. `found_by_kind` counts differences as they were found and never falls,
    `closed_by_kind` as they are known by now. `repeats` tells copies where a verdict hangs on it; so many of
    the holes are `unclear`: single events of which it is not known whether they are copies, which taint
    nothing else. `moment` is the driver's count of what was fed, `diverged_at`
    the earliest of a difference that no hole lies before. `halted` is whether there was a difference, and by
    the rules nothing after it counts. `beginning` is what may be gone behind the start: while it is given, a
    difference is this hole.

    `unchecked` is where that begins which was not checked (see `proofs`). A difference that was found may
    decide nothing after all, and is then tainted: one that is held for open batches (`settle_batches`), and
    one in what nobody has vouched for (`vouch`, `disown`). Of those that may be, the ledger keeps the
    numbers.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.accounts = (Account(), Account())
        self.held = UnmatchedEvents()
        self.holes: list[Hole] = []
        self.unclear = 0
        self.unchecked = UncheckedFrom()
        self.moment = 0
        self.halted = False
        self.matched = 0
        self.matched_by_kind: Counter[str] = Counter()
        self.stretches = MatchTimeline()
        self.newest_matched_ms: list[int | None] = [None, None]
        self.recent = RecentMatches(rules.recent_matches, rules.exactly)
        self.repeats = _repeats_of(rules)
        self.known = KnownDifferences(rules.known)
        self.strays: Unpaired[Half] = Unpaired(weight)
        self.lone: Unpaired[Half] = Unpaired(weight)
        self.disputed: Unpaired[Half] = Unpaired(weight, rules.unmatched_limit, rules.unmatched_bytes)
        self.explained: Unpaired[Half] = Unpaired(weight, EXPLAINED_LIMIT, EXPLAINED_BYTES)
        self.closed_by_kind: Counter[Kind] = Counter()
        self.found_by_kind: Counter[Kind] = Counter()
        self.given_up = [0, 0]
        self.read: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.first_unverifiable: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.diverged_at: int | None = None
        horizon = rules.replay_horizon
        self.retries = None if horizon is None else Retries(horizon, copied=rules.copied)
        self.vouched_at = EVERYTHING
        self.beginning: Hole | None = None
        self._closed: list[Divergence] = []
        self._not_vouched_for: list[tuple[int, int]] = []
        self._tainted: list[int] = []

    def unmatched(self, side: Side) -> int:
        """How many events of a side are not settled."""
        return self.accounts[side].unmatched(self.matched)

    def waits(self, side: Side) -> int:
        """How many of them are kept, and wait for a partner: all but those that were given up."""
        return self.accounts[side].unmatched(self.matched) - self.given_up[side]

    @property
    def waiting(self) -> int:
        """How many events of both sides wait."""
        left, right = self.accounts
        return left.unmatched(self.matched) + right.unmatched(self.matched) - sum(self.given_up)

    def halt_by_rules(self) -> None:
        """There is a difference: by the rules nothing may count after it."""
        self.halted = self.halted or self._rules.halt

    @property
    def tainted(self) -> bool:
        """Whether something was not checked, so that what hangs on everything decides nothing."""
        return len(self.holes) > self.unclear

    def doubts_nothing(self) -> bool:
        """Whether all was checked so far, and nothing of it may be written again."""
        return not self.tainted and (self.retries is None or not self.retries.needs(None))

    def is_checked(self, proof: Proof | None) -> bool:
        """Whether nothing that proves a difference lies behind a hole; None stands for everything."""
        return not self.tainted or (proof is not None and self.unchecked.spares(proof))

    def hole(self, hole: Hole, starts: Starts | None = None) -> None:
        """Note that something was not checked. The first are kept: one decides, and more help nobody.

        It is what stands at or behind the `starts` in its side; without them it may be anything. What is in
        dispute is not proven yet, and may turn out to be what was not checked.
        """
        self.unchecked.note(hole.side, {} if self._has_copies() else starts or {})
        if self.disputed:
            self.disputed.amend(tainted)
        if len(self.holes) < HOLES_LIMIT:
            self.holes.append(hole)

    def _is_unclear(self, finding: Finding) -> bool:
        """Whether a surplus event may be a copy that a rule covers, which is then noted as a hole of its own.

        All else was checked, so nothing else is tainted.
        """
        if finding.kind != "extra" or self.repeats is None:
            return False
        copy = finding._replace(kind="duplicate")
        if not (self.known.covers([copy], self.matched) or self.known.over_share(copy, self.matched)):
            return False
        event = finding.event
        reason = self.repeats.doubt(event)
        if reason is not None and self.unclear < UNCLEAR_LIMIT:
            self.unclear += 1
            self.holes.append(Hole(reason, Side.RIGHT, event[1], event[2]))
        return reason is not None

    # -- copies --------------------------------------------------------------------------------------------

    def is_copy(self, event: Event, paired: Sequence[Event] = ()) -> bool:
        """Whether a surplus event is a copy: of one before it, or of one of these, which equal it exactly.

        Where no rule asks for it, that is no more than a name, told by what matched lately.
        """
        known = self.recent if self.repeats is None else self.repeats
        return known.is_copy(event, paired)

    def note_original(self, event: Event) -> None:
        """An event matched elsewhere, of which another is a copy."""
        self.recent.note([event[0][1]])
        if self.repeats is not None:
            self.repeats.note(event[1], [event])

    def trim(self) -> None:
        """Forget what copies are told by no more. Call it when all that came and left is taken in."""
        self.recent.trim()
        if self.repeats is not None:
            self.repeats.trim(self.held.of(Side.RIGHT).holds)

    # -- pairs ---------------------------------------------------------------------------------------------

    def came(self, side: Side, events: Sequence[Event], pairs: Pairs) -> None:
        """Book events of a side that were fed, and the pairs that were found with them.

        Complexity: about 0.1 µs a pair.
        """
        paired_at_once = len(pairs.events) == len(events) and pairs.events == events
        if not paired_at_once:
            self.held.came(side, events)
            self.held.left(pairs.events)
        if pairs.partners:
            self.held.left(pairs.partners)
            came_ms, waited_ms = self._count(pairs, side)
            self.advance(side, max(came_ms))
            self.advance(side.other, max(waited_ms))

    def pair(self, pairs: Pairs, side: Side = Side.RIGHT) -> None:
        """Book pairs of events that came before, with partners of the other side. Complexity: as `came`."""
        if pairs.partners:
            self.held.left(pairs.partners)
            self.held.left(pairs.events)
            self._count(pairs, side)

    def _count(self, pairs: Pairs, side: Side) -> tuple[list[int], list[int]]:
        """Count pairs; the times of the events of a side that came, and of those that had waited for them.

        What is remembered are the events of the candidate: those of the reference may differ in spelling, and
        within a tolerance.
        """
        forms = list(map(_FORM, pairs.events if side is Side.RIGHT else pairs.partners))
        self.matched += len(forms)
        kinds = set(map(_KIND, forms))
        counted = {kinds.pop(): len(forms)} if len(kinds) == 1 else Counter(map(_KIND, forms))
        self.matched_by_kind.update(counted)
        came_ms, waited_ms = list(map(_TIME, pairs.events)), list(map(_TIME, pairs.partners))
        first_ms, second_ms = min(came_ms), min(waited_ms)
        self.stretches.note(min(first_ms, second_ms), counted)
        self.recent.note(map(_CONTENT, forms))
        return came_ms, waited_ms

    def advance(self, side: Side, moment_ms: int) -> None:
        """Note that an event of a side that arrived then has matched."""
        newest = self.newest_matched_ms[side]
        if newest is None or moment_ms > newest:
            self.newest_matched_ms[side] = moment_ms

    # -- differences ---------------------------------------------------------------------------------------

    def settle(
        self,
        finding: Finding,
        moment: int,
        *,
        tainted: bool,
        needs: Needs | None = None,
        reach: Reach | None = None,
    ) -> None:
        """Take in a difference that was proven at a moment: as one, or as the other half of an earlier one.

        It counts when the batches agree that it `needs`: all open ones where that is not known. Its other
        half, if there is one, comes within `reach`. What is no known difference, and may be one under the
        name that it has then, is not booked before that.
        """
        for side, event in finding.events:
            if event is not None:
                self.give_up(side, event)
                self.held.left((event,))
        half = None if finding.left and finding.right else self._take_half(finding)
        if half is not None:
            tainted = tainted or half.divergence.tainted
            finding, moment = self._joined(half, finding), min(moment, half.moment)
        if reach is None or not self._settle_known(finding, moment, tainted=tainted, reach=reach):
            self._book(finding, moment, tainted=tainted, needs=needs, reach=reach)

    def _settle_known(self, finding: Finding, moment: int, *, tainted: bool, reach: Reach) -> bool:
        """Settle what is a known difference, or may be one yet; whether it was either."""
        one_sided = not (finding.left and finding.right)
        half = Half(Divergence(finding, tainted, finding), moment, reach)
        if self.known.explain(finding, self.matched) is not None:
            self._count_explained(finding, 1)
            if one_sided and self._hangs_on_its_name(finding):
                self.explained.note(finding.side, self.keys_of(finding), half)
        elif (one_sided and self._may_be_known(finding)) or self.known.over_share(finding, self.matched):
            self.disputed.note(finding.side, self.keys_of(finding), half)
        else:
            return False
        return True

    def _take_half(self, finding: Finding) -> Half | None:
        """The other half of a leftover, if it is not booked; what it was for so long it is no more."""
        side, keys = finding.side.other, self.keys_of(finding)

        def fits(half: Half) -> bool:
            return half.fits(finding)

        half = self.disputed.claim_equal(side, keys, fits)
        if half is None and (half := self.explained.claim_equal(side, keys, fits)) is not None:
            self.known.take_back(half.finding)
            self._count_explained(half.finding, -1)
        return half

    def _count_explained(self, finding: Finding, count: int) -> None:
        for side, event in finding.events:
            self.accounts[side].explained += 0 if event is None else count

    def settle_disputed(self, done: Callable[[Half], bool] = lambda _: True) -> None:
        """Book the differences in dispute whose name is final, and forget what is explained for good."""
        for side in Side:
            for divergence, moment, reach in self.disputed.take(side, done):
                self._book(divergence.finding, moment, tainted=divergence.tainted, reach=reach)
            self.explained.take(side, done)

    def may_be_known(self) -> bool:
        """Whether a difference that is found now may be a known one.

        That may be so though no rule covers any more: as the other half of one that a rule covers already.
        """
        return self.known.open(self.matched) or len(self.explained) > 0

    def _hangs_on_its_name(self, finding: Finding) -> bool:
        """Whether it is no matter of one rule alone if a leftover that is explained has another half."""
        other: tuple[Kind, ...] = ("extra", "duplicate") if finding.kind == "missing" else ("missing",)
        return any(self.known.speaks_of(finding._replace(kind=kind)) for kind in ("reordered", *other))

    def _may_be_known(self, finding: Finding) -> bool:
        """Whether a known difference may cover a leftover if it has only changed places."""
        return self.known.may_cover(finding._replace(kind="reordered"), self.matched)

    def _book(
        self,
        finding: Finding,
        moment: int,
        *,
        tainted: bool,
        needs: Needs | None = None,
        reach: Reach | None = None,
    ) -> None:
        """Book a difference under its name: as a known one, as part of an earlier, or as new."""
        events = [(side, event) for side, event in finding.events if event is not None]
        if self.known.explain(finding, self.matched) is not None:
            self._count_explained(finding, 1)
            return
        for side, _ in events:
            self.accounts[side].divergent += 1
        is_new = len(events) == 2 or not self._complete(finding, reach)
        tainted = tainted or (is_new and self._is_unclear(finding))
        awaited = None if tainted else self.diverge(moment, needs)
        if is_new:
            self._add(finding, moment, awaited, reach)

    def diverge(self, moment: int, needs: Needs | None = None) -> Needs | None:
        """A difference was proven at a moment: the batches that it is held for, none where it counts.

        None where it decides nothing, since it may be what is gone.
        """
        if self.beginning is not None:
            if self.beginning not in self.holes:
                self.hole(self.beginning)
            return None
        awaited = NOTHING if self.retries is None else self.retries.hold(moment, needs)
        if not awaited:
            self.stand(moment)
        return awaited

    def needs(self, proof: Proof | None) -> Needs:
        """The open batches that a difference has to wait for, of which these events are the proof."""
        return NOTHING if self.retries is None else self.retries.needs(proof)

    def settle_batches(self, side: Side) -> list[NotAgreed]:
        """Take in what closed batches of a side decide; the holes among it, for the caller to note."""
        assert self.retries is not None, "batches are told"
        counted, dropped, holes = self.retries.settle(side)
        if counted is not None:
            self.stand(counted.moment)
        if dropped:
            self._taint(dropped)
        return holes

    def stand(self, moment: int) -> None:
        """A difference that was proven at a moment counts."""
        self.diverged_at = moment if self.diverged_at is None else min(self.diverged_at, moment)

    def _add(self, finding: Finding, moment: int, awaited: Needs | None, reach: Reach | None) -> None:
        """Book a new difference; one that awaits nothing that may be told decides nothing."""
        tainted = awaited is None
        divergence = Divergence(finding, tainted, finding, self.found_by_kind.total())
        self.closed_by_kind[finding.kind] += 1
        self.found_by_kind[finding.kind] += 1
        self.halt_by_rules()
        self._closed.append(divergence)
        if awaited and self.retries is not None:
            self.retries.note(awaited, divergence.number)
        if moment > self.vouched_at and not tainted and len(self._not_vouched_for) < DOUBTED_LIMIT:
            self._not_vouched_for.append((moment, divergence.number))
        alone = finding.left is None or finding.right is None
        if alone:
            strays = self.strays if self._depends(finding.event) else self.lone
            strays.note(finding.side, self.keys_of(finding), Half(divergence, moment, reach))

    # -- what may decide nothing after all -----------------------------------------------------------------

    def vouch(self, moment: int) -> None:
        """What was fed up to a moment is what was to be compared."""
        self.vouched_at = moment
        self._not_vouched_for = [found for found in self._not_vouched_for if found[0] > moment]

    def disown(self) -> None:
        """What nobody has vouched for was not to be compared: what was found in it decides nothing."""
        found, self._not_vouched_for = self._not_vouched_for, []
        self._taint([number for _, number in found])
        if self.diverged_at is not None and self.diverged_at > self.vouched_at:
            self.diverged_at = None
        if self.retries is not None:
            self.retries.drop_held(self.vouched_at)

    def _taint(self, numbers: Sequence[int]) -> None:
        self._tainted += numbers
        gone = set(numbers)

        def known(divergence: Divergence) -> Divergence:
            return divergence._replace(tainted=True) if divergence.number in gone else divergence

        self._closed = list(map(known, self._closed))
        for strays in (self.strays, self.lone):
            strays.amend(lambda half: half._replace(divergence=known(half.divergence)))

    @property
    def doubted(self) -> set[int]:
        """The numbers of the differences that may be tainted yet."""
        batches = () if self.retries is None else self.retries.held.values()
        return {
            *(number for _, number in self._not_vouched_for),
            *(number for held in batches for number in held.numbers),
        }

    def take_tainted(self) -> list[int]:
        """The numbers of differences that were found to decide nothing since the last call."""
        tainted, self._tainted = self._tainted, []
        return tainted

    def doubts(self) -> dict[str, Any]:
        """What `doubted` and `tainted` come from, for a snapshot."""
        return {
            "vouched_at": self.vouched_at,
            "not_vouched_for": [list(found) for found in self._not_vouched_for],
            "beginning": None if self.beginning is None else list(self.beginning),
            "unchecked": [self.unchecked.all_over, *(list(known.items()) for known in self.unchecked.starts)],
        }

    def restore_doubts(self, state: dict[str, Any]) -> None:
        """Take over `doubts`; there are none where it is empty."""
        self.vouched_at = state.get("vouched_at", EVERYTHING)
        self._not_vouched_for = [(moment, number) for moment, number in state.get("not_vouched_for", ())]
        beginning = state.get("beginning")
        self.beginning = None if beginning is None else Hole.of(beginning)
        self.unchecked.all_over, *starts = state.get("unchecked", (self.tainted, (), ()))
        for known, pairs in zip(self.unchecked.starts, starts, strict=True):
            known.update(pairs)

    # -- one event that is found twice ---------------------------------------------------------------------

    def _has_copies(self) -> bool:
        """Whether a partition ends an epoch of the others, so that nothing in it is its own matter."""
        order = self._rules.order
        return isinstance(order, Epochs) and order.copies

    def _depends(self, event: Event) -> bool:
        """Whether an event depends on anything; on barriers all do, also on those with copies."""
        order = self._rules.order
        return isinstance(order, Epochs) or ordered_class(order, event[0][0]) is not None

    def _complete(self, finding: Finding, reach: Reach | None) -> bool:
        """Whether a leftover of one side is the other half of an event that changed places, or came late."""
        half = self._claim_stray(finding, reach)
        if half is None:
            return self._came_late(finding)
        joined = self._joined(half, finding)
        self.closed_by_kind[half.finding.kind] -= 1
        self.closed_by_kind[joined.kind] += 1
        self._closed.append(half.divergence._replace(finding=joined))
        return True

    def _claim_stray(self, finding: Finding, reach: Reach | None) -> Half | None:
        """The other half of a leftover: an equal event of the other side, else one of its identity.

        What a clock has proven goes with what waited of its identity then, and with nothing later.
        """
        side, keys = finding.side.other, self.keys_of(finding)

        def named(half: Half) -> bool:
            return reach is not None and half.reach is not None and half.fits(finding)

        half = self.strays.claim_equal(side, keys, lambda half: half.fits(finding))
        return half or self.strays.claim_named(side, keys, named)

    def _joined(self, half: Half, other: Finding) -> Finding:
        """Both halves as one difference."""
        one = half.finding
        left, right = other.left or one.left, other.right or one.right
        kind: Kind = "reordered" if self._rules.equal(one.event, other.event) else "changed"
        return Finding(kind, left, right, one.witness or other.witness)

    def keys_of(self, finding: Finding) -> Lookups:
        """What a difference is found by: by nothing where it has both halves."""
        if finding.partner is not None:
            return Lookups(Exact(b""))
        event, identity = finding.event, self._rules.identity
        return Lookups(self._rules.letter(event), None if identity is None else identity(event[0][3]))

    def _came_late(self, finding: Finding) -> bool:
        """Whether a leftover depends on nothing and is the partner of one that was settled without it.

        The difference stays: its partner was not there when it had to be.
        """
        event = finding.event
        half = self.lone.claim_equal(finding.side.other, self.keys_of(finding), lambda _: True)
        if half is None:
            return False
        late_ms = max(0, event[3] - half.finding.event[3])
        self._closed.append(half.divergence._replace(late=late_ms / 1000))
        return True

    def give_up(self, side: Side, event: Event) -> None:
        """Nothing from this event on will ever be verified in its partition."""
        first, partition, offset = self.first_unverifiable[side], event[1], event[2]
        first[partition] = min(first.get(partition, offset), offset)

    def drop(self, side: Side, events: Sequence[Event]) -> None:
        """These are not kept any more, and will never be verified."""
        for event in events:
            self.give_up(side, event)
        self.given_up[side] += len(events)
        self.held.left(events)

    def take_back(self, side: Side, events: Sequence[Event]) -> None:
        """These are kept again, and wait; never verified they are all the same."""
        self.given_up[side] -= len(events)
        self.held.came_back(side, events)

    def take_closed(self) -> list[Divergence]:
        """The divergences booked since the last call; one found again has its number."""
        closed, self._closed = self._closed, []
        return closed


def _repeats_of(rules: Rules) -> Repeats | None:
    """What tells copies, where a verdict hangs on it."""
    horizon = rules.duplicate_horizon
    return None if horizon is None else Repeats(horizon, rules.canonical, rules.order)


_FORM = itemgetter(0)
_CONTENT = itemgetter(1)
_KIND = itemgetter(2)
_TIME = itemgetter(3)
