"""Bags in which numbers have a tolerance, against all matchings: the answer is that of the two sets.

A failure prints the seed of everything that is random.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracle import matching
from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.events import Side

seeds = st.integers(0, 2**32)
KINDS = """\
kinds: {mark: {where: {t: mark}}, tick: {where: {t: tick}}, row: {}}
identity: [k]
equality: {per_kind: {row: {tolerance: {v: {abs: 1}}}}}
"""
RULE = "{pair: [tick, tick], within: {field: ts, less_than: 1}}"
"""No rule names the rows, so they are a bag."""
ORDERS = (
    "unordered",
    "{barrier: mark, inner: unordered}",
    "{by_key: [r], inner: {barrier: mark, inner: unordered}}",
    (
        "{parallel: {m: {kinds: [mark], order: {barrier: mark, inner: unordered}},"
        " r: {kinds: [row, tick], order: unordered}}}"
    ),
    f"{{dependent: [{RULE}]}}",
    f"{{by_key: [r], inner: {{dependent: [{RULE}]}}}}",
    f"{{barrier: mark, inner: {{dependent: [{RULE}]}}}}",
)
Value = dict[str, Any]


class World(NamedTuple):
    """The rows of both sides by epoch and key, and whether barriers divide the epochs."""

    order: str
    epochs: list[tuple[list[Value], list[Value]]]

    @property
    def divided(self) -> bool:
        return "barrier" in self.order and "parallel" not in self.order

    def written(self, rng: random.Random, side: Side) -> list[Value]:
        """What a side writes: rows of an epoch in any order, with a barrier behind each."""
        found: list[Value] = []
        for number, epoch in enumerate(self.epochs):
            found += rng.sample(epoch[side], len(epoch[side]))
            if self.divided:
                found += [
                    {"t": "mark", "r": key, "n": number}
                    for key in ((0, 1) if "by_key" in self.order else (0,))
                ]
        return found

    def bags(self) -> list[tuple[list[int], list[int]]]:
        """The numbers of both sides that may be pairs."""
        bags: dict[Any, tuple[list[int], list[int]]] = {}
        for number, epoch in enumerate(self.epochs):
            for side in Side:
                for value in epoch[side]:
                    name = (number if self.divided else 0, value["r"], value["k"])
                    bags.setdefault(name, ([], []))[side].append(value["v"])
        return list(bags.values())


def world(rng: random.Random) -> World:
    """Rows that mostly have partners, close to them and to others."""
    epochs = []
    for _ in range(rng.randrange(1, 3)):
        epoch: tuple[list[Value], list[Value]] = ([], [])
        for _ in range(rng.randrange(5)):
            value = {"t": "row", "r": rng.randrange(2), "k": rng.randrange(2), "v": rng.randrange(6)}
            epoch[LEFT].append(value)
            epoch[RIGHT].append({**value, "v": value["v"] + rng.choice([-1, 0, 1])})
        if rng.random() < 0.3 and epoch[RIGHT]:
            epoch[RIGHT][0]["v"] = rng.randrange(9)
        epochs.append(epoch)
    return World(rng.choice(ORDERS), epochs)


def near(one: int, other: int) -> bool:
    return abs(one - other) <= 1


def read(made: World, rng: random.Random, restarts: bool) -> Driver:
    """Both sides, in any order between them."""
    driver = Driver(spec(made.order, KINDS))
    queues = {side: made.written(rng, side) for side in Side}
    while any(queues.values()):
        side = rng.choice([side for side in Side if queues[side]])
        count = rng.randrange(1, 4)
        driver.feed(side, [record(value) for value in queues[side][:count]])
        queues[side] = queues[side][count:]
        driver.comparison.review()
        if restarts:
            driver.restart()
    driver.end()
    return driver


@given(seeds, st.booleans())
def test_how_many_are_left_over_is_told_by_the_two_sets_however_they_come(seed: int, restarts: bool) -> None:
    rng = random.Random(seed)
    made = world(rng)
    pairs = sum(len(matching(left, right, near)) for left, right in made.bags())
    perfect = pairs == sum(len(epoch[LEFT]) for epoch in made.epochs)
    for _ in range(3):
        driver = read(made, rng, restarts)
        assert driver.comparison.diverged is not perfect
        assert driver.comparison.holes == []
        barriers = sum(1 for value in made.written(rng, LEFT) if value["t"] == "mark")
        if perfect or not made.divided:
            assert driver.comparison.matched == pairs + barriers
