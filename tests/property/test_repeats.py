"""Where a known difference names `duplicate`, nothing but the two streams decides what is one."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.streams import Driver, record, spec
from twinstream.core.events import Side

RULE = "{id: DUP, when: {divergences: [duplicate]}, owner: us, expires: 2100-01-01, ceiling: {count: 1000}}"
ORDERS = ("unordered", "total", "{per_key: [k]}", "{dependent: [{pair: [event, event], same: [k]}]}")
LONGEST = 30
"""Fewer events than make two sides meet again: what is set aside is compared at the end of both."""

Event = tuple[str, int]
streams = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=LONGEST)
edits = st.lists(st.tuples(st.integers(0, LONGEST), st.sampled_from(["copy", "late copy", "new", "drop"])))
Sides = tuple[list[Event], list[Event]]
Queues = dict[tuple[Side, int], list[Event]]
"""The events of each partition of a side."""
Step = tuple[Side, int, int, int, bool]
"""So many events of a partition, in a style, with or without a restart."""


def steps(partitions: int) -> st.SearchStrategy[list[Step]]:
    partition, count = st.integers(0, partitions - 1), st.integers(1, 4)
    return st.lists(st.tuples(st.sampled_from(Side), partition, count, st.integers(0, 3), st.booleans()))


def edited(events: list[Event], how: list[tuple[int, str]]) -> list[Event]:
    """What a candidate may have made of a reference."""
    written = list(events)
    for place, edit in how[:3]:
        at = place % (len(written) + 1)
        if edit == "drop":
            del written[at : at + 1]
        elif edit == "new":
            written.insert(at, ("c", place))
        elif written[at : at + 1]:
            written.insert(at + 1 if edit == "copy" else len(written), written[at])
    return written


def driver(order: str, horizon: int, recent_matches: int) -> Driver:
    limits = f"limits: {{recent_matches: {recent_matches}, duplicate_horizon: {horizon}}}"
    return Driver(spec(order, f"{limits}\nknown_differences: [{RULE}]"))


def outcome(driver: Driver) -> tuple[bool, bool, list[int]]:
    """Whether it diverged, whether it has a hole, and how many events of each side are explained."""
    comparison = driver.comparison
    explained = [account.explained for account in comparison.accounts]
    return comparison.diverged, bool(comparison.holes), explained


def whole(sides: Sides) -> Queues:
    """One partition a side."""
    return {(side, 0): sides[side] for side in Side}


def halves(order: str, sides: Sides) -> Queues:
    """Two partitions a side: by key, or every other event."""
    return {
        (side, partition): [
            event
            for place, event in enumerate(sides[side])
            if (place if order == "unordered" else ord(event[0])) % 2 == partition
        ]
        for side in Side
        for partition in range(2)
    }


def run(driver: Driver, queues: Queues, how: list[Step]) -> None:
    """Feed all partitions, batch by batch as told, each record in a style of its own; with restarts."""
    fed = dict.fromkeys(queues, 0)
    rest = [(*queue, 99, 0, False) for queue in queues]
    for side, partition, count, style, restart in [*how, *rest]:
        first = fed[side, partition]
        events = queues[side, partition][first : first + count]
        if events:
            driver.offsets[side] = first
            records = [record({"k": key, "v": value}, style) for key, value in events]
            driver.feed(side, records, partition=partition)
            fed[side, partition] += len(events)
        driver.comparison.review()
        if restart:
            driver.restart()
    driver.end()


@examples(300)
@given(
    st.sampled_from(ORDERS), streams, edits, steps(1), st.integers(1, 16), st.sampled_from([0, 1, 100_000])
)
def test_the_answer_is_one_for_any_pace_any_restarts_and_any_memory(
    order: str,
    reference: list[Event],
    how: list[tuple[int, str]],
    pace: list[Step],
    horizon: int,
    recent_matches: int,
) -> None:
    sides = reference, edited(reference, how)
    calm, shaken = driver(order, horizon, 100_000), driver(order, horizon, recent_matches)
    run(calm, whole(sides), [])
    run(shaken, whole(sides), pace)
    assert outcome(shaken) == outcome(calm)


@examples(200)
@given(streams, streams, steps(1), st.integers(1, 16))
def test_in_a_bag_the_last_copies_are_surplus_and_each_is_told_by_what_stands_before_it(
    reference: list[Event],
    candidate: list[Event],
    pace: list[Step],
    horizon: int,
) -> None:
    left = Counter(reference)
    surplus = []
    for place, event in enumerate(candidate):
        left[event] -= 1
        if left[event] < 0:
            surplus.append(place)
    copies = [place for place in surplus if candidate[place] in candidate[max(0, place - horizon) : place]]
    others = [place for place in surplus if place not in copies]
    told = driver("unordered", horizon, 1)
    run(told, whole((reference, candidate)), pace)
    assert outcome(told) == (
        any(count > 0 for count in left.values()) or any(place <= horizon for place in others),
        any(place > horizon for place in others),
        [0, len(copies)],
    )


@examples(200)
@given(
    st.sampled_from(["unordered", "{per_key: [k]}"]),
    streams,
    edits,
    steps(2),
    st.integers(1, 16),
)
def test_partitions_are_read_at_any_pace(
    order: str,
    reference: list[Event],
    how: list[tuple[int, str]],
    pace: list[Step],
    horizon: int,
) -> None:
    """By key each has its own answer; of a bag none is explained by one pace and counts by another."""
    sides = reference, edited(reference, how)
    found = []
    for way in ([], pace):
        told = driver(order, horizon, 1)
        run(told, halves(order, sides), way)
        found.append(outcome(told))
    if order == "unordered":
        sure = {diverged for diverged, hole, _ in found if diverged or not hole}
        assert len(sure) < 2
    else:
        assert found[0] == found[1]
