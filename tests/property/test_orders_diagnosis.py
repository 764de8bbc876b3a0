"""What is said about faults under every form of order: nothing invented, and each planted fault exactly once.

Small streams full of equal events show that the differences explain the streams: without them the rest is
equivalent, and (but between barriers) no longer with two equal ones of them put back. Long streams with a few
faults that lie apart show that each is named once, with kind and event.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any, NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.oracle import equivalent, lcs_length
from tests.support.orders import KINDS, Event, Order, commute, dependent, orders, spec_of
from tests.support.streams import LEFT, RIGHT, Driver, record
from tests.support.worlds import World, world, worlds
from twinstream.core.events import Side
from twinstream.core.order import Epochs, nodes

cuts = st.lists(st.booleans(), min_size=6, max_size=6)
identities = st.sampled_from([None, ["v"], ["type", "v"]])

SIDES_OF = {
    "missing": {LEFT},
    "extra": {RIGHT},
    "duplicate": {RIGHT},
    "changed": {LEFT, RIGHT},
    "reordered": {LEFT, RIGHT},
}

COPIES = world(
    '{"dependent": [{"pair": ["e", "e"], "same": ["m", "k"], "within": {"field": "ts", "less_than": 1}},'
    ' ["e", "a"]]}',
    "L:e/k=1/m=0/ts=0 L:e/k=0/m=0/ts=0 L:e/k=0/m=0/ts=0"
    " R:a R:e/k=0/m=0/ts=0 R:e/k=1/m=0/ts=0 R:e/k=0/m=0/ts=0",
)
"""One event too many, beside copies of one that changed places with another that it does not depend on."""


@example(COPIES, [True], None)
@given(worlds(most=16), cuts, identities)
def test_undoing_the_differences_makes_the_streams_equivalent(
    world: World, cuts: list[bool], identity: list[str] | None
) -> None:
    driver = world.driver(identity=identity)
    driver.take(world.batches(cuts), review=True)
    driver.end()
    gone: tuple[set[int], set[int]] = (set(), set())
    for finding, *_ in driver.findings():
        places = {side: event[2] for side, event in finding.events if event is not None}
        assert places.keys() == SIDES_OF[finding.kind]
        for side, place in places.items():
            assert place not in gone[side], "an event is in one difference only"
            gone[side].add(place)
        if len(places) == 2:
            check_pair(world, finding.kind, places, identity)
    assert equivalent_without(world, gone)
    if not any(isinstance(node.order, Epochs) for node in nodes(driver.comparison.rules.order)):
        assert not any(equivalent_without(world, fewer) for fewer in with_two_put_back(world, gone))


Gone = tuple[set[int], set[int]]


def equivalent_without(world: World, gone: Gone) -> bool:
    """Whether the streams are equivalent without the events at these places."""
    rest = [[x for place, x in enumerate(world.events(side)) if place not in gone[side]] for side in Side]
    return equivalent(rest[0], rest[1], world.dependent, world.letter)


def with_two_put_back(world: World, gone: Gone) -> Iterator[Gone]:
    """The same places, each time without those of two equal events, one of each side."""
    for i, j in product(*gone):
        if world.equal(world.events(LEFT)[i], world.events(RIGHT)[j]):
            yield gone[LEFT] - {i}, gone[RIGHT] - {j}


LANES = ("unordered", "total", {"per_key": ["k"]}, {"per_key": ["k", "m"]})


@given(worlds(most=16, among=LANES))
def test_differences_in_lanes_are_the_fewest_that_explain_the_streams(world: World) -> None:
    """Counts fix missing and surplus events; a longest common subsequence fixes how many changed places."""
    driver = world.driver()
    driver.take(world.batches(), review=True)
    driver.end()
    expected: Counter[str] = Counter()
    for left, right in lanes(world):
        shared = (Counter(left) & Counter(right)).total()
        expected["missing"] += len(left) - shared
        expected["surplus"] += len(right) - shared
        expected["reordered"] += shared - lcs_length(left, right) if world.order != "unordered" else 0
    found = Counter(driver.kinds())
    found["surplus"] = found.pop("extra", 0) + found.pop("duplicate", 0)
    assert +found == +expected


def lanes(world: World) -> list[tuple[list[Any], list[Any]]]:
    """What is compared of both sides, for each class of events that are dependent or equal."""
    classes: list[Event] = []
    for one in [*world.events(LEFT), *world.events(RIGHT)]:
        if not any(world.dependent(one, other) or world.equal(one, other) for other in classes):
            classes.append(one)
    return [
        tuple(  # type: ignore[misc]
            [world.letter(x) for x in world.events(side) if world.dependent(x, one) or world.equal(x, one)]
            for side in Side
        )
        for one in classes
    ]


MOVED_OVER_A_BARRIER = world(
    '{"barrier": ["a", "c"], "inner": "total"}',
    "L:b L:b L:c L:b L:c L:e L:b L:b L:c L:c R:b R:b R:c R:e R:b R:b R:c R:c",
)
"""The pair that proves that an event is missing stands behind its other half, too, which is found later."""


@example(MOVED_OVER_A_BARRIER, [False])
@given(worlds(most=16), cuts)
def test_a_witness_proves_its_difference(given: World, cuts: list[bool]) -> None:
    """It is an equal pair, dependent on the event; behind it, or on one side only behind it."""
    driver = given.driver()
    driver.take(given.batches(cuts), review=True)
    driver.end()
    for finding, *_ in driver.findings():
        if finding.witness:
            (_, left), (_, right) = finding.witness
            pair = [given.events(side)[event[2]] for side, event in finding.witness]
            it = given.events(finding.side)[finding.event[2]]
            assert given.equal(*pair)
            assert given.dependent(it, pair[0])
            assert behind(finding.left, left) != behind(finding.right, right)


def behind(event: Any, witness: Any) -> bool:
    """Whether the witness stands behind an event; none of it stands behind no event."""
    return event is not None and witness[2] > event[2]


def check_pair(world: World, kind: str, places: dict[Side, int], identity: list[str] | None) -> None:
    """Both events of a move are equal; those of a change are not, and are about one thing."""
    left, right = (world.events(side)[places[side]] for side in Side)
    assert world.equal(left, right) == (kind == "reordered")
    if kind == "changed":
        assert identity is not None
        assert all(left[field] == right[field] for field in identity)


# -- long streams with a few faults --------------------------------------------------------------------------

GAP = 160
"""Events between two faults: 40 for each of the four keys that there are at most."""
FAULTS = ("drop", "copy", "insert", "change", "move")
KIND = {"drop": "missing", "copy": "duplicate", "insert": "extra", "change": "changed", "move": "reordered"}


class Plan(NamedTuple):
    """What a pair of long streams is made from.

    `weights` say how frequent each kind is; so many events stand behind the last fault (`tail`).
    """

    order: Order
    faults: list[str]
    weights: list[int]
    seed: int
    batch: int
    ahead: int
    tail: int
    restarts: bool


def plans(order: st.SearchStrategy[Order], tail: st.SearchStrategy[int]) -> st.SearchStrategy[Plan]:
    return st.builds(
        Plan,
        order,
        st.lists(st.sampled_from(FAULTS), max_size=3),
        st.lists(st.sampled_from([1, 4, 20]), min_size=len(KINDS), max_size=len(KINDS)),
        st.integers(0, 10_000),
        st.integers(1, 60),
        st.integers(-80, 80),
        tail,
        st.booleans(),
    )


class Streams(NamedTuple):
    """Both streams, and each fault with the numbers of the events of which one must be named for it."""

    reference: list[Event]
    candidate: list[Event]
    planted: list[tuple[str, set[int]]]


def streams_of(plan: Plan) -> Streams:
    """The streams of a plan. Each event has a number of its own."""
    random = Random(plan.seed)
    length = GAP // 2 + GAP * max(0, len(plan.faults) - 1) + 10 + plan.tail
    reference = [event(random, plan.weights, number, number) for number in range(length)]
    candidate, planted = list(reference), []
    for at, fault in reversed(list(enumerate(plan.faults))):
        place = GAP // 2 + GAP * at + random.randrange(10)
        if named := plant(random, plan, candidate, place, fault):
            planted.append((fault, named))
    commute(random, plan.order, candidate, rounds=2, chance=0.4)
    return Streams(reference, candidate, planted)


def event(random: Random, weights: list[int], number: int, time: int) -> Event:
    return {
        "type": random.choices(KINDS, weights)[0],
        "k": random.randrange(2),
        "m": random.randrange(2),
        "ts": time // 3,
        "v": number,
        "w": 0,
    }


def plant(random: Random, plan: Plan, stream: list[Event], place: int, fault: str) -> set[int]:
    """Put a fault into a stream; returns the events that may be named for it, none where it cannot be."""
    here = stream[place]
    if fault == "drop":
        del stream[place]
    elif fault == "copy":
        stream.insert(place, here)
    elif fault == "change":
        stream[place] = {**here, "w": 1}
    elif fault == "insert":
        foreign = event(random, plan.weights, 1_000_000 + place, place)
        stream.insert(place, foreign)
        return {foreign["v"]}
    else:
        return move(random, plan.order, stream, place)
    return {here["v"]}


def move(random: Random, order: Order, stream: list[Event], place: int) -> set[int]:
    """Move an event over some that it depends on; over a single one, either may be said to have moved."""
    here = stream[place]
    until = min(place + 30, len(stream))
    crossed = [to for to in range(place + 1, until) if dependent(order, here, stream[to])]
    if not crossed:
        return set()
    last = random.choice(crossed[:4])
    stream.insert(last, stream.pop(place))
    return {here["v"], stream[last - 1]["v"]} if last == crossed[0] else {here["v"]}


def compare(plan: Plan, streams: Streams) -> Driver:
    """Both sides in turn, one up to `ahead` events in front, with a review after each batch."""
    driver = Driver(spec_of(plan.order, identity=["v"]))
    records = {LEFT: list(map(record, streams.reference)), RIGHT: list(map(record, streams.candidate))}
    longest = max(map(len, records.values()))
    fed = {LEFT: 0, RIGHT: 0}
    for step in range(plan.batch, longest + plan.batch + 80, plan.batch):
        for side, lead in ((LEFT, plan.ahead), (RIGHT, 0)):
            until = max(fed[side], step + lead)
            if part := records[side][fed[side] : until]:
                driver.feed(side, part)
                fed[side] += len(part)
        driver.comparison.review()
        if plan.restarts and step // plan.batch % 4 == 0:
            driver.findings()
            driver.restart()
    for side in Side:
        if rest := records[side][fed[side] :]:
            driver.feed(side, rest)
    driver.comparison.review()
    return driver


def told(driver: Driver) -> Iterator[tuple[str, int]]:
    """Each difference: its kind, and the number of its event."""
    for finding, *_ in driver.findings():
        yield finding.kind, json.loads(finding.event[0][3])["v"]


def check_found(driver: Driver, streams: Streams) -> None:
    """Each fault is named once, and nothing else."""
    found = sorted(told(driver))
    left = list(found)
    for fault, named in streams.planted:
        match = next((told for told in left if told[0] == KIND[fault] and told[1] in named), None)
        assert match, f"{fault} {named} is not among {found}"
        left.remove(match)
    assert not left


@given(plans(orders(), st.sampled_from([2, GAP])))
def test_faults_that_lie_apart_are_found_exactly(plan: Plan) -> None:
    streams = streams_of(plan)
    driver = compare(plan, streams)
    driver.end()
    check_found(driver, streams)


@given(plans(st.sampled_from(LANES[1:]), st.just(GAP)))
def test_faults_that_lie_apart_in_sequences_are_found_when_the_sides_have_met_again(plan: Plan) -> None:
    streams = streams_of(plan)
    driver = compare(plan, streams)
    assert not driver.comparison.scopes
    check_found(driver, streams)
