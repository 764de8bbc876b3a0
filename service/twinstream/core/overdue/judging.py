"""Judges which unmatched events are overdue: suspected to have no partner, or proven to have none.

Among independent events a lost one is never finitely distinguishable from a late one (DiffStream, section
4.4). So the comparison file declares a clock, and what waits is judged by how far the other side has come on
it. What is *set aside*, or waits for another partition of its side, is not judged: it takes no part in
matching.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from twinstream.core.accounting.halves import Half
from twinstream.core.accounting.ledger import Ledger
from twinstream.core.accounting.unpaired import REACH, Reach
from twinstream.core.arrivals.barrier_copies import Copies
from twinstream.core.clocks.arrival import ArrivalClock
from twinstream.core.diagnosis.scope import Scope
from twinstream.core.events import Event, Side
from twinstream.core.matching.index import Index
from twinstream.core.overdue.points import PointsClock
from twinstream.core.rules import Rules


class Judgement(NamedTuple):
    """Of one side: how many overdue events are only suspected, and those proven to have no partner."""

    suspected: int
    proven: list[Event]


@dataclass(frozen=True)
class Judge:
    """Judges what waits in the parts of one comparison, which it reads and never changes."""

    rules: Rules
    ledger: Ledger
    index: Index
    scopes: Mapping[Scope, None]
    copies: tuple[Copies, ...]
    clock: ArrivalClock
    passing: PointsClock | None

    def judge(self, side: Side, at_end: tuple[bool, bool], *, gapless: bool, now_s: float) -> Judgement:
        """Judge a side; `at_end` tells by side whether it is read to its end, `now_s` is the reader's clock.

        Unless all that came is compared (`gapless`) nobody knows what the other side has passed. Suspected
        are also copies of a form that has not been unmatched-free for long: a lost one could hide behind
        fresh ones. That is told from Kafka's timestamps, whatever the clock is.

        Complexity: O(c) in what is overdue, O(n) where the clock of arrival proves.
        """
        passed = None if self.passing is None else self._passed(self.passing, side, at_end) if gapless else {}
        overdue_until = self._overdue_until(side, at_end)
        hidden = 0 if overdue_until is None else self._hidden(side, overdue_until, passed or {})
        if passed is not None:
            overdue = len(passed)
            proven = sorted(passed.values(), key=_PLACE) if self.rules.proves else []
        elif overdue_until is not None:
            overdue = self._overdue(side, overdue_until)
            proven = self._proven(side, overdue_until, now_s) if overdue else []
        else:
            return Judgement(0, [])
        return Judgement(hidden + overdue - len(proven), proven)

    def overdue(self, side: Side, at_end: tuple[bool, bool], *, gapless: bool) -> Callable[[Event], bool]:
        """Tells of unmatched events of a side which are overdue.

        Complexity: O(c) in what is overdue and set aside, then O(1) an event.
        """
        if self.passing is not None:
            passed = self._passed(self.passing, side, at_end) if gapless else {}
            return lambda event: id(event) in passed
        until = self._overdue_until(side, at_end)
        if until is None:
            return lambda _: False
        apart = set(map(id, self._apart(side)))
        return lambda event: event[3] <= until and id(event) not in apart

    def is_alone(self, half: Half, at_end: tuple[bool, bool], now_s: float) -> bool:
        """Whether it is certain that a leftover has no other half, or a difference its final name.

        It is once all that its other half may be was read and settled: by offset, or by the time at which it
        may have been written at the latest. That time has passed on Kafka's clock, or on the reader's where
        both sides are at rest.
        """
        side, reach = half.finding.side, half.reach
        if reach is None:
            return True
        held, read = self.ledger.held.of(side.other), self.ledger.read[side.other]
        first_open, oldest_ms = held.first_open(), held.oldest_ms()
        ends = {partition: end + REACH for partition, end in reach.offsets[side.other].items()}
        if ends and all(
            read.get(partition, -1) > end and first_open.get(partition, end + 1) > end
            for partition, end in ends.items()
        ):
            return True
        return (oldest_ms is None or oldest_ms > reach.until_ms) and self._is_over(half, reach, at_end, now_s)

    def _is_over(self, half: Half, reach: Reach, at_end: tuple[bool, bool], now_s: float) -> bool:
        after_ms = self.rules.overdue_after_ms
        overdue_until = self._overdue_until(half.finding.side, at_end)
        if overdue_until is not None and overdue_until + after_ms >= reach.until_ms:
            return True
        return all(at_end) and half.finding.event[4] + after_ms / 1000 <= now_s < math.inf

    def passed_scopes(self, at_end: tuple[bool, bool], *, gapless: bool, now_s: float) -> Iterator[Scope]:
        """The open scopes that hold overdue events only; where the clock proves, such as it proves of.

        Copies of barriers belong to whole epochs: a scope among them closes with its epoch.

        Complexity: O(1) an open scope, O(n) in those that are passed.
        """
        if not self.scopes or not gapless or self.copies:
            return
        left, right = (self._tells_passed(side, at_end, now_s) for side in Side)
        for scope in self.scopes:
            pieces = map(reversed, scope.pieces)  # What came last is passed last.
            if not scope.lost and all(map(left, next(pieces))) and all(map(right, next(pieces))):
                more = [scope.owner.gathered(side) for side in Side] if scope.gathering else ((), ())
                if all(map(left, more[0])) and all(map(right, more[1])):
                    yield scope

    def _tells_passed(self, side: Side, at_end: tuple[bool, bool], now_s: float) -> Callable[[Event], bool]:
        """Tells of unmatched events of a side whether the other side has passed them."""
        if self.passing is not None:
            passed = self._beyond(self.passing, side, at_end)
            return lambda event: id(event) in passed
        until = self._overdue_until(side, at_end)
        if until is None:
            return lambda _: False
        if not self.rules.proves:
            return lambda event: event[3] <= until
        return self._tells_proven(side, until, now_s)

    def _overdue_until(self, side: Side, at_end: tuple[bool, bool]) -> int | None:
        """The latest arrival that is overdue on Kafka's clock; None where nothing is."""
        if not all(at_end):
            return None
        return self.clock.stalls(side).reached_before(self.rules.overdue_after_ms)

    @staticmethod
    def _beyond(passing: PointsClock, side: Side, at_end: tuple[bool, bool]) -> dict[int, Event]:
        """The unsettled events that the other side has passed, also those that take no part in matching."""
        passed = passing.passed(side)  # Also takes in what came, which else would pile up.
        return passed if all(at_end) or not passing.needs_ends else {}

    def _passed(self, passing: PointsClock, side: Side, at_end: tuple[bool, bool]) -> dict[int, Event]:
        """The events in matching that the other side has passed, on a clock of how far each has come.

        An event of which an equal one waits for another partition of the other side is none of them; nor is
        one where that is equal but for tolerated numbers: it is told when it comes to matching.
        """
        passed = self._beyond(passing, side, at_end)
        if not passed:
            return {}
        apart = set(map(id, self._apart(side)))
        waiting = set(map(self.rules.letter, self.copies[side.other])) if self.copies else set()
        return {
            key: event
            for key, event in passed.items()
            if key not in apart and not (waiting and self.rules.letter(event) in waiting)
        }

    def _hidden(self, side: Side, overdue_until: int, passed: Mapping[int, Event]) -> int:
        """The copies of a form that wait without a break for long, and are not overdue themselves."""
        return sum(
            sum(1 for event in copies if event[3] > overdue_until and id(event) not in passed)
            for since_ms, copies in self.index.chains(side)
            if since_ms <= overdue_until
        )

    def _overdue(self, side: Side, overdue_until: int) -> int:
        """How many events in matching have waited for too long on Kafka's clock."""
        apart = sum(1 for event in self._apart(side) if event[3] <= overdue_until)
        return self.ledger.held.of(side).until(overdue_until) - apart

    def _proven(self, side: Side, overdue_until: int, now_s: float) -> list[Event]:
        """The overdue events of which Kafka's clock proves that no partner comes, if it may."""
        if not self.rules.proves:
            return []
        is_proven = self._tells_proven(side, overdue_until, now_s)
        gathered = set(map(id, self.index.gathered(side)))
        waiting = (event for event, _ in self.index.unmatched(side) if id(event) not in gathered)
        return list(filter(is_proven, waiting))

    def _tells_proven(self, side: Side, overdue_until: int, now_s: float) -> Callable[[Event], bool]:
        """Tells of overdue events on Kafka's clock whether it proves that no partner comes.

        They must have waited as long for the reader, too: one record with a time in the future, which Kafka
        takes, would else prove everything that is on its way.
        """
        newest = self.ledger.newest_matched_ms[side]
        if newest is None:
            return lambda _: False
        after_ms = self.rules.overdue_after_ms
        proven_until, read_until = min(overdue_until, newest - after_ms), now_s - after_ms / 1000
        return lambda event: event[3] <= proven_until and event[4] <= read_until

    def _apart(self, side: Side) -> Iterator[Event]:
        """The unmatched events that are not judged one by one.

        They take no part in matching, since they are set aside or wait for another partition; or they are
        about to be set aside with others.
        """
        for scope in self.scopes:
            yield from scope.pieces[side]
        yield from self.index.gathered(side)
        if self.copies:
            yield from self.copies[side]


_PLACE = itemgetter(1, 2)
