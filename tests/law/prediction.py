"""What the verdict must be, read from the declaration and the two sequences by plain definitions.

Nothing is shared with `twinstream.core`. Where no known differences are declared the verdict is decided
by trace theory, tolerance included. With rules only what every reading agrees on is predicted; `open_because`
says why the rest is not, and then only all plans have to agree.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import chain, combinations, zip_longest
from typing import Any, NamedTuple

from tests.law.declarations import BARRIER, DIVERGENCES, Declaration
from tests.law.traces import Event, Row, Trace
from tests.support.oracle import Wrote, attempts_agree, batch_counts, equivalent_within
from tests.support.orders import dependent

Rule = dict[str, Any]
EQUIVALENT, DIVERGED = "EQUIVALENT", "DIVERGED"


class Prediction(NamedTuple):
    """The verdict that must come; None where it is open, and why."""

    verdict: str | None
    open_because: str = ""


class Reading:
    """What a declaration says of two events: whether they are dependent, are one letter, and are close."""

    def __init__(self, declaration: Declaration) -> None:
        self._order = declaration.order
        self._ignored = set(declaration.equality("ignore"))
        self._quantum = {name: Decimal(str(q)) for name, q in declaration.equality("quantum").items()}
        self._tolerance = declaration.equality("tolerance")

    def dependent(self, one: Event, other: Event) -> bool:
        return dependent(self._order, one, other)

    def letter(self, event: Event) -> Hashable:
        """All of an event that must be the same for it to match."""
        return tuple(
            sorted((name, self._compared(name, value)) for name, value in event.items() if self._kept(name))
        )

    def _kept(self, name: str) -> bool:
        return name not in self._ignored and name not in self._tolerance

    def _compared(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return value
        number, quantum = Decimal(str(value)), self._quantum.get(name)
        if quantum is None:
            return number.normalize() + 0
        return (number / quantum).to_integral_value(ROUND_HALF_EVEN) * quantum

    def tells_retries(self, side: Sequence[Row]) -> bool:
        """Whether no tolerance leaves open which row of a batch is which, where several attempts wrote it."""
        written: dict[Hashable, list[Row]] = defaultdict(list)
        for row in side if self._tolerance else ():
            if row.attempt is not None:
                written[row.attempt.batch, self.letter(row.event)].append(row)
        return all(
            len({row.attempt for row in rows}) == len(rows)
            and all(self.close(one.event, other.event) for one, other in combinations(rows, 2))
            for rows in written.values()
            if len({row.attempt for row in rows}) > 1
        )

    def close(self, one: Event, other: Event) -> bool:
        """Whether two events of one letter are within every tolerance."""
        return all(self._within(one[name], other[name], by) for name, by in self._tolerance.items())

    @staticmethod
    def _within(one: float, other: float, by: dict[str, float]) -> bool:
        a, b = Decimal(str(one)), Decimal(str(other))
        absolute, relative = (Decimal(str(by.get(way, 0))) for way in ("abs", "rel"))
        return abs(a - b) <= absolute + relative * max(abs(a), abs(b))


def new_rows(side: Sequence[Row], reading: Reading) -> list[Row] | None:
    """The rows of a side without what a retry wrote again; None where its attempts do not agree.

    A row is new where it raises what its batch has written. A batch is judged when a later one is read, and
    at the end.
    """
    new: list[Row] = []
    batches: dict[int, list[Wrote]] = {}
    for row in side:
        if row.attempt is None:
            new.append(row)
            continue
        number = row.attempt.batch
        if number > max(batches, default=number) and not all(map(attempts_agree, batches.values())):
            return None
        batch = batches.setdefault(number, [])
        before = batch_counts(batch).total()
        batch.append(Wrote(*row.attempt[2:], reading.letter(row.event)))
        new += [row] if batch_counts(batch).total() > before else []
    return new if all(map(attempts_agree, batches.values())) else None


def united(rows: Sequence[Row], partitions: int, reading: Reading) -> list[Event] | None:
    """One sequence of several partitions whose barriers have a copy in each: epoch by epoch.

    None where not each barrier has all its copies.
    """
    if partitions == 1:
        return [row.event for row in rows]
    epochs: list[list[list[Event]]] = []
    for partition in range(partitions):
        epochs.append([[]])
        for row in rows:
            if row.partition == partition:
                epochs[-1][-1].append(row.event)
                epochs[-1] += [[]] if row.event["type"] == BARRIER else []
    found: list[Event] = []
    for ends in zip_longest(*epochs):
        barriers = [epoch.pop() for epoch in ends if epoch and epoch[-1]["type"] == BARRIER]
        if None in ends or len(barriers) % partitions or len(set(map(reading.letter, barriers))) > 1:
            return None
        found += [*chain(*ends), *barriers[:1]]
    return found


def predicted(declaration: Declaration, trace: Trace) -> Prediction:
    """The verdict at the end of both sides."""
    reading = Reading(declaration)
    new = [new_rows(side, reading) if declaration.replays else side for side in trace]
    if new[0] is None or new[1] is None:
        return Prediction(None, "attempts do not agree, which is a hole")
    if declaration.replays and not all(map(reading.tells_retries, trace)):
        return Prediction(
            None, "rows of a batch are one letter and not one event, so which is a retry is open"
        )
    put = [united(rows or (), trace.partitions if declaration.has_copies else 1, reading) for rows in new]
    left, right = put
    if left is None or right is None:
        return Prediction(None, "a barrier lacks a copy, or has one that is not equal")
    if equivalent_within(left, right, reading.dependent, reading.letter, reading.close):
        return Prediction(EQUIVALENT)
    return known(declaration, reading, left, right) if declaration.rules else Prediction(DIVERGED)


# -- known differences ---------------------------------------------------------------------------------------


class Leftover(NamedTuple):
    """A letter that a side has more often than the other: how many `more`, and its events there."""

    side: int
    more: int
    events: list[Event]


def known(declaration: Declaration, reading: Reading, left: list[Event], right: list[Event]) -> Prediction:
    """The verdict on different streams, where rules may cover the differences.

    Which differences explain two streams is a matter of reading. In every reading a letter that one side has
    more often is in a difference that is no reordering.
    """
    rules = [rule for rule in declaration.rules if rule["expires"] > "1971"]
    size = len(left) + len(right)
    if rules and all(any(_covers_all(rule, kind, size) for rule in rules) for kind in DIVERGENCES):
        return Prediction(EQUIVALENT)
    has_identity = "identity" in declaration.file
    leftovers = _leftovers(reading, left, right)
    for leftover in leftovers:
        kinds = {"missing"} if leftover.side == 0 else {"extra", "duplicate"}
        kinds |= {"changed"} if has_identity else set()
        if not any(_may_cover(rule, kinds, event) for rule in rules for event in leftover.events):
            return Prediction(DIVERGED)
    counts = [sum(leftover.more for leftover in leftovers if leftover.side == side) for side in (0, 1)]
    fewest = max(counts) if has_identity else sum(counts)
    if not rules or fewest > sum(_most(rule, min(len(left), len(right))) for rule in rules):
        return Prediction(DIVERGED)
    return Prediction(None, "which differences explain the streams, and so whether rules cover them, is open")


def _covers_all(rule: Rule, kind: str, size: int) -> bool:
    """Whether a rule covers each difference of a kind, however many."""
    when = rule["when"]
    plain = not when.get("where") and (kind != "changed" or not when.get("fields"))
    return kind in when["divergences"] and plain and rule["ceiling"].get("count", 0) >= size


def _may_cover(rule: Rule, kinds: set[str], event: Event) -> bool:
    """Whether a rule may cover a difference of one of these kinds with this event."""
    when = rule["when"]
    holds = all(
        event[name] in (wanted if isinstance(wanted, list) else [wanted])
        for name, wanted in when.get("where", {}).items()
    )
    return holds and bool(kinds & set(when["divergences"]))


def _most(rule: Rule, pairs: int) -> float:
    """More differences than this a rule cannot cover."""
    ceiling = rule["ceiling"]
    if "count" in ceiling:
        return float(ceiling["count"])
    return max(1, math.floor(Decimal(str(ceiling["share"])) * pairs))


def _leftovers(reading: Reading, left: list[Event], right: list[Event]) -> list[Leftover]:
    sides: list[dict[Hashable, list[Event]]] = [defaultdict(list), defaultdict(list)]
    for side, events in zip(sides, (left, right), strict=True):
        for event in events:
            side[reading.letter(event)].append(event)
    return [
        Leftover(place, more, events)
        for place in (0, 1)
        for letter, events in sides[place].items()
        if (more := len(events) - len(sides[1 - place].get(letter, []))) > 0
    ]
