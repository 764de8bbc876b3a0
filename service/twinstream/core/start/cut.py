"""Finds where a comparison begins: a cut that is the same on both sides, found in the events themselves.

The reference has run for months, the candidate since today. Events before the cut are settled as *before
start* and take no part in matching; events from the cut on are compared. A cut must have equal events on the
same side of it: this holds for times, since equal events have equal times, and for equal barriers.

Forms are read by index, since the quick readers make plain tuples of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from twinstream.core.accounts import PLACE, Hole
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Canonical, Close, Side
from twinstream.errors import DecodeError

SidePartition = tuple[Side, int]
"""A partition of a side."""


class Portion(NamedTuple):
    """Some events of a side in order, either `behind` the start or before it."""

    side: Side
    run: Run
    behind: bool


class Passed(NamedTuple):
    """The result for a run: its events before the start, and those that can be compared.

    `held` is the change in the number of events held of each side. `refused` are events of the run that
    cannot be sorted, by index, with the reason. `hole` says why it is in doubt from here on where the sides
    begin.
    """

    parts: list[Portion]
    held: tuple[int, int] = (0, 0)
    refused: tuple[tuple[int, str], ...] = ()
    hole: Hole | None = None


def kept_of(side: Side, run: Run, kept: Sequence[int], refused: Sequence[tuple[int, str]]) -> Passed:
    """Sort a run by the indices of the kept events; all others that are not refused lie before the start.

    The rows of attempts are kept in order, which replays need; without attempts that order does not matter.
    """
    if len(kept) == len(run.forms):
        return Passed([Portion(side, run, behind=True)])
    left_out = {place for place, _ in refused}
    is_behind = set(kept).__contains__
    places = [place for place in range(len(run.forms)) if place not in left_out]
    if run.attempts is None:
        places.sort(key=is_behind)
    parts = [Portion(side, run.only(list(group)), behind) for behind, group in groupby(places, is_behind)]
    return Passed(parts, refused=tuple(refused))


class Cut(ABC):
    """Sorts events into before and behind the start.

    `found`: the cut is known, and no events are held any more. `refused` says in a sentence why nothing can
    ever be compared: events behind the cut may be gone on one side. `by_place`: the place of an event, not
    its content, decides whether it lies behind the cut; so a replay may lie on the other side of it.
    """

    found = False
    refused: str | None = None
    by_place = False

    @property
    def waiting(self) -> str | None:
        """The reason why nothing is compared yet."""
        return None

    @abstractmethod
    def begin(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        """Set the partitions, and the position where reading begins in each."""

    @abstractmethod
    def take(self, side: Side, run: Run) -> Passed:
        """Sort a run of a side."""

    def gap(self, side: Side, partition: int) -> Sequence[Run] | None:  # noqa: ARG002
        """Note lost records: None if they are a hole, else the held events, which lie before the start."""
        return None

    def state(self) -> Any:
        """What a checkpoint needs of a cut that is found, as plain data."""
        return None

    def restore(self, state: Any) -> None:  # noqa: B027 - most cuts, once found, need nothing
        """Take over a `state`."""


class EventTimeCut(Cut):
    """Compares all events from a moment on, by their own time; they may come in any order.

    A partition whose beginning is gone must show that the cut lies behind the gap: its first event must be
    from before `start`. But it may be a late event, and events behind the start may be gone before it. None
    are gone if that event was *written* before the start, since no event is written before its own time.
    Otherwise there is a `doubt`: a difference from here on may be caused by lost events. `start_ms` is the
    start as a time of Kafka, None if its clock is unknown.

    Complexity: one reading of the time for each event.
    """

    found = True

    def __init__(
        self, time_of: Callable[[bytes], Any], start: Any, start_text: str, start_ms: int | None = None
    ) -> None:
        self._time_of, self._start, self._start_text, self._start_ms = time_of, start, start_text, start_ms
        self._cut_off: dict[SidePartition, int] = {}
        self.doubt: Hole | None = None

    def begin(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        """Remember the partitions that are not read from their very first record on."""
        self._cut_off = {
            (side, partition): offset
            for side, offsets in positions.items()
            for partition, offset in offsets.items()
            if offset > 0
        }

    def state(self) -> list[list[int]]:
        """The partitions of which no event was read yet: each may still refute the start."""
        return [[int(side), partition, offset] for (side, partition), offset in self._cut_off.items()]

    def restore(self, state: list[list[int]] | None) -> None:
        """Take over a `state`; an earlier version saved none."""
        if state is not None:
            self._cut_off = {(Side(side), partition): offset for side, partition, offset in state}

    def take(self, side: Side, run: Run) -> Passed:
        """Keep the events from the start or later."""
        kept: list[int] = []
        refused: list[tuple[int, str]] = []
        for place, form in enumerate(run.forms):
            try:
                behind = self._time_of(form[3]) >= self._start
            except DecodeError as error:
                refused.append((place, str(error)))
                continue
            if self._cut_off and (offset := self._cut_off.pop((side, run.partition), None)):
                if behind:
                    self.refused = self._unsafe(side, run.partition, offset)
                elif self._start_ms is None or not 0 < run.timestamps_ms[place] < self._start_ms:
                    self.doubt = self.doubt or self._gone(side, run.partition, offset)
            if behind:
                kept.append(place)
        return kept_of(side, run, kept, refused)

    @property
    def unread(self) -> Hole | None:
        """The doubt about a partition that was not read yet: it may have no event left."""
        return next((self._gone(*place, offset) for place, offset in self._cut_off.items()), None)

    def _gone(self, side: Side, partition: int, offset: int) -> Hole:
        reason = (
            f"what Kafka no longer has below offset {offset:,} of {PLACE} may lie behind the start at "
            f"{self._start_text}, and what differs may be that; start at a time later than Kafka's timestamp "
            "of the first record left"
        )
        return Hole(reason, side, partition, offset)

    def _unsafe(self, side: Side, partition: int, offset: int) -> str:
        name = ("reference", "candidate")[side]
        return (
            f"no safe start: the {name} is read from offset {offset} in partition {partition} on, and the "
            f"first event there is not from before {self._start_text}, so events behind the start may be "
            "missing"
        )


class _Barrier(NamedTuple):
    """The data that identify a barrier: its canonical form; with a tolerance also its content and record.

    Barriers of one name are equal.
    """

    letter: bytes
    name: bytes
    record: bytes = b""


@dataclass
class _Epoch:
    """The events of one partition from a barrier on."""

    barrier: bytes
    runs: list[Run] = field(default_factory=list)
    size: int = 0


class _Came:
    """The barriers that came to one partition, by form, in the order of their first copies."""

    def __init__(self, close: Close | None) -> None:
        self._close = close
        self._forms: dict[bytes, dict[bytes, _Barrier]] = {}

    def note(self, barrier: _Barrier) -> bool:
        """Note a barrier; returns whether it is the first copy."""
        of_form = self._forms.setdefault(barrier.letter, {})
        return of_form.setdefault(barrier.name, barrier) is barrier

    def number(self, barrier: _Barrier) -> int:
        """The number of distinct barriers of one form that came."""
        return len(self._forms.get(barrier.letter, ()))

    def first(self, barrier: _Barrier) -> _Barrier | None:
        """The first barrier that equals the given one."""
        of_form = self._forms.get(barrier.letter, {})
        if self._close is None:
            return of_form.get(barrier.name)
        return next((one for one in of_form.values() if self._equal(one, barrier)), None)

    def _equal(self, one: _Barrier, another: _Barrier) -> bool:
        return one.name == another.name or (
            self._close is not None and self._close(one.record, another.record)
        )


EARLIER_BARRIERS = 1_000
"""Barriers before the start that are remembered, as hashes."""


class BarrierCut(Cut):
    """Compares all events from the first barrier on that is equal in all partitions of both sides.

    Events before all barriers of their partition are before the start at once; the others are held until the
    cut is found. Of equal barriers of a partition only the first counts, since a later one may not have been
    read yet. So a copy too many lies behind the start, and is compared.

    If two barriers come in one order in a partition, and in the other order in another, the order of reading
    decides which is the start. So a barrier behind the start is a hole if equal ones came before it in
    other partitions only: `EARLIER_BARRIERS` of these are remembered.

    `close` decides whether records of one canonical form are equal; without it all are. With it, all records
    taken for one barrier must be equal to each other, and each be the first of its partition that is.

    Barriers are events of `kinds`: a barrier deeper in the order also depends on all other events, but may
    be equal to that of another epoch. Beyond `limit` held events of a side its oldest epochs are given up,
    which moves the start to a later barrier.

    Complexity: O(1) an event, O(p) in the partitions for each barrier; with `close`, also O(b) in the
    barriers of its form that came to the partition that has the fewest.
    """

    by_place = True

    def __init__(
        self, canonical: Canonical, limit: int, kinds: Collection[str], close: Close | None = None
    ) -> None:
        self._canonical, self._limit, self._kinds, self._close = canonical, limit, frozenset(kinds), close
        self._epochs: dict[SidePartition, deque[_Epoch]] = {}
        self._came: dict[SidePartition, _Came] = {}
        self._held = [0, 0]
        self._sizes: Counter[SidePartition] = Counter()
        self._earlier: dict[bytes, set[SidePartition]] = {}

    @property
    def waiting(self) -> str | None:
        """The reason why nothing is compared yet."""
        if self.found:
            return None
        return "no safe start yet: no barrier has come that is equal in all partitions of both sides"

    def begin(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        """Set the partitions."""
        self._epochs = {(side, p): deque() for side, offsets in positions.items() for p in offsets}
        self._came = {place: _Came(self._close) for place in self._epochs}

    def take(self, side: Side, run: Run) -> Passed:
        """Hold a run, or let it pass once the cut is found."""
        if self.found:
            parts = [Portion(side, run, behind=True)]
            return Passed(parts, hole=self._crossing(parts))
        held = list(self._held)
        before: list[Portion] = []
        new = self._keep((side, run.partition), run, before)
        cut = next(filter(None, map(self._cut_at, new)), None)
        behind: list[Portion] = []
        if cut is None:
            self._give_up(side, before)
        else:
            behind = self._release(cut, before)
        more = (self._held[0] - held[0], self._held[1] - held[1])
        return Passed(before + behind, more, hole=self._crossing(behind))

    def _keep(self, place: SidePartition, run: Run, before: list[Portion]) -> list[_Barrier]:
        """Put a run into epochs; returns the barriers that begin one. A later copy of one begins none."""
        epochs, came = self._place(place)
        size = len(run.forms)
        barriers = ((n, self._barrier(form)) for n, form in enumerate(run.forms) if form[2] in self._kinds)
        new = {n: barrier for n, barrier in barriers if came.note(barrier)}
        starts = list(new)
        if starts[:1] != [0]:
            self._add(place, run, range(starts[0] if starts else size), before)
        for begin, end in pairwise([*starts, size]):
            epochs.append(_Epoch(new[begin].name))
            self._add(place, run, range(begin, end), before)
        return list(new.values())

    def _place(self, place: SidePartition) -> tuple[deque[_Epoch], _Came]:
        """What came to a partition; one that was added since is part of the cut from now on."""
        return self._epochs.setdefault(place, deque()), self._came.setdefault(place, _Came(self._close))

    def _add(self, place: SidePartition, run: Run, places: range, before: list[Portion]) -> None:
        """Put a part of a run into the open epoch; without one it lies before the start."""
        epochs, part = self._epochs[place], run.only(places)
        if not epochs:
            before.append(Portion(place[0], part, behind=False))
            return
        epochs[-1].runs.append(part)
        epochs[-1].size += len(places)
        self._held[place[0]] += len(places)
        self._sizes[place] += len(places)

    def _barrier(self, form: Any) -> _Barrier:
        letter = self._canonical(form[1])
        return _Barrier(letter, letter) if self._close is None else _Barrier(letter, form[1], form[3])

    def _cut_at(self, barrier: _Barrier) -> dict[SidePartition, bytes] | None:
        """The names of the barriers in all partitions that equal the given one, if they are a cut."""
        fewest = sorted(self._came, key=lambda place: self._came[place].number(barrier))
        found: dict[SidePartition, _Barrier] = {}
        for place in fewest:
            one = self._came[place].first(barrier)
            if one is None or all(epoch.barrier != one.name for epoch in self._epochs[place]):
                return None
            found[place] = one
        others = {one.name: one for one in found.values() if one.name != barrier.name}
        if any(self._came[place].first(one) != found[place] for one in others.values() for place in found):
            return None
        return {place: one.name for place, one in found.items()}

    def _release(self, cut: Mapping[SidePartition, bytes], before: list[Portion]) -> list[Portion]:
        self.found = True
        behind: list[Portion] = []
        for place, epochs in sorted(self._epochs.items()):
            while epochs[0].barrier != cut[place]:
                self._drop(place, before)
            behind += (Portion(place[0], run, behind=True) for epoch in epochs for run in epoch.runs)
        self._epochs, self._came, self._held = {}, {}, [0, 0]
        self._sizes.clear()
        return behind

    def _give_up(self, side: Side, before: list[Portion]) -> None:
        while self._held[side] > self._limit:
            queues = (place for place, epochs in self._epochs.items() if place[0] is side and epochs)
            self._drop(max(queues, key=self._sizes.__getitem__), before)

    def _drop(self, place: SidePartition, before: list[Portion]) -> None:
        """Put the oldest epoch of a partition before the start."""
        epoch = self._epochs[place].popleft()
        self._note_earlier(epoch.barrier, place)
        self._held[place[0]] -= epoch.size
        self._sizes[place] -= epoch.size
        before += (Portion(place[0], run, behind=False) for run in epoch.runs)

    def _crossing(self, behind: Iterable[Portion]) -> Hole | None:
        """Why the start is in doubt: a barrier behind it came before it only elsewhere. Told once."""
        for side, run, _ in behind if self._earlier else ():
            place = (side, run.partition)
            for form, offset in zip(run.forms, run.offsets, strict=True):
                if form[2] in self._kinds and self._elsewhere(form, place):
                    self._earlier.clear()
                    reason = (
                        f"the barrier at offset {offset:,} of {PLACE} is behind the start, and an equal one "
                        "came before it in another partition; so another barrier may be the start"
                    )
                    return Hole(reason, side, run.partition, offset)
        return None

    def _elsewhere(self, form: Any, place: SidePartition) -> bool:
        """Whether an equal barrier came before the start in other partitions, and not in this one."""
        return place not in self._earlier.get(_hashed(self._barrier(form).name), (place,))

    def _note_earlier(self, name: bytes, place: SidePartition) -> None:
        """Remember the partition of a barrier before the start."""
        hashed = _hashed(name)
        self._earlier[hashed] = self._earlier.pop(hashed, set()) | {place}
        if len(self._earlier) > EARLIER_BARRIERS:
            del self._earlier[next(iter(self._earlier))]

    def state(self) -> list[Any]:
        """The barriers before the start, each with each of its partitions."""
        return [[hashed, place] for hashed, places in self._earlier.items() for place in sorted(places)]

    def restore(self, state: list[Any] | None) -> None:
        """Take over a `state`; an earlier version saved none, or no place of a barrier that had several."""
        for hashed, place in state or ():
            self._earlier.setdefault(hashed, set()).update(
                () if place is None else [(Side(place[0]), place[1])]
            )

    def gap(self, side: Side, partition: int) -> Sequence[Run] | None:
        """The held events, which lie before the start like the lost ones: it will be behind the gap."""
        if self.found:
            return None
        before: list[Portion] = []
        epochs, _ = self._place((side, partition))
        while epochs:
            self._drop((side, partition), before)
        return [part.run for part in before]


def _hashed(name: bytes) -> bytes:
    return blake2b(name, digest_size=16).digest()
