"""Several bugs at once in one output: the groups alone name each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.flights import CARRIERS, FILE, START, Flight, flights, with_three_bugs
from twinstream.core.events import Side
from twinstream.explain.text import tell_answer
from twinstream.offline.check import check
from twinstream.ports import Line
from twinstream.spec.load import loads


def lines(reference: list[Flight], candidate: list[Flight]) -> Iterator[Line]:
    """Both outputs in step; each carrier is in one of two partitions."""
    offsets: dict[tuple[Side, int], int] = {}
    pairs = zip(reference, candidate, strict=True)
    for number, (side, flight) in enumerate(
        (place for pair in pairs for place in zip(Side, pair, strict=True)), 1
    ):
        partition = CARRIERS.index(flight["carrier"]) % 2
        offset = offsets[side, partition] = offsets.get((side, partition), -1) + 1
        time_ms = int(START.timestamp() * 1000) + number * 1000
        yield Line(side, json.dumps(flight).encode(), partition, offset, time_ms, "trace", number, number)


def answered(count: int = 1200) -> dict[str, Any]:
    right = flights(count)
    return check(loads(FILE), lines(right, with_three_bugs(right)))


def test_three_bugs_at_once_are_named_by_the_groups_alone() -> None:
    answer = answered()
    by_fields = {(group["kind"], *group["fields"]): group for group in answer["groups"]}
    shifted, rounded = by_fields["changed", "dep"], by_fields["changed", "air_time"]
    swapped = by_fields["reordered",]
    assert set(by_fields) == {("changed", "dep"), ("changed", "air_time"), ("reordered",)}
    assert "1 h later in 100 %" in shifted["text"]
    assert "a time zone or daylight saving is the likely cause" in shifted["cause"]
    assert "all with `carrier` UA" in rounded["text"]
    assert "rounded to 1 decimal in the candidate in 100 %" in rounded["text"]
    assert "8 in another order; all of plane N2-07" in swapped["text"]
    assert rounded["cause"] is swapped["cause"] is None
    assert sum(group["count"] for group in answer["groups"]) == answer["divergences"]["total"]


def test_a_field_that_changed_is_nothing_that_all_events_have_in_common() -> None:
    right = [flight | {"air_time": 3 + flight["id"] % 12} for flight in flights(240)]
    wrong = [
        flight | {"air_time": 1000 + flight["id"]} if flight["air_time"] == 3 else flight for flight in right
    ]
    (group,) = check(loads(FILE), lines(right, wrong))["groups"]
    assert (group["count"], group["fields"]) == (20, ["air_time"])
    assert "air_time" not in [one["field"] for one in group["common"]]
    assert "all with `air_time`" not in group["text"]


def test_groups_stand_before_the_list_where_there_are_more_than_a_few_differences() -> None:
    text = tell_answer(answered(), wrapped=False)
    assert text.index("1 h later in 100 %") < text.index("\n1. ")


def test_the_examples_of_a_group_are_ids_of_its_differences() -> None:
    answer = answered(count=300)
    kinds = {example["id"]: example["kind"] for example in answer["examples"]}
    for group in answer["groups"]:
        assert {kinds[one] for one in group["examples"]} == {group["kind"]}


def test_equal_outputs_have_no_groups() -> None:
    right = flights(60)
    assert check(loads(FILE), lines(right, right))["groups"] == []
