"""What the benchmark of matching feeds: for each index structure an order, and two streams that agree on it.

Event n of a stream is the same in every run: its kind, key and time follow from n. The right stream brings
the same events in *their order* (first in, first out) or in a *random* one that the declared order allows:
shuffled in blocks as long as the drift, so that each partner is there when it is asked for.

Where some events may not pass others, the stream comes in *phases*: events of one phase are independent but
for those of one key, events of two phases are not. Barriers stand at the end of a phase.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loadtest.plain_pairwise import Dependent, Item

PHASE = 1000
"""Events of a phase, the barrier at its end among them."""
MORE_US = 0.6
RANDOM_TIMES = 7_368_787
"""A prime: times that are multiples of a number modulo it are all different."""
Partners = Literal["fifo", "random"]


@dataclass(frozen=True)
class Scenario:
    """An order to measure.

    `order` is that of the comparison file, `dependent` says the same to the plain matcher. `kinds` are the
    kinds of even and of odd phases. `keyed`: the order reads the key; `sequences`: events of one key may not
    pass each other. `scattered`: times are in no order. `rules` is how many apply to an event.
    `target_us` is what an event may take with up to 10,000 unmatched; with a million it may take `MORE_US`
    longer than with ten, or `times` as long.
    """

    name: str
    order: str
    dependent: Dependent
    kinds: tuple[tuple[str, ...], tuple[str, ...]] = (("event",), ("event",))
    barrier: bool = False
    phases: bool = False
    keyed: bool = False
    sequences: bool = False
    scattered: bool = False
    rules: int = 0
    target_us: float = 1.0
    times: float | None = None

    @property
    def spec(self) -> str:
        """The comparison file."""
        names = dict.fromkeys([*self.kinds[0], *self.kinds[1], *(["barrier"] if self.barrier else [])])
        kinds = "".join(f"  {name}: {{where: {{type: {name}}}}}\n" for name in names)
        return (
            f"version: 1\nname: bench\nreference: {{topic: left}}\ncandidate: {{topic: right}}\n"
            f"{'kinds:' if len(names) > 1 else ''}\n{kinds if len(names) > 1 else ''}"
            f"order: {self.order}\n"
            "limits: {unmatched_events: 100000000}\n"
        )

    def allows(self, partners: Partners, keys: int) -> bool:
        """Whether it makes a difference to measure this."""
        return (keys == 1 or self.keyed) and (partners == "fifo" or not self.sequences or keys > 1)

    def phase(self, partners: Partners, drift: int) -> int:
        """How long a phase is: random partners come from all that is unmatched, but never over a barrier."""
        return PHASE if self.barrier or partners == "fifo" else max(PHASE, drift)


@dataclass(frozen=True)
class Stream:
    """The events of a scenario, by number."""

    scenario: Scenario
    keys: int
    phase: int

    def item(self, number: int) -> Item:
        """Event n, as bytes of JSON with what they say."""
        kind, key, time = self._kind(number), number * 48_271 % self.keys, number
        if self.scenario.scattered:
            time = number * 1_299_709 % RANDOM_TIMES
        content = (
            b'{"campaign":"campaign-%03d-2b1e","country":"NL","key":"ad-%06d-7f3c9a51","sequence":%d,"ts":%d,'
            b'"type":"%s"}' % (number % 100, key, number, time, kind.encode())
        )
        return Item(content, kind, key, time)

    def _kind(self, number: int) -> str:
        if self.scenario.barrier and number % self.phase == self.phase - 1:
            return "barrier"
        kinds = self.scenario.kinds[number // self.phase % 2]
        return kinds[number % len(kinds)]

    def right(self, count: int, drift: int, partners: Partners) -> list[int]:
        """The numbers of the first events of the right stream."""
        if partners == "fifo":
            return list(range(count))
        block = min(drift, self.phase) if self.scenario.phases or self.scenario.barrier else drift
        shuffled: list[int] = []
        chance = random.Random(drift)
        for start in range(0, count, block):
            shuffled += self._shuffled(range(start, start + block), chance)
        return shuffled[:count]

    def _shuffled(self, numbers: Sequence[int], chance: random.Random) -> list[int]:
        """A block in random order, but for the barrier at its end, and for events of one key."""
        last = len(numbers) - self.scenario.barrier
        order = chance.sample(numbers[:last], last)
        if self.scenario.sequences:
            queues: defaultdict[int, deque[int]] = defaultdict(deque)
            for number in numbers[:last]:
                queues[number * 48_271 % self.keys].append(number)
            order = [queues[number * 48_271 % self.keys].popleft() for number in order]
        return [*order, *numbers[last:]]


# -- the scenarios -----------------------------------------------------------------------------------------


def _never(_one: Item, _another: Item) -> bool:
    return False


def _always(_one: Item, _another: Item) -> bool:
    return True


def _same_key(one: Item, another: Item) -> bool:
    return one[2] == another[2]


def _barrier_or_same_key(one: Item, another: Item) -> bool:
    return one[2] == another[2] or one[1] == "barrier" or another[1] == "barrier"


def _other_letter(one: Item, another: Item) -> bool:
    return one[1][0] != another[1][0]


def _other_letter_same_key(one: Item, another: Item) -> bool:
    return one[2] == another[2] and one[1][0] != another[1][0]


def _close(one: Item, another: Item) -> bool:
    return -10 < one[3] - another[3] < 10


def _close_same_key(one: Item, another: Item) -> bool:
    return one[2] == another[2] and -10 < one[3] - another[3] < 10


def _before(one: Item, another: Item) -> bool:
    if one[1] == another[1]:
        return False
    reading, mark = (one, another) if one[1] == "reading" else (another, one)
    return reading[3] < mark[3]


def _rules(number: int) -> Scenario:
    """Kinds a1…an and b1…bn, of which each a depends on each b: n rules apply to an event."""
    first, second = (tuple(f"{letter}{n}" for n in range(number)) for letter in "ab")
    pairs = ", ".join(f"[{one}, {other}]" for one in first for other in second)
    return Scenario(
        f"{number} rule{'s' if number > 1 else ''}",
        f"{{dependent: [{pairs}]}}",
        _other_letter,
        (first, second),
        phases=True,
        rules=number,
        target_us=1 + 0.5 * number,
    )


def _within(less_than: int, same: str = "") -> str:
    return f"{{dependent: [{{pair: [event, event], {same}within: {{field: ts, less_than: {less_than}}}}}]}}"


def _timed(name: str, order: str, dependent: Dependent, **more: Any) -> Scenario:
    return Scenario(name, order, dependent, rules=1, target_us=10, times=2.5, **more)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("unordered", "unordered", _never),
        Scenario("total", "total", _always, sequences=True),
        Scenario("per_key", "{per_key: [key]}", _same_key, keyed=True, sequences=True),
        Scenario(
            "barrier over per_key",
            "{barrier: barrier, inner: {per_key: [key]}}",
            _barrier_or_same_key,
            barrier=True,
            keyed=True,
            sequences=True,
        ),
        _rules(1),
        _rules(2),
        _rules(3),
        Scenario(
            "pair same",
            "{dependent: [{pair: [a, b], same: [key]}]}",
            _other_letter_same_key,
            (("a",), ("b",)),
            phases=True,
            keyed=True,
            rules=1,
            target_us=1.5,
        ),
        Scenario(
            "2 pairs same",
            "{dependent: [{pair: [event, event], same: [key]}, {pair: [event, event], same: [sequence]}]}",
            _same_key,
            keyed=True,
            sequences=True,
            rules=2,
            target_us=2,
        ),
        _timed("within", _within(10), _close, sequences=True),
        _timed("within, scattered", _within(1), _never, scattered=True),
        _timed("within, same", _within(10, "same: [key], "), _close_same_key, keyed=True, sequences=True),
        _timed(
            "before",
            "{dependent: [{pair: [reading, mark], before: {field: ts}}]}",
            _before,
            kinds=(("reading",), ("mark",)),
            phases=True,
        ),
    )
}
