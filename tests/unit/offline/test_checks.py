"""Checks of recorded output: what each is about, what it says of records, and what the answer is worth."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import twinstream
from tests.support.streams import spec
from twinstream.cli.shared.output import exit_of_answer
from twinstream.core.events import Side
from twinstream.errors import InputError
from twinstream.offline.check import check
from twinstream.ports import Line
from twinstream.spec.load import loads
from twinstream.status.comparison import CheckedSide

GOOD = {"k": "a", "n": 1, "start": 60, "end": 120, "views": 3}
WINDOWS = "windows: {start: start, end: end, length: 1m, unit: s}"


def declared(entry: str, more: str = "") -> str:
    return f"checks:\n- {{id: it, {entry}}}\n{more}"


def found(entry: str, *values: dict[str, Any], more: str = "") -> CheckedSide:
    """What one check finds in the candidate, if both versions write these values."""
    answer = twinstream.check(spec("unordered", declared(entry, more)), values, values)
    assert answer.equivalent
    (result,) = answer.checks
    assert result.candidate is not None
    return result.candidate


@pytest.mark.parametrize(
    ("entry", "change", "problem"),
    [
        ("not_null: [k, views]", {"views": None}, "has null in `views`"),
        ("not_null: [k, m.views]", {"m": {}}, "has no `m.views`"),
        ("types: {views: integer}", {"views": 2.5}, "has no integer in `views`"),
        ("types: {views: integer}", {"views": True}, "has no integer in `views`"),
        ("types: {views: number}", {"views": "3"}, "has no number in `views`"),
        ("types: {k: text}", {"k": 3}, "has no text in `k`"),
        ("types: {k: list}", {"k": {}}, "has no list in `k`"),
        ("types: {k: object}", {"k": []}, "has no object in `k`"),
        ("types: {k: boolean}", {"k": 1}, "has no boolean in `k`"),
        (WINDOWS, {"end": 121}, "has a window that is longer than declared"),
        (WINDOWS, {"end": 119.999999}, "has a window that is shorter than declared"),
        (WINDOWS, {"start": 61, "end": 121}, "has a `start` at which no window begins"),
        (WINDOWS, {"start": "noon"}, "has no time in `start`"),
    ],
)
def test_a_record_by_itself_is_told_with_its_problem(
    entry: str, change: dict[str, Any], problem: str
) -> None:
    side = found(entry, {**GOOD, **change})
    (violation,) = side.first
    assert (side.state, side.checked, side.violations, violation.problem) == ("violated", 1, 1, problem)
    assert (violation.position.topic, violation.position.partition, violation.position.offset) == ("c", 0, 0)


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        ("not_null: [k, views], types: {views: integer}", {"views": 3.0}),
        ("types: {views: integer, other: text}", {"views": None}),
        ("types: {views: number, k: text}", {"views": 1e300}),
        ("types: {views: integer}", {"views": Decimal("1e400")}),
        (WINDOWS, {"start": "1970-01-01T00:01:00Z", "end": "1970-01-01T00:02:00"}),
        (f"{WINDOWS[:-1]}, every: 10s, offset: 5s}}", {"start": 65, "end": 125}),
        (f"{WINDOWS[:-1]}, offset: 1s}}", {"start": 1, "end": 61}),
        ("not_null: [zzz], kinds: [other]", {}),
        ("not_null: [zzz], side: reference, gate: ignore", {}),
    ],
)
def test_a_record_that_has_the_property_is_fine(entry: str, change: dict[str, Any]) -> None:
    kinds = "kinds: {other: {where: {k: zzz}}, it: {}}\nevidence: {may_be_absent: [other]}"
    answer = twinstream.check(
        spec("unordered", declared(entry, kinds)), [{**GOOD, **change}], [{**GOOD, **change}]
    )
    assert answer.checks_hold


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("once: [zzz], horizon: 1m", "the record at c 0:0 has no `zzz`"),
        ("ascending: k, per: [zzz]", "the record at c 0:0 has no `zzz`"),
        ("ascending: zzz", "the record at c 0:0 has no number or text in `zzz`"),
    ],
)
def test_a_field_that_is_not_there_leaves_it_undecided(entry: str, reason: str) -> None:
    side = found(entry, GOOD)
    assert (side.state, side.reason) == ("undecided", reason)


def test_an_absent_field_counts_as_null_where_the_file_says_so() -> None:
    nulls = "equality: {absent_is_null: true}"
    side = found("once: [zzz], horizon: 1m", GOOD, GOOD, more=nulls)
    assert (side.state, side.violations) == ("violated", 1)
    inside = found("once: [m], horizon: 1m", {"m": {"a": None}}, {"m": {}}, more=nulls)
    assert (inside.state, inside.violations) == ("violated", 1)


def test_keys_are_compared_by_value() -> None:
    side = found("once: [n], horizon: 1m", {"n": 1}, {"n": 1.0}, {"n": "1"}, {"n": True})
    assert (side.violations, side.first[0].problem) == (
        1,
        "is a second one of its key, after that at offset 0 of partition 0",
    )


def test_what_is_left_out_or_is_no_event_or_lies_before_the_start_is_not_checked() -> None:
    more = "kinds: {beat: {where: {t: b}, ignore: true}, it: {}}\n"
    more += "start: {at: event_time, field: n, from: 5}\nundecodable: {budget: 2}"
    values = [{"t": "b", "n": 9}, {"n": 4}, {"n": 5}, 7]
    side = found("not_null: [zzz]", *values, more=more)  # type: ignore[arg-type]
    assert (side.checked, side.violations) == (1, 1)


KEYED = declared("key_partition: [k], partitions: 4")


def keyed(*rows: tuple[str | None, int, str]) -> list[Line]:
    """Lines of the candidate: key, partition and value."""
    return [
        Line(Side.RIGHT, b'{"k":"%s"}' % value.encode(), partition, n, 0, "f", n, n, key=key and key.encode())
        for n, (key, partition, value) in enumerate(rows)
    ]


def test_records_lie_in_the_partition_of_their_key() -> None:
    answer = check(spec("unordered", KEYED), keyed(("21", 0, "a"), (None, 2, "b"), ("21", 1, "c")))
    (result,) = answer["checks"]
    problems = [one["problem"] for one in result["candidate"]["first"]]
    assert problems == ["has no key", "has a key of partition 0"]


def test_without_the_number_of_partitions_a_key_names_none() -> None:
    answer = check(spec("unordered", declared("key_partition: []")), keyed(("21", 0, "a"), ("21", 3, "b")))
    (result,) = answer["checks"]
    assert result["candidate"]["state"] == "undecided"
    assert "say it as `partitions`" in result["candidate"]["reason"]


@pytest.mark.parametrize("twice", [False, True])
def test_a_second_row_is_found_in_whatever_order_the_lines_of_partitions_stand(twice: bool) -> None:
    """One row a minute in each partition, and one partition stands behind the other."""
    minutes = [(partition, f"{partition}-{minute}", minute) for partition in (1, 0) for minute in range(60)]
    rows = [*minutes, (0, "1-0", 61)] if twice else minutes
    lines = [
        Line(Side.RIGHT, b'{"k":"%s"}' % key.encode(), partition, n, 60_000 * minute, "f", n, n)
        for n, (partition, key, minute) in enumerate(rows)
    ]
    (once,) = check(spec("unordered", declared("once: [k], horizon: 2h")), lines)["checks"]
    assert once["candidate"]["violations"] == twice
    (once,) = check(spec("unordered", declared("once: [k], horizon: 10m")), lines)["checks"]
    assert once["candidate"]["state"] == "holds"


def test_values_have_no_key_so_a_check_of_keys_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"reference: holds values alone, but a check \(`key_partition`\) needs"
    ):
        twinstream.check(spec("unordered", KEYED), iter([]), [GOOD])


def test_recorded_output_has_no_control_records_which_is_said_and_decides_nothing() -> None:
    text = """{version: 1, name: t, reference: {topic: a, version: x}, candidate: {topic: b, version: y},
    control: c, order: total,
    checks: [{id: late, closed_windows: {end: end}}, {id: mark, watermark: never_back}]}"""
    answer = twinstream.check(loads(text), [GOOD], [GOOD])
    assert answer.checks_hold
    assert [result.candidate and result.candidate.state for result in answer.checks] == ["not_checked"] * 2
    assert "check late: not checked, since recorded output has no control records" in answer.text


@pytest.mark.parametrize(
    ("entry", "reference", "candidate", "code"),
    [
        ("not_null: [n]", [GOOD], [GOOD], 0),
        ("not_null: [zzz]", [GOOD], [GOOD], 1),
        ("not_null: [zzz], gate: undecided", [GOOD], [GOOD], 3),
        ("not_null: [zzz], gate: ignore", [GOOD], [GOOD], 0),
        ("not_null: [zzz], side: candidate", [GOOD], [GOOD], 1),
        ("not_null: [zzz], side: reference", [GOOD], [GOOD], 3),
        ("once: [zzz], horizon: 1m", [GOOD], [GOOD], 3),
        ("once: [zzz], horizon: 1m, gate: undecided", [GOOD], [GOOD], 0),
        ("not_null: [n], gate: ignore", [GOOD], [{**GOOD, "n": 2}], 1),
        ("not_null: [zzz], gate: undecided", [GOOD], [{**GOOD, "n": 2}], 1),
        ("not_null: [zzz]", [], [], 0),
    ],
)
def test_the_exit_code_is_that_of_the_verdict_unless_a_check_makes_it_worse(
    entry: str, reference: list[Any], candidate: list[Any], code: int
) -> None:
    answer = twinstream.check(spec("unordered", declared(entry)), reference, candidate, allow_empty=True)
    assert exit_of_answer(answer.to_dict()) == code
