from __future__ import annotations

from typing import Any

from twinstream.explain.picture import ASCII
from twinstream.explain.text import SHOWN, heading, tell_answer, tell_divergence

TEXT = "Missing from the candidate: 1. Reference p0:3. " * 3
REPORT: dict[str, Any] = {
    "id": "5f0c",
    "kind": "missing",
    "scope": {"taxi": 7, "day": "mon"},
    "reference": 1,
    "candidate": None,
    "positions": {"reference": {"topic": "r", "partition": 0, "offset": 3}, "candidate": None},
    "fields": {},
    "witness": [],
    "text": TEXT.strip(),
    "title": "ride a · taxi 7",
}


def answer(verdict: str = "DIVERGED", missing: int = 1, examples: int = 1) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "reason": "The outputs differ.",
        "events": {"reference": 12000, "candidate": 3},
        "matched": 1,
        "unmatched": {"reference": 1, "candidate": 0},
        "divergences": {"total": missing, "by_kind": {"missing": missing, "extra": 0}},
        "examples": [REPORT] * examples,
    }


def test_an_answer_is_told_with_counts_and_pictures() -> None:
    told = tell_answer(answer(), 80).splitlines()
    assert told[:5] == [
        "DIVERGED The outputs differ.",
        "events: reference 12,000, candidate 3; matched 1 pair; unmatched: reference 1, candidate 0",
        "divergences: 1 missing",
        "",
        "1. missing · ride a · taxi 7 · id 5f0c",
    ]
    assert told[5].startswith("   Missing from the candidate: 1.")
    assert "✕" in told[-1]


def test_rows_that_were_replaced_are_told_beside_the_events_where_any_can_be() -> None:
    accounts = {
        "reference": {"consumed": 1, "superseded": 9000},
        "candidate": {"consumed": 1, "superseded": 0},
    }
    told = tell_answer({**answer(), "accounts": accounts}).splitlines()
    assert told[1].endswith("candidate 0; superseded: reference 9,000, candidate 0")
    for account in accounts.values():
        del account["superseded"]
    assert "superseded" not in tell_answer({**answer(), "accounts": accounts})


def test_without_divergences_there_are_two_lines() -> None:
    assert len(tell_answer(answer("EQUIVALENT", 0, 0)).splitlines()) == 2


def test_the_first_divergences_are_told_and_the_others_counted() -> None:
    told = tell_answer(answer(missing=1200, examples=100))
    assert told.count("id 5f0c") == SHOWN
    assert told.endswith("and 1,195 more; --json has the first 100")


def test_sentences_are_wrapped_unless_told_otherwise() -> None:
    wrapped = tell_divergence(REPORT, 60).splitlines()
    assert all(len(line) <= 60 for line in wrapped)
    assert f"   {TEXT.strip()}" in tell_divergence(REPORT, 60, wrapped=False).splitlines()


def test_a_heading_is_in_ascii_where_the_picture_is() -> None:
    report = {**REPORT, "title": "fare 1 → 2 · taxi 7"}
    assert heading(report, 80, ASCII) == "missing - fare 1 -> 2 - taxi 7 - id 5f0c"


def test_a_report_without_a_title_is_headed_by_its_scope() -> None:
    assert heading({**REPORT, "title": ""}, 80) == 'missing · taxi 7, day "mon" · id 5f0c'
    assert heading({**REPORT, "title": "", "scope": {}}, 80) == "missing · id 5f0c"


def test_what_is_told_cannot_act_on_the_terminal() -> None:
    report = {**REPORT, "scope": {"\x1b": "\x9b"}, "text": "a\x1bb"}
    assert tell_divergence(report).replace("\n", "").isprintable()
