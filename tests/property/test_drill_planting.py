"""The difference of a drill is there, is the planted one, and is the only one: for every form of order.

What is planted is planned by the comparison itself. Here the plain readings of the theory judge it
(`tests.support.oracle`), which share nothing with that.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import assume, given, reject
from hypothesis import strategies as st

from tests.support import oracle
from tests.support.orders import Event, Order, dependent, events, orders, spec_of
from tests.support.searching import examples
from twinstream.core.events import Side
from twinstream.drill.copies import CopiedPair, lines_of, stretch_of
from twinstream.drill.planting import KINDS, PlantedDifference, PlantedKind, plan
from twinstream.errors import SettingsError
from twinstream.offline.check import check
from twinstream.spec.drills import HEADER, DrillRecord

CHANGES = {"drop": (1, 0), "duplicate": (0, 1), "reorder": (0, 0), "field": (1, 1)}
"""How many events the reference, and the candidate, have more than the other side."""

CALLED = {
    "drop": [["missing"]],
    "duplicate": [["duplicate"], ["extra"]],
    "reorder": [["reordered"]],
    "field": [["changed"], ["extra", "missing"]],
}


def letter(event: Event) -> str:
    return json.dumps(event, sort_keys=True)


def records(sequence: Sequence[Event]) -> list[DrillRecord]:
    return [
        DrillRecord(0, offset, 1000 + offset, None, [], json.dumps(event).encode())
        for offset, event in enumerate(sequence)
    ]


def values(those: Sequence[DrillRecord]) -> list[Event]:
    return [json.loads(record.value or b"") for record in those]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Order, list[Event]]:
    order = draw(orders())
    sequence = draw(st.lists(events(order), min_size=24, max_size=40))
    alike = draw(st.sampled_from([1, 2, 100]))
    for number, event in enumerate(sequence):
        event["n"] = number // alike
    return order, sequence


Planted = tuple[Order, list[Event], PlantedDifference]
"""What was planted in a sequence under an order."""


@st.composite
def plantings(draw: st.DrawFn, kinds: Sequence[PlantedKind]) -> Planted:
    """Cases with a plan, where one can be made; random events may have none of a kind."""
    order, sequence = draw(cases())
    kind = draw(st.sampled_from(kinds))
    try:
        found = plan(spec_of(order), CopiedPair(records(sequence), records(sequence)), kind, "id")
    except SettingsError:
        reject()
    return order, sequence, found


def differs(order: Order, left: Sequence[Event], right: Sequence[Event]) -> bool:
    return not oracle.equivalent(left, right, lambda a, b: dependent(order, a, b), letter)


def known_without_an_end(order: Order, pair: CopiedPair) -> bool:
    matcher = oracle.PlainMatcher[Event](
        lambda a, b: dependent(order, a, b), lambda a, b: letter(a) == letter(b)
    )
    for line in lines_of(spec_of(order), pair):
        matcher.feed(line.side, json.loads(line.record or b""))
    return matcher.diverged


@examples(50)
@given(plantings(sorted(CHANGES)))
def test_what_is_planted_is_a_difference_and_the_only_one(case: Planted) -> None:
    order, sequence, found = case
    left, right = values(found.pair.reference), values(found.pair.candidate)
    assert left == sequence
    assert differs(order, left, right)
    more, less = Counter(map(letter, left)), Counter(map(letter, right))
    assert ((more - less).total(), (less - more).total()) == CHANGES[found.kind]
    touched = {letter(values([found.origin])[0]), *(letter(right[place]) for place in found.marked)}
    rest = [[event for event in side if letter(event) not in touched] for side in (left, right)]
    assert not differs(order, *rest)


@examples(50)
@given(plantings(sorted(CHANGES)))
def test_the_comparison_calls_it_what_it_is_and_names_the_planted_events(case: Planted) -> None:
    order, _, found = case
    spec = spec_of(order)
    examples = check(spec, lines_of(spec, found.pair))["examples"]
    assert sorted(example["kind"] for example in examples) in CALLED[found.kind]
    about = found.about(spec)
    for example in examples:
        for side, name in zip(Side, ("reference", "candidate"), strict=True):
            at = example["positions"][name]
            assert at is None or (side, at["partition"], at["offset"]) in about


@examples(50)
@given(plantings(sorted(CHANGES)))
def test_whether_the_records_prove_it_is_told_right(case: Planted) -> None:
    order, _, found = case
    assert found.proven == known_without_an_end(order, found.pair)


@examples(50)
@given(plantings(KINDS))
def test_nothing_differs_before_the_difference_and_what_is_planted_is_marked(case: Planted) -> None:
    *_, found = case
    reference, candidate = found.before
    assert found.pair.reference[:reference] == found.pair.candidate[:candidate]
    assert found.at >= candidate or found.kind == "stall"
    marked = [place for place, record in enumerate(found.pair.candidate) if (HEADER, b"id") in record.headers]
    assert tuple(marked) == found.marked
    assert all(not record.headers for record in found.pair.reference)


@examples(50)
@given(cases(), st.data())
def test_what_is_copied_of_two_topics_that_are_cut_apart_is_equivalent(
    case: Any, data: st.DataObject
) -> None:
    order, sequence = case
    cut = {side: data.draw(st.integers(0, 3), label=f"cut off {side.name}") for side in Side}
    late = {side: data.draw(st.integers(0, 3), label=f"behind {side.name}") for side in Side}
    sides = [records(sequence)[cut[side] : len(sequence) - late[side]] for side in Side]
    try:
        found = stretch_of(spec_of(order), *sides)
    except SettingsError:
        assume(False)
    assert not differs(order, *map(values, found.pair))
    assert found.alone is not None or all(record in sides[1] for record in found.pair.candidate)
