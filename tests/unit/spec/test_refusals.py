"""Every way to write a comparison file wrong, and the sentence that says so: the tables beside this file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.refusals import HEAD, answer, recorded

RECORDED = recorded(sorted(Path(__file__).with_name("refusals").glob("*.txt")))


@pytest.mark.parametrize("claim", RECORDED)
def test_a_file_is_refused_with_the_sentence_beside_it_or_taken(claim: str) -> None:
    text, said, _ = RECORDED[claim]
    assert answer(text) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[" * 5000, "ads.yaml: is nested too deep, or refers to itself"),
        ("\0", "ads.yaml: is not YAML: unacceptable character #x0000"),
        ("1" * 5000, "ads.yaml: holds a value that cannot be read: Exceeds the"),
        (
            f"1e{'9' * 30}",
            "ads.yaml: holds a value that cannot be read: the exponent of a number is out of range",
        ),
    ],
    ids=lambda value: value[:30],
)
def test_what_no_file_should_hold_is_refused_in_a_sentence(value: str, said: str) -> None:
    assert answer(f"{HEAD}order: total\nshow: {value}").startswith(said)
