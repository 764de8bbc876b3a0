"""Where a comparison begins: a cut that is the same on both sides, found in the events themselves.

The reference has run for months, the candidate since today. What came before the cut is settled as *before
start* and takes no part in matching; what comes from it on is compared. A cut is only a cut if equal events
are on the same side of it: their times are equal, and they stand on the same side of equal barriers.

Forms are read by their places, since the quick readers make plain tuples of them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from twinstream.core.accounts import PLACE, Hole
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Canonical, Close, Side
from twinstream.errors import DecodeError

SidePartition = tuple[Side, int]
"""A partition of a side."""


class Portion(NamedTuple):
    """Some of what came of a side, in its order, `behind` the start or before it."""

    side: Side
    run: Run
    behind: bool


class Passed(NamedTuple):
    """What became of a run: what lies before the start, and what can be compared.

    `held` is by how many events more are held of each side. `refused` are events of the run of which it
    cannot be told, by their place in it.
    """

    parts: list[Portion]
    held: tuple[int, int] = (0, 0)
    refused: tuple[tuple[int, str], ...] = ()


def kept_of(side: Side, run: Run, kept: Sequence[int], refused: Sequence[tuple[int, str]]) -> Passed:
    """What of a run is kept, by its places; all else but what is refused lies before the start.

    Which attempt has written what is told by all rows in their order; else that order does not matter.
    """
    if len(kept) == len(run.forms):
        return Passed([Portion(side, run, behind=True)])
    left_out = {*kept, *(place for place, _ in refused)}
    before = [place for place in range(len(run.forms)) if place not in left_out]
    groups = [(False, before), (True, kept)] if run.attempts is None else _in_order(before, kept)
    parts = [Portion(side, run.only(places), behind) for behind, places in groups if places]
    return Passed(parts, refused=tuple(refused))


def _in_order(before: Sequence[int], behind: Sequence[int]) -> list[tuple[bool, Sequence[int]]]:
    """Places before and behind a start, those together that follow each other."""
    places = sorted([(place, False) for place in before] + [(place, True) for place in behind])
    return [(of, [place for place, _ in group]) for of, group in groupby(places, itemgetter(1))]


class Cut(Protocol):
    """Sorts what comes into before and behind the start.

    `found`: the cut is known, and nothing is held any more. `refused` says in a sentence why nothing can ever
    be compared: what is behind the cut may be gone on one side. `by_place`: an event lies behind it for where
    it stands, and not for what it says; so what a retry has written again may lie on the other side of it.
    """

    found: bool
    refused: str | None
    by_place: bool

    @property
    def waiting(self) -> str | None:
        """Why nothing is compared yet."""
        ...

    def begin(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        """Name the partitions, and where reading begins in each."""
        ...

    def take(self, side: Side, run: Run) -> Passed:
        """Sort a run of a side."""
        ...

    def gap(self, side: Side, partition: int) -> Sequence[Run] | None:
        """Records were lost: None where that is a hole, else what was held of them, which lies before it."""
        ...


class EventTimeCut:
    """Everything from a moment on, by the events' own time: it may come in any order.

    A partition of which the beginning is gone must show that the cut lies behind that: its first event is
    from before `start`. But a late one is, too, where events behind the start are gone before it. Nothing is
    gone if that event was *written* before the start, since none is written before its own time. Else there
    is a `doubt`: what differs from here on may be what is gone. `start_ms` is the start as a time of Kafka,
    None where it is on no clock that can be told.

    Complexity: one reading of the time an event.
    """

    by_place = False

    def __init__(
        self, time_of: Callable[[bytes], Any], start: Any, start_text: str, start_ms: int | None = None
    ) -> None:
        self._time_of, self._start, self._start_text, self._start_ms = time_of, start, start_text, start_ms
        self._cut_off: dict[SidePartition, int] = {}
        self.doubt: Hole | None = None
        self.found = True
        self.refused: str | None = None

    @property
    def waiting(self) -> str | None:
        """It is known from the beginning."""
        return None

    def begin(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        """Remember the partitions that are not read from their very first record on."""
        self._cut_off = {
            (side, partition): offset
            for side, offsets in positions.items()
            for partition, offset in offsets.items()
            if offset > 0
        }

    def take(self, side: Side, run: Run) -> Passed:
        """Keep what is from the start or later."""
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
        """The doubt about a partition of which nothing was read yet: there may be no event left."""
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

    def gap(self, side: Side, partition: int) -> Sequence[Run] | None:  # noqa: ARG002
        """What was lost may lie behind the start."""
        return None


class _Barrier(NamedTuple):
    """A barrier as it is known: its canonical form; under a tolerance also its content, and the record.

    Barriers of one name are equal.
    """

    letter: bytes
    name: bytes
    record: bytes = b""


@dataclass
class _Epoch:
    """What came of one partition since a barrier, that barrier first."""

    barrier: bytes
    runs: list[Run] = field(default_factory=list)
    size: int = 0


class _Came:
    """The barriers that came to one partition, by form and name, and how often each did."""

    def __init__(self, close: Close | None) -> None:
        self._close = close
        self._times: Counter[bytes] = Counter()
        self._forms: dict[bytes, dict[bytes, _Barrier]] = {}

    def note(self, barrier: _Barrier) -> None:
        self._times[barrier.name] += 1
        self._forms.setdefault(barrier.letter, {})[barrier.name] = barrier

    def number(self, barrier: _Barrier) -> int:
        """How many barriers of one form came."""
        return len(self._forms.get(barrier.letter, ()))

    def only(self, barrier: _Barrier) -> _Barrier | None:
        """The barrier that equals one, if exactly one came that does."""
        equal = [one for one in self._forms.get(barrier.letter, {}).values() if self._equal(one, barrier)]
        return equal[0] if len(equal) == 1 and self._times[equal[0].name] == 1 else None

    def _equal(self, one: _Barrier, another: _Barrier) -> bool:
        return one.name == another.name or (
            self._close is not None and self._close(one.record, another.record)
        )


class BarrierCut:
    """Everything from the first barrier on that is equal in all partitions of both sides.

    What lies before all barriers of its partition is before the start at once; the rest is held until the cut
    is found. A barrier that came twice in a partition is no cut, since it cannot be told which of the two is
    meant. `close` tells of records of one canonical form whether they are equal; without it all are. With it,
    all that are taken for one barrier have to be equal to each other, and each to just one of each partition.

    Barriers are events of `kinds`: one further in the order depends on all others, too, and need not differ
    from that of another epoch. Beyond `limit` held events of a side its oldest epochs are given up, which
    moves the start to a later barrier.

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
        self.found = False
        self.refused: str | None = None

    @property
    def waiting(self) -> str | None:
        """Why nothing is compared yet."""
        if self.found:
            return None
        return (
            "no safe start yet: no barrier has come that is equal in all partitions of both sides and came "
            "once in each"
        )

    def begin(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        """Name the partitions."""
        self._epochs = {(side, p): deque() for side, offsets in positions.items() for p in offsets}
        self._came = {place: _Came(self._close) for place in self._epochs}

    def take(self, side: Side, run: Run) -> Passed:
        """Hold a run, or let it pass once the cut is found."""
        if self.found:
            return Passed([Portion(side, run, behind=True)])
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
        return Passed(before + behind, more)

    def _keep(self, place: SidePartition, run: Run, before: list[Portion]) -> list[_Barrier]:
        """Put a run into epochs; the barriers in it."""
        epochs = self._epochs.setdefault(place, deque())
        came = self._came.setdefault(place, _Came(self._close))
        size = len(run.forms)
        starts = [n for n, form in enumerate(run.forms) if form[2] in self._kinds]
        new = []
        if starts[:1] != [0]:
            self._add(place, run, range(starts[0] if starts else size), before)
        for begin, end in pairwise([*starts, size]):
            barrier = self._barrier(run.forms[begin])
            epochs.append(_Epoch(barrier.name))
            came.note(barrier)
            new.append(barrier)
            self._add(place, run, range(begin, end), before)
        return new

    def _add(self, place: SidePartition, run: Run, places: range, before: list[Portion]) -> None:
        """Put a part of a run into the open epoch; before all barriers it lies before the start."""
        epochs, part = self._epochs[place], run.only(places)
        if not epochs:
            before.append(Portion(place[0], part, behind=False))
            return
        epochs[-1].runs.append(part)
        epochs[-1].size += len(places)
        self._held[place[0]] += len(places)

    def _barrier(self, form: Any) -> _Barrier:
        letter = self._canonical(form[1])
        return _Barrier(letter, letter) if self._close is None else _Barrier(letter, form[1], form[3])

    def _cut_at(self, barrier: _Barrier) -> dict[SidePartition, bytes] | None:
        """The barriers of all partitions that are equal to one, by name, if they are a cut."""
        fewest = sorted(self._came, key=lambda place: self._came[place].number(barrier))
        found: dict[SidePartition, _Barrier] = {}
        for place in fewest:
            one = self._came[place].only(barrier)
            if one is None or all(epoch.barrier != one.name for epoch in self._epochs[place]):
                return None
            found[place] = one
        others = {one.name: one for one in found.values() if one.name != barrier.name}
        if any(self._came[place].only(one) != found[place] for one in others.values() for place in found):
            return None
        return {place: one.name for place, one in found.items()}

    def _release(self, cut: Mapping[SidePartition, bytes], before: list[Portion]) -> list[Portion]:
        self.found = True
        behind: list[Portion] = []
        for (side, partition), epochs in sorted(self._epochs.items()):
            while epochs[0].barrier != cut[side, partition]:
                self._drop(side, epochs.popleft(), before)
            behind += (Portion(side, run, behind=True) for epoch in epochs for run in epoch.runs)
        self._epochs, self._came, self._held = {}, {}, [0, 0]
        return behind

    def _give_up(self, side: Side, before: list[Portion]) -> None:
        while self._held[side] > self._limit:
            queues = (epochs for (of, _), epochs in self._epochs.items() if of is side and epochs)
            self._drop(side, max(queues, key=_size).popleft(), before)

    def _drop(self, side: Side, epoch: _Epoch, before: list[Portion]) -> None:
        self._held[side] -= epoch.size
        before += (Portion(side, run, behind=False) for run in epoch.runs)

    def gap(self, side: Side, partition: int) -> Sequence[Run] | None:
        """What was lost lies before the start: it will be behind the gap."""
        if self.found:
            return None
        before: list[Portion] = []
        epochs = self._epochs[side, partition]
        while epochs:
            self._drop(side, epochs.popleft(), before)
        return [part.run for part in before]


def _size(epochs: Iterable[_Epoch]) -> int:
    return sum(epoch.size for epoch in epochs)
