"""The reason of a hole names topic, partition and side, as its entry in a list does."""

from __future__ import annotations

import pytest

from tests.support.workers import SPEC as TEXT
from twinstream.core.accounts import PLACE, Hole
from twinstream.core.events import Side
from twinstream.explain.holes import doubts, of_falls, of_gap, told
from twinstream.spec.load import loads

PLACED = "orders.v1 partition 0 (reference)"
BEGINS = "and begins at 0: the topic was created anew or cut off"
SPEC = loads(TEXT.replace("test.reference", "orders.v1").replace("test.candidate", "orders.v2"))


@pytest.mark.parametrize(
    ("wanted", "available", "reason"),
    [
        (1_100, 1_700, f"Kafka no longer has offsets 1,100–1,699 of {PLACED}; they were not compared"),
        (5, 6, f"Kafka no longer has offset 5 of {PLACED}; it was not compared"),
        (5_000, 0, f"offset 5,000 of {PLACED} was next, but the partition ends below it {BEGINS}"),
    ],
)
def test_what_kafka_has_lost_is_named_with_its_place(wanted: int, available: int, reason: str) -> None:
    assert told(Hole(of_gap(wanted, available), Side.LEFT, 0, wanted), SPEC) == reason


def test_what_matchers_fell_over_is_named_with_its_place() -> None:
    of = "the matcher fell 3 times while it took"
    found = [told(Hole(of_falls(1_100, end, 3), Side.LEFT, 0, 1_100), SPEC) for end in (1_700, 1_101)]
    assert found == [
        f"{of} offsets 1,100–1,699 of {PLACED}; they were left out",
        f"{of} offset 1,100 of {PLACED}; it was left out",
    ]


def test_a_reason_that_leaves_no_room_for_its_place_has_it_before() -> None:
    assert told(Hole("it broke", Side.RIGHT, 3, 7), SPEC) == "orders.v2 partition 3 (candidate): it broke"
    assert told(Hole("it broke", Side.RIGHT), SPEC) == "orders.v2 (candidate): it broke"
    assert told(Hole("a limit was reached"), SPEC) == "a limit was reached"


def test_braces_in_a_reason_are_text() -> None:
    hole = Hole(f'{PLACE}: field "{{x}}" is no number: {{"a": {{}}}}', Side.LEFT, 0, 1)
    assert told(hole, SPEC) == 'orders.v1 partition 0 (reference): field "{x}" is no number: {"a": {}}'


def test_what_happened_in_one_way_at_many_places_is_told_of_the_first() -> None:
    holes = [Hole("it broke", Side.LEFT, partition, 7) for partition in (0, 0, 1, 2)]
    assert doubts([*holes, Hole("a limit was reached")], SPEC) == [
        "orders.v1 partition 0 (reference): it broke, and the same in 2 other places",
        "a limit was reached",
    ]
    assert doubts(holes[1:3], SPEC) == [
        "orders.v1 partition 0 (reference): it broke, and the same in 1 other place"
    ]
