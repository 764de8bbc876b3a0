"""The ledger: the accounts of both sides, the pairs, and the unmatched events.

Every event is booked here once when it comes, and once when it is settled: as one of a pair, or as part of a
difference (see `differences`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Protocol

from twinstream.core.accounting.event_rows import pairs_of
from twinstream.core.accounting.match_timeline import MatchTimeline, united
from twinstream.core.accounting.recent_matches import RecentMatches
from twinstream.core.accounting.unmatched import UnmatchedEvents
from twinstream.core.accounts import Account
from twinstream.core.arrivals.lives import Lives
from twinstream.core.arrivals.repeats import Repeats
from twinstream.core.events import CONTENT, FORM, OFFSET, PARTITION, Event, Form, Side
from twinstream.core.matching.index import Pairs
from twinstream.core.rules import Rules


class PairsToNote(Protocol):
    """Wants to know of each pair (see `overdue.crossed`, and `PairsOfRange` in `offline.range_edges`)."""

    def note(self, side: Side, events: Iterable[Event], partners: Iterable[Event]) -> None:
        """Note pairs of events of a side."""


class Ledger:
    """The accounts of both sides, the pairs, and the unmatched events: `held`.

    `timeline` are the pairs by time. `read` is by side and partition the last offset that came. `given_up`
    counts by side the events that are not kept, and stay unmatched for good. `first_unverifiable` is by side
    and partition the first offset of such an event, or of one that is part of a difference. `lives` are those
    of the partitions. `recent` recognises copies for naming only, `repeats` where the verdict depends on it.
    `told_pairs` may be set: who wants to know of pairs.
    """

    def __init__(self, rules: Rules) -> None:
        self.accounts = (Account(), Account())
        self.held = UnmatchedEvents(), UnmatchedEvents()
        self.matched = 0
        self.matched_by_kind: Counter[str] = Counter()
        self.timeline = MatchTimeline()
        self.newest_matched_ms: list[int | None] = [None, None]
        self.told_pairs: tuple[PairsToNote, ...] = ()
        self.recent = RecentMatches(rules.recent_matches, rules.exactly)
        horizon = rules.duplicate_horizon
        self.repeats = None if horizon is None else Repeats(horizon, rules.canonical, rules.order)
        self.given_up = [0, 0]
        self.lives = Lives()
        self.read: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.first_unverifiable: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def unmatched(self, side: Side) -> int:
        """The number of events of a side that are not settled."""
        return self.accounts[side].unmatched(self.matched)

    def waits(self, side: Side) -> int:
        """The number of unmatched events of a side that are kept: all but those given up."""
        return self.unmatched(side) - self.given_up[side]

    @property
    def waiting(self) -> int:
        """The number of unmatched events of both sides that are kept."""
        return self.waits(Side.LEFT) + self.waits(Side.RIGHT)

    # -- copies --------------------------------------------------------------------------------------------

    def is_copy(self, event: Event, paired: Sequence[Event] = ()) -> bool:
        """Whether a surplus event is a copy: of an earlier one, if a rule asks for it.

        Else this is only a name, decided by recent matches and the `paired` events, which equal it exactly.
        """
        return self.recent.is_copy(event, paired) if self.repeats is None else self.repeats.is_copy(event)

    def note_original(self, event: Event) -> None:
        """Note an event that matched elsewhere, since another one may be its copy."""
        self.recent.note([event[FORM][CONTENT]])
        if self.repeats is not None:
            self.repeats.note(event[PARTITION], [event])

    def trim(self) -> None:
        """Forget data that copies no longer need. Call it after `UnmatchedEvents.settle`."""
        self.recent.trim()
        if self.repeats is not None:
            self.repeats.trim(self.held[Side.RIGHT].holds)

    # -- pairs ---------------------------------------------------------------------------------------------

    def came(self, side: Side, events: Sequence[Event], pairs: Pairs) -> None:
        """Book events of a side that were fed, and the pairs found with them.

        Complexity: about 0.1 µs a pair.
        """
        if len(pairs.events) < len(events) or pairs.events != events:
            self.held[side].came(events)
            self.held[side].left(pairs.events)
        if pairs.partners:
            self.held[side.other].left(pairs.partners)
            came_ms, waited_ms = self._count(pairs, side)
            self.advance(side, max(came_ms))
            self.advance(side.other, max(waited_ms))

    def met(
        self, side: Side, forms: Sequence[Form], came_ms: Sequence[int], waited_ms: Sequence[int]
    ) -> None:
        """Book pairs of new records of a side, with these forms, with others that waited, and have left."""
        self._count_forms(forms, came_ms, waited_ms)
        self.advance(side, max(came_ms))
        self.advance(side.other, max(waited_ms))

    def pair(self, pairs: Pairs, side: Side = Side.RIGHT) -> None:
        """Book pairs of earlier events, with partners of the other side. Complexity: as `came`."""
        if pairs.partners:
            self.held[side.other].left(pairs.partners)
            self.held[side].left(pairs.events)
            self._count(pairs, side)

    def _count(self, pairs: Pairs, side: Side) -> tuple[list[int], list[int]]:
        """Count pairs; returns the times of the new events of a side, and of the unmatched ones they met.

        Only the events of the candidate are remembered: those of the reference may differ in spelling, and
        within a tolerance.
        """
        for told in self.told_pairs:
            told.note(side, pairs.events, pairs.partners)
        came_ms, waited_ms = list(map(_TIME, pairs.events)), list(map(_TIME, pairs.partners))
        forms = list(map(_FORM, pairs.events if side is Side.RIGHT else pairs.partners))
        self._count_forms(forms, came_ms, waited_ms)
        return came_ms, waited_ms

    def _count_forms(self, forms: Sequence[Form], came_ms: Sequence[int], waited_ms: Sequence[int]) -> None:
        self.matched += len(forms)
        kinds = set(map(_KIND, forms))
        counted = {kinds.pop(): len(forms)} if len(kinds) == 1 else Counter(map(_KIND, forms))
        self.matched_by_kind.update(counted)
        self.timeline.note(min(chain(came_ms, waited_ms)), counted)
        self.recent.note(map(_CONTENT, forms))

    def advance(self, side: Side, moment_ms: int) -> None:
        """Note the arrival time of an event of a side that has matched."""
        newest = self.newest_matched_ms[side]
        if newest is None or moment_ms > newest:
            self.newest_matched_ms[side] = moment_ms

    def give_up(self, side: Side, event: Event) -> None:
        """Note that no event from this one on will ever be verified in its partition."""
        first, partition, offset = self.first_unverifiable[side], event[PARTITION], event[OFFSET]
        first[partition] = min(first.get(partition, offset), offset)

    def drop(self, side: Side, events: Sequence[Event]) -> None:
        """Drop events, which will never be verified."""
        for event in events:
            self.give_up(side, event)
        self.given_up[side] += len(events)
        self.held[side].left(events)

    def take_back(self, side: Side, events: Sequence[Event]) -> None:
        """Keep dropped events again as unmatched; they will still never be verified."""
        self.given_up[side] -= len(events)
        self.held[side].came_back(events)

    # -- state ---------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state as plain data, without the unmatched events, and without `repeats`."""
        lives = self.lives.state()
        return {
            **({"lives": lives} if lives else {}),
            "accounts": [account.state() for account in self.accounts],
            "matched": self.matched,
            "matched_by_kind": dict(self.matched_by_kind),
            "stretches": self.timeline.state(),
            "read": list(map(pairs_of, self.read)),
            "first_unverifiable": list(map(pairs_of, self.first_unverifiable)),
            "newest_matched_ms": list(self.newest_matched_ms),
            "given_up": list(self.given_up),
            "recent": self.recent.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the `state`."""
        for account, values in zip(self.accounts, state["accounts"], strict=True):
            vars(account).update(values)
        self.matched = state["matched"]
        self.matched_by_kind = Counter(state["matched_by_kind"])
        self.timeline = united([state["stretches"]])
        for read, known in zip(self.read, state.get("read", ((), ())), strict=True):
            read.update(known)
        for first, known in zip(self.first_unverifiable, state["first_unverifiable"], strict=True):
            first.update(known)
        self.lives.restore(state.get("lives", []))
        self.newest_matched_ms = list(state["newest_matched_ms"])
        self.given_up = list(state["given_up"])
        self.recent.restore(state["recent"])


_FORM = itemgetter(0)
_CONTENT = itemgetter(1)
_KIND = itemgetter(2)
_TIME = itemgetter(3)
