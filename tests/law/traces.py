"""Random traces: two sequences of one declaration, of which one is the other with a few faults.

The candidate is the reference, reordered as the order allows, then with faults planted. So most traces are
near the border between equal and different, where how a comparison is fed is most likely to show.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from tests.law.declarations import BARRIER, Declaration, Draw
from tests.support.orders import commute
from twinstream.core.arrivals.attempts import Attempt

Event = dict[str, Any]
Written = tuple[Event, Attempt | None]
STEP = 0.25
"""By how much values lie apart where a tolerance or a rounding is declared."""


class Row(NamedTuple):
    """One record of a side: its number there, its event, how it is written, what wrote it, and where.

    The number says when a run feeds it, and stays where others are taken away.
    """

    number: int
    event: Event
    style: int = 0
    attempt: Attempt | None = None
    partition: int = 0


class Trace(NamedTuple):
    """The sequence of each side."""

    reference: tuple[Row, ...]
    candidate: tuple[Row, ...]

    @property
    def partitions(self) -> int:
        """How many partitions each side has."""
        return 1 + max((row.partition for row in (*self.reference, *self.candidate)), default=0)


def trace(draw: Draw, declaration: Declaration) -> Trace:
    """A random trace for a declaration."""
    rng, maker = draw.rng, _Maker(draw, declaration)
    reference = [maker.event() for _ in range(_length(rng))]
    candidate = [dict(event) for event in reference]
    commute(rng, declaration.order, candidate, rounds=rng.choice([0, 1, 5]), chance=0.5)
    candidate = [maker.again(event) for event in candidate]
    for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 2, 3, 4, 6])):
        rng.choice(FAULTS)(maker, candidate)
    return Trace(*(maker.rows(maker.copied(side)) for side in (reference, candidate)))


def _length(rng: random.Random) -> int:
    """Mostly short: a long trace takes as much time as a hundred short ones."""
    lengths = [rng.randint(1, 8), rng.randint(4, 24), rng.randint(16, 60), rng.randint(60, 320)]
    return rng.choices(lengths, [36, 36, 25, 3])[0]


class _Maker:
    """Makes the events of a declaration; `few` different ones, so that many are equal, or distinct."""

    def __init__(self, draw: Draw, declaration: Declaration) -> None:
        self.draw, self.rng, self.declaration = draw, draw.rng, declaration
        self.few = self.rng.random() < 0.4
        self.repeats = self.rng.random() < 0.4 and "repeated_identity" in draw.allowed
        self.in_steps = bool(declaration.equality("tolerance") or declaration.equality("quantum"))
        self.jitters = bool(declaration.equality("tolerance")) and self.rng.random() < 0.3
        self.barriers = self.rng.choice([0.03, 0.1, 0.25])
        self.partitions = 1
        if declaration.placed_by is not None and "partitions" in draw.allowed:
            self.partitions = self.rng.choice([1, 2, 3])
        self._made = 0

    def event(self, kind: str | None = None) -> Event:
        rng, self._made = self.rng, self._made + 1
        event: Event = {"type": kind or self._kind(), "k": rng.randrange(3), "m": rng.randrange(2)}
        event |= {"v": self._value(), "ts": rng.choice([0, 0.5, 1, 2, 3])}
        if "identity" in self.declaration.file:
            event["id"] = rng.randrange(3) if self.repeats else self._made
        if self.declaration.equality("ignore"):
            event["noise"] = rng.randrange(9)
        return event

    def _kind(self) -> str:
        kinds = self.declaration.kinds
        if BARRIER in kinds and self.rng.random() < self.barriers:
            return BARRIER
        return self.rng.choice([kind for kind in kinds if kind != BARRIER])

    def _value(self) -> float:
        value = self.rng.randrange(2) if self.few else self._made
        return self.rng.randrange(6) * STEP + (0 if self.few else value) if self.in_steps else value

    def changed(self, event: Event) -> Event:
        """Another value, within a tolerance or beyond it; or another key."""
        by = self.rng.choice([STEP, -STEP, 2 * STEP, 3 * STEP, 10]) if self.in_steps else 1000
        other = {**event, "v": event["v"] + by}
        if self.rng.random() < 0.1:
            other["k"] = (event["k"] + 1) % 3
        return other

    def again(self, event: Event) -> Event:
        """The same event of another run: what is not compared differs, and values do a little."""
        other = dict(event)
        if "noise" in event:
            other["noise"] = self.rng.randrange(9)
        if self.jitters:
            other["v"] += self.rng.choice([0, STEP, -STEP])
        return other

    def rows(self, events: list[Event]) -> tuple[Row, ...]:
        """What a side writes: the events, each spelled in some style; by attempts where replays are told."""
        written = self._batches(events) if self.declaration.replays else [(event, None) for event in events]
        return tuple(
            Row(number, event, self.rng.randrange(4), attempt, self._partition(event))
            for number, (event, attempt) in enumerate(written)
        )

    def _partition(self, event: Event) -> int:
        """Where an event is written; a copy of a barrier says it itself.

        What a retry writes again goes where it went before: else which of both is new would depend on what is
        read first, and with epochs that is not all the same.
        """
        if self.partitions == 1:
            return 0
        if "copy" in event:
            return int(event.pop("copy"))
        fields = self.declaration.placed_by
        if not fields and not (self.declaration.replays or self.declaration.has_copies):
            return self.rng.randrange(self.partitions)
        return int(sum(event[name] for name in fields or ["k"])) % self.partitions

    def copied(self, events: list[Event]) -> list[Event]:
        """The events with a copy of each barrier for each partition, where barriers have copies."""
        if not self.declaration.has_copies or self.partitions == 1:
            return events
        lost = self.rng.random() < 0.1 and "lost_copy" in self.draw.allowed
        found: list[Event] = []
        for event in events:
            barrier = event["type"] == BARRIER
            copies = range(self.partitions) if barrier else ()
            found += [{**event, "copy": copy} for copy in copies] if barrier else [event]
            if barrier and lost and self.rng.random() < 0.3:
                found.pop()
        return found

    def _batches(self, events: list[Event]) -> list[Written]:
        """The events in batches; what a killed attempt has written may come later than the next batch."""
        rng = self.rng
        ends = sorted({rng.randint(0, len(events)) for _ in range(rng.randint(0, 6))} | {len(events)})
        log: list[Written] = []
        late: list[Written] = []
        for number, (begin, end) in enumerate(pairwise([0, *ends])):
            batch = events[begin:end]
            late_before, late = late, []
            if rng.random() < 0.5:
                killed = self._killed(number, batch)
                cut = len(killed) if rng.random() < 0.8 else rng.randint(0, len(killed))
                log += killed[:cut]
                late = killed[cut:]
            log += [(event, Attempt("q", number, "last", 0, 1)) for event in batch] + late_before
        return log + late

    def _killed(self, number: int, batch: list[Event]) -> list[Written]:
        """What an attempt wrote that was tried again: all of a batch, a part of it, or something else."""
        rng = self.rng
        wrote = [self.again(event) for event in batch[: rng.choice([len(batch), rng.randint(0, len(batch))])]]
        if rng.random() < 0.2:
            wrote = [event for event in wrote if rng.random() < 0.7]
        if wrote and rng.random() < 0.2 and "uneven" in self.draw.allowed:
            change(self, wrote)
        execution, attempt = rng.choice([("last", 0), ("first", 0)])
        return [(event, Attempt("q", number, execution, 0, attempt)) for event in wrote]


# -- faults --------------------------------------------------------------------------------------------------


def _place(maker: _Maker, events: list[Event]) -> int:
    return maker.rng.randrange(len(events)) if events else 0


def lose(maker: _Maker, events: list[Event]) -> None:
    place = _place(maker, events)
    del events[place : place + 1]


def add(maker: _Maker, events: list[Event]) -> None:
    events.insert(_place(maker, events), maker.event())


def duplicate(maker: _Maker, events: list[Event]) -> None:
    """A copy, right behind or later; rows are spelled in any style, so it may be spelled otherwise."""
    place = _place(maker, events)
    to = place + maker.rng.choice([1, 1, 2, 20])
    events[to:to] = [dict(event) for event in events[place : place + 1]]


def change(maker: _Maker, events: list[Event]) -> None:
    place = _place(maker, events)
    events[place : place + 1] = map(maker.changed, events[place : place + 1])


def swap(maker: _Maker, events: list[Event]) -> None:
    place = _place(maker, events)
    events[place : place + 2] = reversed(events[place : place + 2])


def move(maker: _Maker, events: list[Event]) -> None:
    """An event comes later, often behind some barrier."""
    place = _place(maker, events)
    moved = events[place : place + 1]
    del events[place : place + 1]
    to = _target(maker, events, place)
    events[to:to] = moved


def move_and_change(maker: _Maker, events: list[Event]) -> None:
    """An event comes later, and with another value."""
    place = _place(maker, events)
    moved = [maker.changed(event) for event in events[place : place + 1]]
    del events[place : place + 1]
    to = _target(maker, events, place)
    events[to:to] = moved


def _target(maker: _Maker, events: list[Event], place: int) -> int:
    """Where an event goes that stood at a place: some events on, or behind one of the next barriers."""
    rng = maker.rng
    barriers = [at + 1 for at in range(place, len(events)) if events[at]["type"] == BARRIER]
    if barriers and rng.random() < 0.4:
        return rng.choice(barriers[:3]) + rng.randrange(3)
    return place + rng.choice([rng.randint(1, 4), rng.randint(1, 40), rng.randint(1, 200)])


def lose_barrier(maker: _Maker, events: list[Event]) -> None:
    barriers = [at for at, event in enumerate(events) if event["type"] == BARRIER]
    if barriers:
        del events[maker.rng.choice(barriers)]


def add_barrier(maker: _Maker, events: list[Event]) -> None:
    if BARRIER in maker.declaration.kinds:
        events.insert(_place(maker, events), maker.event(BARRIER))


FAULTS: tuple[Callable[[_Maker, list[Event]], None], ...] = (
    lose,
    add,
    duplicate,
    change,
    change,
    swap,
    move,
    move,
    move_and_change,
    lose_barrier,
    add_barrier,
)
