"""The shards of a comparison that is divided by partition, as one of them meets the others.

Once a beat it leaves a note where all can read it, and reads theirs (see `core.neighbours`, which decides).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from twinstream.core.accounts import Hole
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.neighbours import NONE, TOLD, Asking, Neighbours, Passed, Sample, hashed
from twinstream.core.orders import ordered_class
from twinstream.core.sharding import KeyOf, Offsets, Shard
from twinstream.runtime.intake import Intake

Exchange = Callable[[bytes], Mapping[int, bytes]]
"""Leaves the own note, and returns those of all shards. Raises StoreError."""

ASKED = (
    "a difference was found, which counts when the other shards have said that they have nothing of its key"
)
TICKS_TOLD = 500
"""Of each side: with `after: 60s` that is 25 minutes of Kafka time, which are read between two notes."""
LOST = (
    "a difference was found before the key of masks was changed, and the other shards cannot be asked for it "
    "any more: begin anew"
)
LOOKED_THROUGH = 10_000
"""So many of the oldest events of a side are looked through for overdue ones."""


class Neighbourhood:
    """What a worker does for its neighbours, and they for it.

    Notes of shards that have another `secret` are not read: nothing in them can be compared. So nothing that
    is asked is confirmed then.
    """

    def __init__(
        self,
        exchange: Exchange,
        shard: Shard,
        comparison: Comparison,
        intake: Intake,
        key_of: KeyOf,
        secret: bytes,
    ) -> None:
        order = comparison.rules.order
        self._exchange, self._comparison, self._intake = exchange, comparison, intake
        sample = Sample(secret)
        self._secret = secret
        self._asking = Asking(key_of, lambda form: ordered_class(order, form[0]) is not None, secret)
        self._neighbours = Neighbours(shard, secrets.token_hex(8), sample)
        self._crossed = False
        comparison.ask(self._asking, sample)

    def confer(self, ends: Offsets) -> bool:
        """Tell and hear; whether that has changed the comparison. `ends` are as of now. Raises StoreError."""
        comparison, neighbours = self._comparison, self._neighbours
        if self._asking.lost:
            comparison.settle_asked(Hole(LOST))
            return True
        clock = comparison.clock
        times = {"ticks": [clock.told(side, TICKS_TOLD) for side in Side], "newest_ms": clock.newest_ms}
        note = neighbours.say(self._asked(), [self._overdue(side) for side in Side], times, self._passed())
        neighbours.hear(self._notes({**note, "secret": self._asking.secret_name}), self._own(ends))
        for told in neighbours.times():
            for side in Side:
                clock.heard(side, told["ticks"][side], told["newest_ms"][side])
        if not comparison.holes:
            neighbours.answer(self._intake.positions, self._waiting)
        if not self._crossed and (reason := neighbours.crossing()) is not None:
            self._crossed = True
            if all(hole.reason != reason for hole in comparison.holes):
                comparison.settle_asked(Hole(reason))
            return True
        if comparison.is_asked and neighbours.confirmed():
            comparison.settle_asked(None)
            return True
        return False

    def _notes(self, own: Mapping[str, Any]) -> dict[int, Any]:
        """Leave a note, and read those of all shards that have the same secret."""
        texts = self._exchange(json.dumps(own).encode())
        notes = {number: json.loads(text) for number, text in texts.items()}
        return {number: note for number, note in notes.items() if note.get("secret") == own["secret"]}

    def _own(self, ends: Offsets) -> Offsets | None:
        """The ends of the partitions that are read here, if all are known."""
        own = self._intake.positions
        if any(own[side].keys() - ends[side].keys() for side in Side):
            return None
        return {side: {partition: ends[side][partition] for partition in own[side]} for side in Side}

    def _passed(self) -> Sequence[Passed]:
        form = self._comparison.rules.form
        return [
            Passed(copies.united, [self._hashed(form(event)) for event in copies.latest])
            for copies in self._comparison.copies
        ] or NONE

    def _asked(self) -> set[str]:
        if not self._comparison.is_asked:
            return set()
        findings = (
            finding for scope in self._comparison.scopes if not scope.tainted for finding in scope.findings
        )
        parts = ((side, event) for finding in findings for side, event in finding.events if event is not None)
        return {*self._asking.keys, *(self._asking.key(side, one[0]) for side, one in islice(parts, TOLD))}

    def _waiting(self) -> Iterator[str]:
        """The keys of everything that waits here. Complexity: O(n), about 2 µs each."""
        for side in Side:
            for event in self._comparison.waiting_events(side):
                yield self._asking.key(side, event[0])

    def _overdue(self, side: Side) -> set[str]:
        """Some forms of a side that are overdue."""
        if not self._comparison.surveyed.suspicions:
            return set()
        until = self._comparison.clock.stalls(side).reached_before(self._comparison.rules.overdue_after_ms)
        if until is None:
            return set()
        oldest = islice(self._comparison.ledger.held.of(side), LOOKED_THROUGH)
        overdue = (self._comparison.rules.form(event) for event in oldest if event[3] <= until)
        return set(map(self._hashed, islice(overdue, TOLD)))

    def _hashed(self, key: bytes) -> str:
        return hashed(key, self._secret)
