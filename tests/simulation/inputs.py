"""Random small inputs: a comparison file, what both topics hold, and what is true of it.

The candidate is the reference in another order that the file allows, with up to two faults that lie apart.
`Truth` answers from the definitions alone (`tests.support.oracle`, `tests.support.orders`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import orjson

from tests.simulation.saying import RETRIES, SAYS, Spoken, spoken, written
from tests.simulation.scheduler import START_MS, Scheduler
from tests.support.oracle import PlainMatcher
from tests.support.orders import KINDS, Event, Order, dependent, spec_of
from twinstream.core.events import Side
from twinstream.core.sharding import Shard
from twinstream.spec.marks import Headers
from twinstream.spec.model import Spec
from twinstream.spec.sharding import Part, ShardBy, refusal, way_of

APART = 60
"""Events between two faults, so that neither can be part of the other's explanation."""
TAIL_ROUNDS = 16

KEYED: tuple[Order, ...] = (
    {"per_key": ["k"]},
    {"by_key": ["k"], "inner": {"dependent": [["e", "a"], ["a", "a"]]}},
    {"by_key": ["k"], "inner": {"barrier": "e", "inner": "unordered"}},
)
"""Only events of one key are dependent, so that keys may stand in partitions of their own."""
COPIED: tuple[Order, ...] = (
    {"barrier": "e", "copies": "per_partition", "inner": {"per_key": ["k"]}},
    {"barrier": "e", "copies": "per_partition", "inner": "unordered"},
)
"""A barrier stands in every partition."""
SPREAD: tuple[Order, ...] = (*KEYED, *COPIED, "unordered")
"""Orders whose events may stand in several partitions."""
ORDERS: tuple[Order, ...] = (
    *SPREAD,
    "total",
    {"barrier": "e", "inner": {"per_key": ["k"]}},
    {"barrier": "e", "inner": "unordered"},
    {"dependent": [["e", "*"]]},
    {"dependent": [["a", "b"]]},
    {
        "dependent": [
            {"pair": ["a", "a"], "same": ["k"]},
            {"pair": ["e", "a"], "within": {"field": "ts", "less_than": 5}},
        ]
    },
    {"dependent": [{"pair": ["e", "a"], "before": {"field": "ts"}}, ["e", "e"]]},
    {
        "parallel": {
            "one": {"kinds": ["a", "b"], "order": {"per_key": ["k"]}},
            "two": {"kinds": ["c", "e"], "order": "total"},
        }
    },
)
FAULTS = ("drop", "duplicate", "field", "reorder", "garbage")
POISON = b"poison"
"""A record that every matcher falls over."""

KNOWN = {
    "known_differences": [
        {
            "id": "known",
            "when": {"divergences": ["changed"]},
            "owner": "somebody",
            "expires": "2999-01-01",
            "ceiling": {"count": 10},
        }
    ]
}
PROVES = {"overdue": {"after": "20s", "proves": True}}
EVENT_TIME = {"overdue": {"clock": "event_time", "field": "ts", "unit": "s", "after": "20s"}}
EVENT_TIME_PROVES = {"overdue": {**EVENT_TIME["overdue"], "proves": True}}
BY_EVENT_TIME = (EVENT_TIME, EVENT_TIME_PROVES)
SPEAKING = (SAYS, RETRIES)
BY_CLOCK = (PROVES, EVENT_TIME_PROVES, *SPEAKING)
"""Where a clock alone proves a difference."""


class Row(NamedTuple):
    """A record of a topic; `letter` numbers what is compared of it, None where it is no event."""

    partition: int
    offset: int
    record: bytes
    timestamp_ms: int
    letter: int | None
    headers: Headers = ()


@dataclass(frozen=True)
class Input:
    """One comparison and both topics, by side in the order in which they are written.

    `only_by_order`: nothing but the order proves a difference. `all_count`: no difference is a known one.
    Where barriers have copies neither is said, since `truth` knows nothing of them.
    """

    order: Order
    spec: Spec
    rows: tuple[list[Row], list[Row]]
    partitions: tuple[int, int]
    faults: tuple[str, ...]
    truth: Truth
    only_by_order: bool
    all_count: bool
    shards: tuple[int, ...] = (1,)
    shard_by: ShardBy = "auto"
    said: tuple[list[Spoken], list[Spoken]] = ([], [])

    @property
    def poisoned(self) -> bool:
        """Whether a matcher falls over one of the records."""
        return any(row.record == POISON for rows in self.rows for row in rows)


def draw_input(scheduler: Scheduler) -> Input:
    """A comparison with its topics."""
    order = scheduler.one_of(ORDERS)
    unique = scheduler.chance(0.85)
    events = _events(scheduler, unique=unique)
    other = _reordered(scheduler, order, events)
    faults: list[str] = []
    if len({event["n"] for event in events}) == len(events):
        place = scheduler.number(0, 30)
        for _ in range(scheduler.weighted({0: 1.0, 1: 2.0, 2: 1.0})):
            faults += _plant(scheduler, order, other, place)
            place += APART + scheduler.number(0, 20)
    if faults:
        tail = _tail(len(events), {event["k"] for event in events})
        events += tail
        other += tail
    if scheduler.aside("poison", (True, *[False] * 9)):
        poisoned = scheduler.one_of((events, other))
        poisoned.insert(scheduler.number(0, len(poisoned)), POISON)
    most = 3 if order in SPREAD else 1
    partitions = scheduler.number(1, most), scheduler.number(1, most)
    more: dict[str, Any] = scheduler.one_of(({}, {}, {}, {}, KNOWN, PROVES))
    more = more or scheduler.aside("event time", ({}, {}, {}, {}, EVENT_TIME, EVENT_TIME_PROVES))
    if faults and more in BY_EVENT_TIME:
        partitions = _filled(partitions[0], events), _filled(partitions[1], events)
    if not more and unique and scheduler.aside("says", (True, *[False] * 6)):
        more = scheduler.aside("retries", SPEAKING)
    step_ms = 700 if more is PROVES else scheduler.one_of((1, 20, 20, 4000))
    spec = _spec(order, more)
    shards, shard_by = _division(scheduler, spec, partitions)
    keyed = order in KEYED or order == COPIED[0] or shards != (1,)
    letters: dict[bytes, int] = {}
    shapes = [Shape(count, step_ms, order, keyed) for count in partitions]
    if more in SPEAKING:
        sides, said = _speaking(scheduler, (events, other), letters, shapes, retries=more is RETRIES)
    else:
        sides = (
            _rows(scheduler, events, letters, shapes[Side.LEFT]),
            _rows(scheduler, other, letters, shapes[Side.RIGHT]),
        )
        said = ([], [])
    truth = Truth(order, [orjson.loads(record) for record in letters], sides)
    scheduler.note(
        f"order {order}, {len(events)} events, faults {faults}, partitions {partitions}, {step_ms} ms each, "
        f"{more or 'nothing more'}, shards {shards} by {shard_by}"
    )
    exact = order not in COPIED
    return Input(
        order,
        spec,
        sides,
        partitions,
        tuple(faults),
        truth,
        only_by_order=exact and more not in BY_CLOCK,
        all_count=exact and more is not KNOWN,
        shards=shards,
        shard_by=shard_by,
        said=said,
    )


def _filled(most: int, events: Sequence[Any]) -> int:
    """The most partitions such that each has one of the keys.

    When an empty one is idle is a matter of the reader's time, and so is whether it holds the frontier back.
    """
    keys = {event["k"] for event in events if event != POISON}
    return next(count for count in range(most, 0, -1) if len({key % count for key in keys}) == count)


def _division(
    scheduler: Scheduler, spec: Spec, partitions: tuple[int, int]
) -> tuple[tuple[int, ...], ShardBy]:
    """The numbers of matchers that a run may have, and how they divide the work."""
    if not scheduler.chance(0.35):
        return (1,), "auto"
    by: ShardBy = scheduler.one_of(("auto", "partition", "key"))
    fit = [
        number
        for number in (2, 3)
        if refusal(spec, number, by) is None and way_of(spec, Part(Shard(0, number), by), partitions)
    ]
    return (1, *fit), by


def _spec(order: Order, more: dict[str, Any]) -> Spec:
    return spec_of(
        order,
        identity=["n"],
        show=["type", "k", "n", "v"],
        limits={"lead": "1d"},
        evidence={"matched": 1, "seconds": 0, "may_be_absent": list(KINDS)},
        undecodable={"budget": 5},
        **more,
    )


def _events(scheduler: Scheduler, *, unique: bool) -> list[Event]:
    size, keys = scheduler.number(5, 130), scheduler.number(1, 3)
    rare = scheduler.one_of((0.05, 0.2))
    return [
        {
            "type": "e" if scheduler.chance(rare) else scheduler.one_of(KINDS[:3]),
            "k": scheduler.number(1, keys),
            "n": number if unique else number // 3 % 7,
            "ts": number if unique else number // 5 % 11,
            "v": 0,
        }
        for number in range(size)
    ]


def _tail(number: int, keys: set[int]) -> list[Event]:
    """Equal events on both sides behind the last fault, so that the explanation of each is final."""
    kinds = ("e", *"abc" * TAIL_ROUNDS, "e")
    return [
        {"type": kind, "k": key, "n": number, "ts": number, "v": 0}
        for number, (kind, key) in enumerate(product(kinds, sorted(keys)), number)
    ]


def _reordered(scheduler: Scheduler, order: Order, events: Sequence[Event]) -> list[Event]:
    """The same, with neighbours swapped that may be."""
    found = list(events)
    for _ in range(len(found) * scheduler.one_of((0, 1, 3))):
        place = scheduler.number(0, len(found) - 2)
        if not dependent(order, found[place], found[place + 1]):
            found[place], found[place + 1] = found[place + 1], found[place]
    return found


def _plant(scheduler: Scheduler, order: Order, events: list[Any], place: int) -> list[str]:
    """One fault at or behind a place; what it is called, or nothing where there is no room for it."""
    if place >= len(events):
        return []
    fault = scheduler.one_of(FAULTS)
    if fault == "drop":
        del events[place]
    elif fault == "duplicate":
        events.insert(place, events[place])
    elif fault == "field":
        events[place] = {**events[place], "v": 1}
    elif fault == "garbage":
        events.insert(place, b"garbage")
    else:
        return _swap(order, events, place)
    return [f"{fault} at {place}"]


def _swap(order: Order, events: list[Any], place: int) -> list[str]:
    for here in range(place, min(place + 20, len(events) - 1)):
        if dependent(order, events[here], events[here + 1]):
            events[here], events[here + 1] = events[here + 1], events[here]
            return [f"reorder at {here}"]
    return []


class Shape(NamedTuple):
    """How a stream lies in its topic."""

    partitions: int
    step_ms: int
    order: Order
    keyed: bool

    def places(self, event: Event, home: int) -> Sequence[int]:
        """The partitions in which an event stands, by its key, by chance, or, as a barrier, in each."""
        if self.order in COPIED and event["type"] == "e":
            return range(self.partitions)
        return (event["k"] % self.partitions if self.keyed else home,)


def _rows(scheduler: Scheduler, stream: Sequence[Any], letters: dict[bytes, int], shape: Shape) -> list[Row]:
    following = dict.fromkeys(range(shape.partitions), 0)
    homes: dict[int | None, int] = {}
    gaps = scheduler.one_of((0.0, 0.0, 0.1))
    rows = []
    for number, event in enumerate(stream):
        garbage = isinstance(event, bytes)
        record = event if garbage else orjson.dumps(event)
        letter = None if garbage else letters.setdefault(record, len(letters))
        home = homes.setdefault(letter, scheduler.number(0, shape.partitions - 1))
        for partition in (home,) if garbage else shape.places(event, home):
            offset = following[partition] + scheduler.chance(gaps)
            following[partition] = offset + 1
            rows.append(Row(partition, offset, record, START_MS + number * shape.step_ms, letter))
    return rows


def _speaking(
    scheduler: Scheduler,
    streams: tuple[Sequence[Any], Sequence[Any]],
    letters: dict[bytes, int],
    shapes: Sequence[Shape],
    *,
    retries: bool,
) -> tuple[tuple[list[Row], list[Row]], tuple[list[Spoken], list[Spoken]]]:
    """The rows of both sides with their marks, a replay as no event, and what the versions say."""
    retried = partial(_reordered, scheduler, shapes[0].order) if retries else None
    sides: tuple[list[Row], list[Row]] = ([], [])
    said: tuple[list[Spoken], list[Spoken]] = ([], [])
    for side in Side:
        wrote = written(scheduler, streams[side], retried)
        rows = _rows(scheduler, [one.event for one in wrote], letters, shapes[side])
        numbers = [(row.timestamp_ms - START_MS) // shapes[side].step_ms for row in rows]
        for number, row in zip(numbers, rows, strict=True):
            letter = None if wrote[number].replay else row.letter
            sides[side].append(row._replace(headers=wrote[number].headers, letter=letter))
        places = [(number, row.partition, row.offset) for number, row in zip(numbers, rows, strict=True)]
        said[side].extend(spoken(side, wrote, places))
    return sides, said


Positions = Mapping[Side, Mapping[int, int]]


class Truth:
    """What is true of both topics, whatever any process says: read from the definitions."""

    def __init__(self, order: Order, events: Sequence[Event], rows: tuple[list[Row], list[Row]]) -> None:
        self._order, self._events, self._rows = order, events, rows
        self._dependent: dict[tuple[int, int], bool] = {}
        self._differ: dict[object, bool] = {}
        self._offsets = [
            {
                partition: [row.offset for row in side_rows if row.partition == partition]
                for partition in {row.partition for row in side_rows}
            }
            for side_rows in rows
        ]

    def written(self, side: Side, positions: Mapping[int, int]) -> int:
        """How many records stand below these positions."""
        return sum(
            bisect_left(self._offsets[side].get(partition, []), offset)
            for partition, offset in positions.items()
        )

    def letters_below(self, side: Side, positions: Mapping[int, int]) -> Counter[int]:
        """The events below these positions."""
        return Counter(row.letter for row in self._below(side, positions) if row.letter is not None)

    def differ(self, positions: Positions) -> bool:
        """Whether what stands below these positions can never become equivalent, whatever follows."""
        key = tuple(tuple(sorted(positions[side].items())) for side in Side)
        if key not in self._differ:
            self._differ[key] = self._decide(*(self._below(side, positions[side]) for side in Side))
        return self._differ[key]

    def _below(self, side: Side, positions: Mapping[int, int]) -> list[Row]:
        return [row for row in self._rows[side] if row.offset < positions.get(row.partition, 0)]

    def _decide(self, left: Sequence[Row], right: Sequence[Row]) -> bool:
        matcher = PlainMatcher[int](self._depend, int.__eq__)
        for place in range(max(len(left), len(right))):
            for side, rows in enumerate((left, right)):
                if place < len(rows) and (letter := rows[place].letter) is not None:
                    matcher.feed(side, letter)
        return matcher.diverged

    def _depend(self, one: int, other: int) -> bool:
        key = (one, other)
        if key not in self._dependent:
            self._dependent[key] = dependent(self._order, self._events[one], self._events[other])
        return self._dependent[key]
