"""Random small inputs: a comparison file, what both topics hold, and what is true of it.

The candidate is the reference in another order that the file allows, with up to two faults that lie apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.simulation.beginnings import Beginning, behind_the_input, draw_beginning, offsets_of
from tests.simulation.comparisons import (
    BY_CLOCK,
    BY_EVENT_TIME,
    COPIED,
    EVENT_TIME,
    EVENT_TIME_PROVES,
    KEYED,
    KNOWN,
    LIMIT,
    ORDERS,
    PROVES,
    SPEAKING,
    SPREAD,
    comparison,
    shards_of,
)
from tests.simulation.differences import NOTHING, RULED, TOLERANT, Declared, declared
from tests.simulation.numbers import Letters, again, numbered
from tests.simulation.saying import OTHER, RETRIES, Spoken
from tests.simulation.scheduler import Scheduler
from tests.simulation.streams import APART, POISON, Planted, draw_events, plant, reordered, tail
from tests.simulation.topics import Row, Shape, Speaking, lay, lay_speaking
from tests.simulation.truth import Truth
from tests.support.orders import Order
from twinstream.core.events import Side
from twinstream.errors import SpecError
from twinstream.spec.file.model import Limits, Spec

CROSSING: tuple[frozenset[int], ...] = (frozenset({1}), frozenset({1, 2, 3}), *[frozenset[int]()] * 14)
"""Which keys the candidate has in other partitions than the reference."""

UNIQUE = 0.85
"""How often no event comes twice."""
SAYING = (True, False, False)
"""Whether versions say how far they are."""


@dataclass(frozen=True)
class Input:
    """One comparison and both topics, by side in the order in which they are written.

    `only_by_order`: nothing but the order proves a difference. `all_count`: no difference can be a known one.
    Where barriers have copies neither is said, since `truth` knows nothing of them. `ambiguous`: there are
    events that come twice, and may be within the tolerance of each other or not.
    """

    order: Order
    spec: Spec
    rows: tuple[list[Row], list[Row]]
    partitions: tuple[int, int]
    faults: tuple[Planted, ...]
    truth: Truth
    only_by_order: bool
    all_count: bool
    shards: int = 1
    said: tuple[list[Spoken], list[Spoken]] = ([], [])
    declared: Declared = NOTHING
    ambiguous: bool = False

    @property
    def poisoned(self) -> bool:
        """Whether a matcher falls over one of the records."""
        return any(row.record == POISON for rows in self.truth.rows for row in rows)

    @property
    def uneven(self) -> bool:
        """Whether a retry has written something else than the attempt before it, if only before the start."""
        return any(map(_is_other, self.rows[1]))

    @property
    def compares_uneven(self) -> bool:
        """Whether what it has written so is compared."""
        return any(map(_is_other, self.truth.rows[1]))

    @property
    def limited(self) -> bool:
        """Whether a limit may be reached.

        Never with a fault, so that no side waits for what never comes; nor with a start at a barrier: of the
        events before it a share of the limit is held, so which barrier it is depends on the reading.
        """
        return self.spec.limits.unmatched_events == LIMIT

    @property
    def unlimited(self) -> Spec:
        """The comparison file without that limit: whether it is reached depends on how both are read."""
        return self.spec.model_copy(update={"limits": Limits(lead=self.spec.limits.lead)})


def _is_other(row: Row) -> bool:
    return row.letter is not None and b'"v":%d' % OTHER in row.record


class Outputs(NamedTuple):
    """What both versions wrote of one input. `unique`: no event comes twice.

    `tolerant`: the numbers of the candidate are a little different.
    """

    order: Order
    unique: bool
    tolerant: bool
    streams: tuple[list[Any], list[Any]]
    faults: tuple[Planted, ...]


def draw_input(scheduler: Scheduler) -> Input:
    """A comparison with its topics."""
    outputs = _outputs(scheduler)
    order, faults = outputs.order, outputs.faults
    most = 3 if order in SPREAD else 1
    partitions = scheduler.number(1, most), scheduler.number(1, most)
    more = _more(scheduler, outputs)
    if faults and more in BY_EVENT_TIME:
        partitions = _filled(partitions[0], outputs.streams[0]), _filled(partitions[1], outputs.streams[0])
    if crossing := _crossing(scheduler, order, more):
        partitions = (scheduler.aside("each", (2, 3)),) * 2
    begins = Beginning("earliest", {}, outputs.streams)
    if more in ({}, KNOWN, *SPEAKING) and order not in COPIED:
        says, tolerant = more in SPEAKING, outputs.tolerant
        begins = draw_beginning(scheduler, order, outputs.streams, says=says, tolerant=tolerant)
    step_ms = 700 if more is PROVES else scheduler.one_of((1, 20, 20, 4000))
    limited = begins.at != "barrier" and not faults and scheduler.aside("limited", (True, *[False] * 7))
    differences = _declared(scheduler, outputs, more, max(step_ms, 1000 * (more in BY_EVENT_TIME)))
    file = {**more, **differences.file}
    shards, file, partitions = _divided(scheduler, order, file, begins, partitions, crosses=bool(crossing))
    spec = comparison(order, {**file, **begins.file}, limited=limited)
    keyed = order in KEYED or order == COPIED[0] or shards > 1
    ambiguous = outputs.tolerant and not outputs.unique
    letters = Letters(unique=not ambiguous)
    shapes = [
        Shape(partitions[0], step_ms, order, keyed),
        Shape(partitions[1], step_ms, order, keyed, crossing),
    ]
    said: tuple[list[Spoken], list[Spoken]] = ([], [])
    if more in SPEAKING:
        uneven = more is RETRIES and not faults and scheduler.aside("uneven", (True, False))
        how = Speaking(more is RETRIES, uneven, _exact(scheduler, begins), outputs.tolerant)
        sides, said = lay_speaking(scheduler, begins.streams, letters, shapes, how)
    else:
        left, right = (lay(scheduler, begins.streams[side], letters, shapes[side]) for side in Side)
        sides = left, right
    compared = sides
    if begins.at == "offsets":
        spec = comparison(order, {**file, **offsets_of(sides, begins.earlier, partitions)}, limited=limited)
        compared = sides[0][begins.earlier[0] :], sides[1][begins.earlier[1] :]
    elif begins.at == "input":
        compared = behind_the_input(sides, said)
    scheduler.note(
        f"order {order}, {len(outputs.streams[0])} events, faults {[*map(str, faults)]}, partitions "
        f"{partitions}, {step_ms} ms each, {file or 'nothing more'}, start {begins.at}, "
        f"shards {shards}"
        + (f", keys {sorted(crossing)} cross" if crossing else "")
        + (f", at most {LIMIT} unmatched" if limited else "")
    )
    exact = order not in COPIED
    return Input(
        order,
        spec,
        sides,
        partitions,
        faults,
        Truth(order, letters.events, compared),
        only_by_order=exact and more not in BY_CLOCK,
        all_count=exact and not differences.may_explain(faults),
        shards=shards,
        said=said,
        declared=differences,
        ambiguous=ambiguous,
    )


def _outputs(scheduler: Scheduler) -> Outputs:
    order = scheduler.one_of(ORDERS)
    unique = scheduler.chance(UNIQUE)
    events = draw_events(scheduler, unique=unique)
    tolerant = scheduler.aside("tolerance", TOLERANT) and (unique or not _has_rules(order))
    numbers = scheduler.apart("numbers")
    if tolerant:
        events = numbered(numbers, events)
    other: list[Any] = reordered(scheduler, order, events)
    if tolerant:
        other = again(numbers, other)
    faults: list[Planted] = []
    if len({event["n"] for event in events}) == len(events):
        place = scheduler.number(0, 30)
        for _ in range(scheduler.weighted({0: 1.0, 1: 2.0, 2: 1.0})):
            planted = plant(scheduler, order, other, place)
            place = (place if planted is None else planted.end) + APART + scheduler.number(0, 20)
            faults += [] if planted is None else [planted]
    if faults:
        behind = tail(len(events), {event["k"] for event in events})
        events += behind
        other += again(numbers, behind) if tolerant else behind
    if scheduler.aside("poison", (True, *[False] * 9)):
        poisoned: list[Any] = scheduler.one_of((events, other))
        poisoned.insert(scheduler.number(0, len(poisoned)), POISON)
    return Outputs(order, unique, tolerant, (events, other), tuple(faults))


def _has_rules(order: Order) -> bool:
    """Whether there is a list of rules: under one, events that come twice are paired as they come."""
    return isinstance(order, dict) and ("dependent" in order or _has_rules(order.get("inner")))


def _declared(scheduler: Scheduler, outputs: Outputs, more: dict[str, Any], step_ms: int) -> Declared:
    """What the comparison file says of differences."""
    known = more is KNOWN or scheduler.aside("known", RULED)
    without = Declared(tolerant=outputs.tolerant, identity=False)
    try:
        comparison(outputs.order, without.file)
    except SpecError:  # Without an identity nothing tells partners.
        without = NOTHING
    needs = without is NOTHING
    return declared(scheduler, rules=known, tolerant=outputs.tolerant, needs_identity=needs, step_ms=step_ms)


def _more(scheduler: Scheduler, outputs: Outputs) -> dict[str, Any]:
    """What the comparison file says besides the order."""
    more: dict[str, Any] = scheduler.one_of(({}, {}, {}, {}, KNOWN, PROVES))
    more = more or scheduler.aside("event time", ({}, {}, {}, {}, EVENT_TIME, EVENT_TIME_PROVES))
    if not more and outputs.unique and scheduler.aside("says", SAYING):
        more = scheduler.aside("retries", SPEAKING)
    return more


def _divided(
    scheduler: Scheduler,
    order: Order,
    file: dict[str, Any],
    begins: Beginning,
    partitions: tuple[int, int],
    *,
    crosses: bool,
) -> tuple[int, dict[str, Any], tuple[int, int]]:
    """How many matchers share the work, with the file and the partitions that they need."""
    most = 1 if crosses else max(partitions)
    shards = shards_of(scheduler, order, {**file, **begins.file}, most)
    if shards == 1:
        return 1, file, partitions
    return shards, {**file, "co_partitioned": True}, (most, most)


def _crossing(scheduler: Scheduler, order: Order, more: dict[str, Any]) -> frozenset[int]:
    """Keys that the candidate has in other partitions than the reference, now and then.

    Never a key in two partitions of one side: that is watched by sample (`key_partitions`), so whether it is
    told before an order that is not there looks like a difference depends on how the records are read.
    """
    if order not in SPREAD or order in COPIED or more in BY_EVENT_TIME:
        return frozenset()
    return scheduler.aside("crossing", CROSSING)


def _exact(scheduler: Scheduler, begins: Beginning) -> bool:
    """Whether versions say what they have consumed, and not only below what they have consumed everything."""
    if any(isinstance(one, bytes) for stream in begins.streams for one in stream):
        return False
    return begins.at == "input" or scheduler.aside("exact", (True, False))


def _filled(most: int, events: Sequence[Any]) -> int:
    """The most partitions such that each has one of the keys.

    When an empty one is idle is a matter of the reader's time, and so is whether it holds the frontier back.
    """
    keys = {event["k"] for event in events if event != POISON}
    return next(count for count in range(most, 0, -1) if len({key % count for key in keys}) == count)
