"""Judges differences at the edges of a stretch: which count, and which mean nothing.

A difference counts if an event is proven to have no partner, or to have changed places with another. At a
sharp edge (see `offset_range`) the comparison's finding is such a proof. At a time it is not: a partner may
lie beyond. Partners are assumed to be at most `slack` apart, in Kafka's time. Then

- an event *beside* the stretch, in the `slack` that is read for partners, need not have a partner: without
  one it is left out;
- an event of the stretch has its partner among the records read, if the other side goes far enough. If that
  side begins too late or has not come far enough yet, a missing partner is *undecided*;
- of several equal events, nobody can tell which one lacks its partner. If an event of the stretch equals one
  beside it, or an undecided one, that other event may have taken its partner: it is undecided, too. And one
  left over beside the stretch may have been left without a partner by an event of the stretch that has lost
  its own. So it is undecided, unless all equal events of the stretch can have partners that are at most
  `slack` apart.

Where retries are recognised, a row may be a *replay* of one that lies before all that is read. A query goes
no further back than the horizon (see `core.arrivals.replays`). So the rows of its first `horizon` batches
that are read are undecided, and for simplicity all rows before them in their partitions. Nothing lies before
a side that is read from its first record on.

A difference in which an event beside the stretch has changed places with one within is undecided. And where a
scope was given up, its pieces may begin at different events, so nothing is proven.

Equal barriers may belong to others than those they were paired with, if some lie beside the stretch
(`barrier_shifts`). Then a difference of events that depend on them counts only if one of these events has no
equal one near enough on the other side.

So a difference of one event counts if that event lies in the stretch, is decided, and equals none that is
not. For two that changed places both must, and so must the witness: if one of them has no partner among the
records read, places prove nothing.

Known differences are therefore asked last (`explain`): events left over beside the stretch are not theirs and
must not use up their ceilings. Nor do pairs beside it count as evidence, or raise a ceiling (`PairsOfRange`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from math import inf, isfinite
from typing import Any, Literal, NamedTuple

from twinstream.core.accounting.halves import Divergence
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.diagnosis.known_differences import KnownDifferences
from twinstream.core.events import FORM, KIND, OFFSET, PARTITION, TIMESTAMP_MS, Event, Form, Side
from twinstream.core.order import dependent
from twinstream.core.rules import Rules
from twinstream.explain.divergence import NAMES
from twinstream.offline.barrier_shifts import ReadBarrier, may_be_shifted
from twinstream.offline.offset_range import OffsetRange, edge_text
from twinstream.ports import Line
from twinstream.spec.file.model import Spec
from twinstream.status.timestamps import moment_of

EdgePlace = Literal["within", "undecided", "beside"]


class Sorted(NamedTuple):
    """Divergences in four groups: those that count, undecided ones, left-out ones, and known ones."""

    counted: Sequence[Divergence] = ()
    undecided: Sequence[Divergence] = ()
    left_out: Sequence[Divergence] = ()
    explained: Sequence[Divergence] = ()


def explain(found: Sorted, known: KnownDifferences, matched: int) -> Sorted:
    """Let known differences explain the divergences that they cover, of `matched` pairs.

    An undecided event has a partner, or is a difference; if it is a known one, it is harmless either way. It
    gets only the rest of a ceiling, so that nothing doubtful exhausts a ceiling.
    """
    explained: list[Divergence] = []
    rest: list[list[Divergence]] = []
    for divergences in (found.counted, found.undecided):
        left: list[Divergence] = []
        for one in divergences:
            (left if known.explain(one.finding, matched) is None else explained).append(one)
        rest.append(left)
    return found._replace(counted=rest[0], undecided=rest[1], explained=explained)


class Forms(NamedTuple):
    """The hashes of the canonical forms of events, their times, and whether each lies in the stretch."""

    hashes: array[int]
    times_ms: array[int]
    within: bytearray

    def note(self, letter: bytes, at: int, *, within: bool) -> None:
        """Remember an event."""
        self.hashes.append(hash(letter))
        self.times_ms.append(at)
        self.within.append(within)

    def of(self, some: Set[int]) -> dict[int, list[tuple[int, bool]]]:
        """The events of some forms, by form: the time of each, and whether it is within. O(n)."""
        found: dict[int, list[tuple[int, bool]]] = {form: [] for form in some}
        for form, at, within in zip(self.hashes, self.times_ms, self.within, strict=True):
            if form in some:
                found[form].append((at, bool(within)))
        return {form: sorted(events) for form, events in found.items()}


@dataclass
class _SideRead:
    """What was read of a side. Before `since_ms` the other side may have had no partner yet.

    `cut`: the stretch begins at a time, and there are records before all that is read. `first_batches` are
    by query the batches read first. `replays_to` are by partition the last offsets of rows that may be
    replays of rows not read; `horizon` is None if there are none. `barriers` are by their canonical forms;
    each begins with the form of the first one.
    """

    since_ms: float
    cut: bool
    horizon: int | None
    first_batches: dict[str, int] = field(default_factory=dict)
    replays_to: dict[int, int] = field(default_factory=dict)
    read: int = 0
    beside: int = 0
    first_ms: float = inf
    newest_ms: float = -inf
    reached_ms: float = -inf
    doubtful: set[int] = field(default_factory=set)
    forms: Forms = field(default_factory=lambda: Forms(array("q"), array("q"), bytearray()))
    barriers: dict[bytes, tuple[Form, list[tuple[int, int, int]]]] = field(default_factory=dict)

    def note_attempt(self, line: Line, attempt: Attempt) -> None:
        """Note what wrote a line: nearer to the first batch than the horizon, it may be a replay."""
        first = self.first_batches.setdefault(attempt.query, attempt.batch)
        if self.horizon is not None and attempt.batch < first + self.horizon:
            self.replays_to[line.partition] = line.offset


class Edges:
    """Judges the findings of one comparison of a stretch.

    Call `note` for each line, and `note_form` for each event. After reading, call `sort`. With `go_on` a
    version is known to be still writing, so the end of reading is not its end. `replay_horizon` is in
    batches, None where every copy is an event. `barriers` are the kinds of barriers.
    """

    def __init__(
        self, stretch: OffsetRange, replay_horizon: int | None = None, barriers: Set[str] = frozenset()
    ) -> None:
        self.stretch, self._barriers = stretch, barriers
        self.go_on = False
        self._replay_horizon = replay_horizon
        self.sides = [self._side_read(side) for side in Side]

    def _side_read(self, side: Side) -> _SideRead:
        stretch, began_ms = self.stretch, self.stretch.begins_ms[side.other]
        cut = isinstance(stretch.begin, datetime) and any(
            part.read.start > 0 for part in stretch.parts[side].values()
        )
        since_ms = -inf if began_ms is None else began_ms + stretch.slack_ms
        return _SideRead(since_ms, cut, self._replay_horizon if cut else None)

    def note(self, line: Line, attempt: Attempt | None = None) -> EdgePlace:
        """Where a line lies, as far as is known before the end is reached; `attempt` is what wrote it."""
        of, at = self.sides[line.side], line.timestamp_ms
        of.read += 1
        if attempt is not None:
            of.note_attempt(line, attempt)
        of.reached_ms = max(of.reached_ms, at)
        place = self._place(line.side, line.partition, line.offset, at)
        if place == "beside":
            of.beside += 1
        else:
            of.first_ms, of.newest_ms = min(of.first_ms, at), max(of.newest_ms, at)
        return place

    def may_be_replay(self, line: Line) -> bool:
        """Whether a noted line may be a replay of a row that was not read."""
        return line.offset <= self.sides[line.side].replays_to.get(line.partition, -1)

    def note_form(self, line: Line, place: EdgePlace, form: Form, letter: bytes) -> None:
        """Remember the form and the canonical form of an event at a place."""
        of = self.sides[line.side]
        if form[KIND] in self._barriers:
            of.barriers.setdefault(letter, (form, []))[1].append(
                (line.partition, line.offset, line.timestamp_ms)
            )
        of.forms.note(letter, line.timestamp_ms, within=place != "beside")
        if place != "within":
            of.doubtful.add(hash(letter))

    @property
    def sharp(self) -> bool:
        """Whether every finding counts."""
        return not (self.stretch.fuzzy or self.go_on)

    def sort(self, found: Sequence[Divergence], rules: Rules, *, gave_up: bool) -> Sorted:
        """Sort the findings; `gave_up`: a scope was given up. Complexity: O(n log n) in the events read."""
        if self.sharp:
            return Sorted(found)
        sorts: dict[EdgePlace, list[Divergence]] = {"within": [], "undecided": [], "beside": []}
        for divergence in found:
            sorts[self._judge(divergence, rules)].append(divergence)

        beside = [(one, _form(one, rules)) for one in sorts["beside"]]
        lacking = self._lacking({form for _, form in beside if form is not None})
        lacking -= Counter(_form(one, rules) for one in (*sorts["within"], *sorts["undecided"]))
        sorts["undecided"] += [one for one, form in beside if form in lacking]
        sorts["beside"] = [one for one, form in beside if form not in lacking]
        found_within, sorts["within"] = sorts["within"], []
        stands = self._standing(found_within, rules)
        for divergence in found_within:
            sorts["within" if stands(divergence) and not gave_up else "undecided"].append(divergence)
        return Sorted(*sorts.values())

    def _standing(self, found: Sequence[Divergence], rules: Rules) -> Callable[[Divergence], bool]:
        """Tells which of some findings are proven whatever partners equal barriers have."""
        shifted = self._shifted()
        if not shifted:
            return lambda _: True
        letters = {hash(rules.letter(event)) for one in found for _, event in one.finding.events if event}
        forms, slack = [self.sides[side].forms.of(letters) for side in Side], self.stretch.slack_ms

        def alone(side: Side, event: Event) -> bool:
            at, others = event[TIMESTAMP_MS], forms[side.other][hash(rules.letter(event))]
            first = bisect_left(others, (at - slack, False))
            return self._decides(side, event) and (first == len(others) or others[first][0] > at + slack)

        def stands(divergence: Divergence) -> bool:
            finding = divergence.finding
            events = [(side, event) for side, event in finding.events if event is not None]
            if finding.kind != "reordered" and any(alone(side, event) for side, event in events):
                return True
            involved = (*events, *finding.witness)
            return not any(
                dependent(rules.order, one, event[FORM]) for one in shifted for _, event in involved
            )

        return stands

    def _shifted(self) -> list[Form]:
        """The forms of the barriers that may belong to others than those they were paired with."""
        one, other = (self.sides[side].barriers for side in Side)
        return [
            one[letter][0]
            for letter in one.keys() & other.keys()
            if may_be_shifted(
                [self._as_read(Side.LEFT, *place) for place in one[letter][1]],
                [self._as_read(Side.RIGHT, *place) for place in other[letter][1]],
                self.stretch.slack_ms,
            )
        ]

    def _as_read(self, side: Side, partition: int, offset: int, at: int) -> ReadBarrier:
        compared = self.stretch.parts[side][partition].compared
        unread = offset < compared.start and self.sides[side.other].cut
        before = unread or self._place(side, partition, offset, at) == "undecided"
        return ReadBarrier(at, before, offset >= compared.stop or at > self._until(side))

    def _lacking(self, forms: Set[int]) -> Counter[int | None]:
        """By form, how many of its events in the stretch can have no partner near enough, each another one.

        It suffices to ask for each side by itself: then some pairing serves both (Mendelsohn and Dulmage,
        "Some generalizations of the problem of distinct representatives", 1958).
        """
        of = [self.sides[side].forms.of(forms) for side in Side]
        return Counter(
            {one: sum(self._alone(of[side][one], of[side.other][one]) for side in Side) for one in forms}
        )

    def _alone(self, events: Sequence[tuple[int, bool]], others: Sequence[tuple[int, bool]]) -> int:
        """How many events of a side in the stretch can have no partner; both by time."""
        alone, free, slack = 0, 0, self.stretch.slack_ms
        for at in (at for at, within in events if within):
            while free < len(others) and others[free][0] < at - slack:
                free += 1
            if free < len(others) and others[free][0] <= at + slack:
                free += 1
            else:
                alone += 1
        return alone

    def is_beside(self, side: Side, event: Event) -> bool:
        """Whether an event lies beside the stretch."""
        return self._of(side, event) == "beside"

    def _place(self, side: Side, partition: int, offset: int, at: int) -> EdgePlace:
        part = self.stretch.parts[side][partition]
        if offset not in part.compared:
            return "beside"
        of = self.sides[side]
        decided = at >= of.since_ms and offset > of.replays_to.get(partition, -1)
        return "within" if decided else "undecided"

    def _until(self, side: Side) -> float:
        """The time up to which the other side decides a missing partner of an event of this side."""
        if self.stretch.passed[side.other] and not self.go_on:
            return inf
        return self.sides[side.other].reached_ms - self.stretch.slack_ms

    def _judge(self, divergence: Divergence, rules: Rules) -> EdgePlace:
        finding = divergence.finding
        events = [(side, event) for side, event in finding.events if event is not None]
        involved = (*events, *finding.witness) if finding.kind == "reordered" else events
        if all(self.is_beside(side, event) for side, event in involved):
            return "beside"

        def proves(side: Side, event: Event) -> bool:
            return self._decides(side, event) and hash(rules.letter(event)) not in self.sides[side].doubtful

        if finding.kind == "reordered":
            sure = all(proves(side, event) for side, event in involved)
        else:
            sure = any(proves(side, event) for side, event in events)
        return "within" if sure else "undecided"

    def _decides(self, side: Side, event: Event) -> bool:
        """Whether the partner of an event must be among the records read."""
        return self._of(side, event) == "within" and event[TIMESTAMP_MS] <= self._until(side)

    def _of(self, side: Side, event: Event) -> EdgePlace:
        return self._place(side, event[PARTITION], event[OFFSET], event[TIMESTAMP_MS])


class PairsOfRange:
    """Counts the pairs of which an event lies in the stretch: those beside it say nothing about it."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self.by_kind: Counter[str] = Counter()

    def note(self, side: Side, events: Iterable[Event], partners: Iterable[Event]) -> None:
        """Count pairs of events of a side."""
        is_beside = self._edges.is_beside
        for event, partner in zip(events, partners, strict=True):
            if not (is_beside(side, event) and is_beside(side.other, partner)):
                self.by_kind[event[FORM][KIND]] += 1


def _form(divergence: Divergence, rules: Rules) -> int | None:
    """The hash of the form of an event left over; None for a difference with events of both sides."""
    finding = divergence.finding
    return None if finding.partner is not None else hash(rules.letter(finding.event))


def count_by_side(found: Iterable[Divergence]) -> tuple[int, int]:
    """The number of events of each side in some divergences."""
    counts = [0, 0]
    for divergence in found:
        for side, event in divergence.finding.events:
            counts[side] += event is not None
    return counts[0], counts[1]


def count_settled(found: Iterable[Divergence]) -> tuple[int, int]:
    """The same for divergences that are not provisional."""
    return count_by_side(divergence for divergence in found if divergence.number >= 0)


# -- in words, and as data ---------------------------------------------------------------------------------


def undecided_text(edges: Edges, found: Sorted) -> str:
    """The sentence about undecided events, if there are any."""
    count = len(found.undecided)
    what = "1 difference is" if count == 1 else f"{count:,} differences are"
    text = (
        f"{what} so near to an edge of the range, or equal to what is, that a partner may lie beyond it: let "
        "the range end earlier or begin later"
    )
    horizon = next((of.horizon for of in edges.sides if of.replays_to), None)
    if horizon is not None:
        batches = "first batch" if horizon == 1 else f"first {horizon:,} batches"
        text += f"; a row of the {batches} read may be a replay of one before: read more slack"
    return text


def told(
    edges: Edges, spec: Spec, matched: int, found: Sorted, undecided: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The compared ranges, as ``ranges`` of the answer; `undecided` are examples."""
    stretch = edges.stretch
    left_out = count_by_side(found.left_out)
    return {
        "from": edge_text(stretch.begin),
        "to": edge_text(stretch.end),
        "slack_seconds": stretch.slack.total_seconds(),
        **{name: _side(edges, side, spec, left_out[side]) for side, name in NAMES.items()},
        "matched": matched,
        "undecided": {"total": len(found.undecided), "examples": list(undecided)},
    }


def _side(edges: Edges, side: Side, spec: Spec, left_out: int) -> dict[str, Any]:
    of = edges.sides[side]
    return {
        "topic": spec.version_of(side).topic,
        "partitions": {
            str(number): {
                "from": compared.start,
                "to": compared.stop,
                "read_from": read.start,
                "read_to": read.stop,
            }
            for number, (compared, read) in edges.stretch.parts[side].items()
        },
        "records": of.read - of.beside,
        "records_beside": of.beside,
        "left_out": left_out,
        "first_at": _moment(of.first_ms),
        "last_at": _moment(of.newest_ms),
    }


def _moment(milliseconds: float) -> str | None:
    return moment_of(int(milliseconds)).isoformat() if isfinite(milliseconds) else None
