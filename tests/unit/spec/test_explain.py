from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.streams import LEFT, RIGHT, Batch, Driver, batches, spec
from twinstream.core.accounts import Hole
from twinstream.spec.explain import Explainer, masked, plain
from twinstream.spec.load import digest


def reports(
    order: str, text: str | Sequence[Batch], more: str = "", *, show: Any = plain, hole: bool = False
) -> list[dict[str, Any]]:
    driver = Driver(spec(order, more))
    if hole:
        driver.comparison.hole(Hole("lost"))
    driver.take(batches(text) if isinstance(text, str) else text, review=True)
    driver.end()
    explainer = Explainer(driver.spec, digest(driver.spec), driver.codec, show)
    return [explainer.report(divergence) for divergence in driver.findings()]


TEXTS = [
    (
        "total",
        "L:a1 L:b1 R:b1",
        """
        The reference put out {"k":"a","v":1} (partition 0 offset 0), and the candidate did not. The
        outputs are compared in one order: both sides have gone on to an equal pair behind it
        (reference partition 0 offset 1, candidate partition 0 offset 0), so its partner cannot come
        any more.
        """,
    ),
    (
        "{per_key: [k]}",
        "L:a2 R:a1 R:a2",
        """
        For k "a", the candidate put out {"k":"a","v":1} (partition 0 offset 0), and the reference
        did not. The outputs are compared in order per k: both sides have gone on to an equal pair
        behind it (reference partition 0 offset 0, candidate partition 0 offset 1), so its partner
        cannot come any more.
        """,
    ),
    (
        "total",
        "L:a1 R:a1 R:a1 L:.",
        """
        The candidate put out {"k":"a","v":1} (partition 0 offset 1) once more than the reference.
        The outputs are compared in one order, and in its place the other side ended or went on with
        something else.
        """,
    ),
    (
        "{per_key: [k]}",
        "L:a1 L:a2 L:a3 R:a2 R:a3 R:a1",
        """
        For k "a", both sides put out {"k":"a","v":1}, but not in the same order: reference
        partition 0 offset 0, candidate partition 0 offset 2. The outputs are compared in order per
        k: on one side it comes before an equal pair (reference partition 0 offset 1, candidate
        partition 0 offset 0), on the other behind it.
        """,
    ),
    (
        "unordered",
        "L:a1",
        """
        The reference put out {"k":"a","v":1} (partition 0 offset 0), and the candidate did not. The
        outputs are compared in any order, and no equal one came before the other side ended or was
        long past it.
        """,
    ),
]


@pytest.mark.parametrize(("order", "trace", "text"), TEXTS)
def test_a_difference_is_told_in_plain_words(order: str, trace: str, text: str) -> None:
    assert [report["text"] for report in reports(order, trace)] == [" ".join(text.split())]


def test_a_change_names_the_fields_that_differ_and_are_compared() -> None:
    steps = [
        Batch(LEFT, [b'{"id":1,"v":1,"same":1.0,"t":5,"o":{"x":1}}']),
        Batch(RIGHT, [b'{"id":1,"v":2,"same":1,"t":6,"o":{"x":1,"y.z":"new"}}']),
    ]
    (report,) = reports("unordered", steps, "identity: [id]\nequality: {ignore: [t]}")
    assert report["kind"] == "changed"
    assert report["fields"] == {
        "o.y\\.z": {"reference": None, "candidate": "new"},
        "v": {"reference": 1, "candidate": 2},
    }
    assert report["text"].endswith("instead. They differ in o.y\\.z, v.")


def test_values_that_are_no_objects_differ_as_a_whole() -> None:
    (report,) = reports("unordered", [Batch(LEFT, [b"5"]), Batch(RIGHT, [b"6"])], "identity: [id]")
    assert report["fields"] == {"": {"reference": 5, "candidate": 6}}
    assert report["text"].endswith("They differ in the whole value.")


def test_what_lies_behind_a_hole_says_so() -> None:
    (report,) = reports("unordered", "L:a1", hole=True)
    assert report["tainted"] is True
    assert report["text"].endswith("a part of the input that was not checked, so it decides nothing.")


def test_positions_scope_and_witness_are_data() -> None:
    (report,) = reports("{per_key: [k]}", "L:a1 L:a2 R:a2")
    assert report["kind"] == "missing"
    assert report["scope"] == {"k": "a"}
    assert report["positions"] == {
        "reference": {"topic": "r", "partition": 0, "offset": 0},
        "candidate": None,
    }
    assert (report["reference"], report["candidate"]) == ({"k": "a", "v": 1}, None)
    assert [(seen["side"], seen["position"]["offset"], seen["value"]["v"]) for seen in report["witness"]] == [
        ("reference", 1, 2),
        ("candidate", 0, 2),
    ]


def test_the_same_difference_found_again_has_the_same_id_and_another_has_another() -> None:
    ids = [reports("total", trace)[0]["id"] for trace in ("L:a1 L:b1 R:b1", "L:a1 R:. L:b1", "R:a1")]
    assert ids[0] == ids[1] != ids[2]


def test_long_values_are_cut_and_control_characters_do_not_reach_a_terminal() -> None:
    steps = [Batch(LEFT, [b'{"k":"\\u001b[31m","v":"%s"}' % (b"x" * 1000)])]
    (report,) = reports("{per_key: [k]}", steps)
    assert len(report["text"]) < 700
    assert "…" in report["text"]
    assert "\x1b" not in report["text"]


def test_numbers_that_json_libraries_would_round_are_kept_as_texts() -> None:
    (report,) = reports("total", [Batch(LEFT, [b'{"v":[0.10000000000000000001]}'])])
    assert report["reference"] == {"v": ["0.10000000000000000001"]}


def test_masked_values_show_their_type_only_except_those_that_may_be_seen() -> None:
    value = {"id": 7, "s": "abc", "b": True, "n": None, "l": [1, 2], "o": {"x": 1.5, "y": {"z": 2}}}
    assert masked(["id", "o.y"])(value) == {
        "id": 7,
        "s": "‹text, 3 characters›",
        "b": "‹boolean›",
        "n": "‹null›",
        "l": "‹list of 2›",
        "o": {"x": "‹number›", "y": {"z": 2}},
    }


def test_a_masked_report_holds_no_value_that_may_not_be_seen() -> None:
    steps = [
        Batch(LEFT, [b'{"id":"secret-1","v":"secret-2"}']),
        Batch(RIGHT, [b'{"id":"secret-1","v":"secret-3"}']),
    ]
    for order in ("unordered", "{per_key: [id]}", "total"):
        (report,) = reports(order, steps, "identity: [id]", show=masked([]))
        assert report["kind"] == "changed"
        assert "secret" not in str(report)
