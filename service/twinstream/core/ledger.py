"""The ledger: what was settled, and how.

Every event that leaves matching is booked here once: as one of a pair, or as part of a difference, which is a
known one, the other half of an earlier one, or new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from twinstream.core.accounts import Account, Hole
from twinstream.core.events import Event, Side
from twinstream.core.findings import Finding, Kind
from twinstream.core.held import Held
from twinstream.core.index import Pairs
from twinstream.core.known import Known
from twinstream.core.neighbours import Asking
from twinstream.core.orders import Epochs, ordered_class
from twinstream.core.recent import RecentMatches
from twinstream.core.retries import Retries
from twinstream.core.rules import Rules
from twinstream.core.strays import Strays
from twinstream.core.stretches import Stretches

HOLES_LIMIT = 100
DOUBTED_LIMIT = 10_000
"""So many differences are shown as tainted where they turn out to decide nothing."""
NEVER = 1 << 62
"""The moment of what only an end decided, later than any other."""
EVERYTHING = NEVER
"""The moment up to which all is vouched for where nobody doubts what is fed."""


class Divergence(NamedTuple):
    """A finding, numbered from 0 in the order in which they were found; -1 while it is provisional.

    `first` is how it was found at first: an event that was missing and turned up elsewhere is found again
    under its number, as an event that changed places. A tainted one lies behind a hole and decides nothing.
    `late` is by how many seconds of Kafka time its partner came later, if it came after all.
    """

    finding: Finding
    tainted: bool
    first: Finding
    number: int = -1
    late: float | None = None


class Ledger:
    """The accounts of both sides, the pairs and the differences.

    `stretches` are the pairs by time. `strays` are leftovers that may have changed places, `lone` those that
    depend on nothing and may be late. `given_up` counts by side what is not kept, and unmatched for good.
    `found_by_kind` counts differences as they were found and never falls, `closed_by_kind` as they are known
    by now. `moment` is the driver's count of what was fed, `diverged_at` the earliest of a difference that no
    hole lies before. `asking` holds differences back where other shards have to be asked first. `halted` is
    whether there was a difference, and by the rules nothing after it counts. `beginning` is what may be gone
    behind the start: while it is given, a difference is this hole.

    A difference that was found may decide nothing after all, and is then tainted: one that is held for open
    batches (`settle_held`), and one in what nobody has vouched for (`vouch`, `disown`). Of those that may be,
    the ledger keeps the numbers.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.accounts = (Account(), Account())
        self.held = Held()
        self.holes: list[Hole] = []
        self.moment = 0
        self.halted = False
        self.matched = 0
        self.matched_by_kind: Counter[str] = Counter()
        self.stretches = Stretches()
        self.newest_matched_ms: list[int | None] = [None, None]
        self.recent = RecentMatches(rules.recent_matches, rules.canonical)
        self.known = Known(rules.known)
        self.strays: Strays[Divergence] = Strays(_weight)
        self.lone: Strays[Divergence] = Strays(_weight)
        self.closed_by_kind: Counter[Kind] = Counter()
        self.found_by_kind: Counter[Kind] = Counter()
        self.given_up = [0, 0]
        self.first_unverifiable: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.diverged_at: int | None = None
        self.retries = None if rules.replay_horizon is None else Retries(rules.replay_horizon)
        self.vouched_at = EVERYTHING
        self.asking: Asking | None = None
        self.beginning: Hole | None = None
        self._closed: list[Divergence] = []
        self._found_while_held: list[int] = []
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

    @property
    def tainted(self) -> bool:
        """Whether a hole lies before what is found from now on, so that it decides nothing."""
        return bool(self.holes)

    def hole(self, hole: Hole) -> None:
        """Note that something was not checked. The first are kept: one decides, and more help nobody."""
        if len(self.holes) < HOLES_LIMIT:
            self.holes.append(hole)

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
            came_ms, waited_ms = self._count(pairs)
            self.advance(side, max(came_ms))
            self.advance(side.other, max(waited_ms))

    def pair(self, pairs: Pairs) -> None:
        """Book pairs of events that came before. Complexity: about 0.1 µs a pair."""
        if pairs.partners:
            self.held.left(pairs.partners)
            self.held.left(pairs.events)
            self._count(pairs)

    def _count(self, pairs: Pairs) -> tuple[list[int], list[int]]:
        """Count pairs; the times of the events that came, and of those that had waited for them."""
        forms = list(map(_FORM, pairs.partners))
        self.matched += len(forms)
        kinds = set(map(_KIND, forms))
        counted = {kinds.pop(): len(forms)} if len(kinds) == 1 else Counter(map(_KIND, forms))
        self.matched_by_kind.update(counted)
        came_ms, waited_ms = list(map(_TIME, pairs.events)), list(map(_TIME, pairs.partners))
        first_ms, second_ms = min(came_ms), min(waited_ms)
        self.stretches.note(min(first_ms, second_ms), counted)
        self.known.compared(came_ms, waited_ms)
        self.recent.note(map(_CONTENT, forms))
        return came_ms, waited_ms

    def advance(self, side: Side, moment_ms: int) -> None:
        """Note that an event of a side that arrived then has matched."""
        newest = self.newest_matched_ms[side]
        if newest is None or moment_ms > newest:
            self.newest_matched_ms[side] = moment_ms

    # -- differences ---------------------------------------------------------------------------------------

    def settle(self, finding: Finding, moment: int, *, tainted: bool) -> None:
        """Book a difference that was proven at a moment: as a known one, as part of an earlier, or as new."""
        events = [(side, event) for side, event in finding.events if event is not None]
        for side, event in events:
            self.give_up(side, event)
        self.held.left(event for _, event in events)
        if self.known.explain(finding, self.matched) is not None:
            for side, _ in events:
                self.accounts[side].explained += 1
            return
        for side, _ in events:
            self.accounts[side].divergent += 1
        tainted = tainted or not self.diverge(moment)
        if not tainted and self.asking is not None:
            for side, event in events:
                self.asking.suspect(side, event[0])
        if len(events) == 2 or not self._complete(finding):
            self._add(finding, moment, tainted=tainted)

    def diverge(self, moment: int) -> bool:
        """A difference was proven at a moment: whether it counts. It does not where it may be what is gone.

        While batches or questions are open it is held.
        """
        if self.beginning is not None:
            if self.beginning not in self.holes:
                self.hole(self.beginning)
            return False
        if self.asking is not None and self.diverged_at is None:
            self.asking.hold(moment)
        elif self.retries is None or not self.retries.hold(moment):
            self.stand(moment)
        return True

    @property
    def is_held(self) -> bool:
        """Whether a difference was proven that does not count yet."""
        by_batches = self.retries is not None and self.retries.held_at is not None
        return by_batches or (self.asking is not None and self.asking.held_at is not None)

    def settle_held(self, moment: int | None) -> None:
        """What was held counts as of a moment; without one it does not, and its differences are tainted."""
        found, self._found_while_held = self._found_while_held, []
        if moment is not None:
            self.stand(moment)
        else:
            self._taint(found)

    def stand(self, moment: int) -> None:
        """A difference that was proven at a moment counts."""
        self.diverged_at = moment if self.diverged_at is None else min(self.diverged_at, moment)

    def _add(self, finding: Finding, moment: int, *, tainted: bool) -> None:
        divergence = Divergence(finding, tainted, finding, self.found_by_kind.total())
        self.closed_by_kind[finding.kind] += 1
        self.found_by_kind[finding.kind] += 1
        self.halted = self.halted or self._rules.halt
        self._closed.append(divergence)
        if self.is_held and not tainted and len(self._found_while_held) < DOUBTED_LIMIT:
            self._found_while_held.append(divergence.number)
        if moment > self.vouched_at and not tainted and len(self._not_vouched_for) < DOUBTED_LIMIT:
            self._not_vouched_for.append((moment, divergence.number))
        alone = finding.left is None or finding.right is None
        if alone:
            strays = self.strays if self._depends(finding.event) else self.lone
            strays.note(finding.side, self._rules.letter(finding.event), divergence)

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
        for held in (self.retries, self.asking):
            if held is not None and held.drop_held(self.vouched_at):
                self._found_while_held = []

    def _taint(self, numbers: Sequence[int]) -> None:
        self._tainted += numbers
        gone = set(numbers)

        def known(divergence: Divergence) -> Divergence:
            return divergence._replace(tainted=True) if divergence.number in gone else divergence

        self._closed = list(map(known, self._closed))
        self.strays.amend(known)
        self.lone.amend(known)

    @property
    def doubted(self) -> set[int]:
        """The numbers of the differences that may be tainted yet."""
        return {*self._found_while_held, *(number for _, number in self._not_vouched_for)}

    def take_tainted(self) -> list[int]:
        """The numbers of differences that were found to decide nothing since the last call."""
        tainted, self._tainted = self._tainted, []
        return tainted

    def doubts(self) -> dict[str, Any]:
        """What `doubted` comes from, for a snapshot."""
        return {
            "vouched_at": self.vouched_at,
            "not_vouched_for": [list(found) for found in self._not_vouched_for],
            "held": list(self._found_while_held),
            "beginning": None if self.beginning is None else list(self.beginning),
        }

    def restore_doubts(self, state: dict[str, Any]) -> None:
        """Take over `doubts`; there are none where it is empty."""
        self.vouched_at = state.get("vouched_at", EVERYTHING)
        self._not_vouched_for = [(moment, number) for moment, number in state.get("not_vouched_for", ())]
        self._found_while_held = list(state.get("held", ()))
        beginning = state.get("beginning")
        self.beginning = None if beginning is None else Hole.of(beginning)

    # -- one event that is found twice ---------------------------------------------------------------------

    def _depends(self, event: Event) -> bool:
        """Whether an event depends on anything; on barriers all do, also on those with copies."""
        order = self._rules.order
        return isinstance(order, Epochs) or ordered_class(order, event[0][0]) is not None

    def _complete(self, finding: Finding) -> bool:
        """Whether a leftover of one side is the other half of an event that changed places, or came late."""
        stray = self.strays.claim(finding.side.other, self._rules.letter(finding.event))
        if stray is None:
            return self._came_late(finding)
        half = stray.finding
        left, right = finding.left or half.left, finding.right or half.right
        moved = Finding("reordered", left, right, half.witness or finding.witness)
        self.closed_by_kind[half.kind] -= 1
        self.closed_by_kind["reordered"] += 1
        self._closed.append(stray._replace(finding=moved))
        return True

    def _came_late(self, finding: Finding) -> bool:
        """Whether a leftover depends on nothing and is the partner of one that was settled without it.

        The difference stays: its partner was not there when it had to be.
        """
        event, side = finding.event, finding.side.other
        divergence = self.lone.claim(side, self._rules.letter(event))
        if divergence is None:
            return False
        early = divergence.finding.event
        if not self._rules.equal(early, event):
            self.lone.note(side, self._rules.letter(early), divergence)
            return False
        self._closed.append(divergence._replace(late=max(0, event[3] - early[3]) / 1000))
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


def _weight(divergence: Divergence) -> int:
    """The bytes of the events that a divergence holds."""
    finding = divergence.finding
    held = (event for _, event in (*finding.events, *finding.witness) if event is not None)
    return sum(len(event[0][1]) + len(event[0][3]) for event in held)


_FORM = itemgetter(0)
_CONTENT = itemgetter(1)
_KIND = itemgetter(2)
_TIME = itemgetter(3)
