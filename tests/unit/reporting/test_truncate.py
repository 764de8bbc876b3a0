"""A report keeps of long values what a person reads, and says how long they were."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from twinstream.reporting.truncate import LONGEST_TEXT, LONGEST_VALUE, shortened

SHORT: dict[str, Any] = {
    "id": "7",
    "scope": {"k": 1},
    "reference": {"k": 1, "list": [None, True, 1.5, "x"]},
    "candidate": None,
    "positions": {"reference": {"topic": "r", "partition": 0, "offset": 7}, "candidate": None},
    "fields": {"n": {"reference": 1, "candidate": "‹absent›"}},
    "witness": [{"side": "reference", "position": None, "value": {"k": 2}}],
    "text": "it is missing",
}
MOST = 200_000
"""Bytes of a report, whatever is in it: its six parts, and what stands around the values."""


def test_a_short_report_is_kept_as_it_is() -> None:
    assert shortened(SHORT) == SHORT


def test_a_long_text_is_cut_with_what_it_was() -> None:
    text = "x" * 1_000_000
    found = shortened({**SHORT, "reference": {"k": 1, "n": text, "last": 2}})["reference"]
    assert found == {"k": 1, "n": f"{'x' * LONGEST_TEXT}… ‹cut: 1,000,000 characters›", "last": 2}


def test_both_values_of_a_differing_field_are_cut() -> None:
    long = "x" * LONGEST_TEXT
    fields = {"n": {"reference": f"{long}a", "candidate": f"{long}b"}, "m": {"reference": 1, "candidate": 2}}
    found = shortened({**SHORT, "fields": fields})["fields"]
    cut = f"{long}… ‹cut: {LONGEST_TEXT + 1:,} characters›"
    assert found == {"n": {"reference": cut, "candidate": cut}, "m": fields["m"]}


def test_a_value_with_many_members_says_how_many_more_there_were() -> None:
    found = shortened({**SHORT, "reference": {f"n{n}": n for n in range(100_000)}})["reference"]
    assert found["…"] == f"‹{100_000 - (len(found) - 1):,} more members›"
    items = shortened({**SHORT, "reference": list(range(100_000))})["reference"]
    assert items[-1] == f"‹{100_000 - (len(items) - 1):,} more›"
    fields = {f"n{n}": {"reference": n, "candidate": None} for n in range(100_000)}
    found = shortened({**SHORT, "fields": fields})["fields"]
    said = f"‹{100_000 - (len(found) - 1):,} more fields›"
    assert found["…"] == {"reference": said, "candidate": said}


LARGE = [
    "x" * 10**6,
    {"n" * 10**6: 1},
    [["x" * 10**5] * 100],
    {f"n{n}": "x" * 100 for n in range(10**5)},
    [{"deep": [{"deep": [0] * 10**5}] * 100}] * 100,
]


@pytest.mark.parametrize("value", LARGE, ids=range(len(LARGE)))
def test_whatever_a_report_holds_its_length_is_bounded(value: Any) -> None:
    witness = [{"side": "reference", "position": None, "value": value}] * 2
    fields = {f"{n}{'n' * 50_000}": {"reference": value, "candidate": value} for n in range(100)}
    large = {"scope": {"k": value}, "reference": value, "candidate": value, "witness": witness}
    report = shortened({**SHORT, **large, "fields": fields, "text": "x" * 10**6})
    assert len(orjson.dumps(report)) < MOST
    assert len(report["text"]) < LONGEST_VALUE + 100
    assert report["positions"] == SHORT["positions"]
