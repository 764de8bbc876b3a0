"""What is masked tells type, length and sameness, and nothing else."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from tests.support.streams import LEFT, RIGHT, Batch, Driver, record, spec
from twinstream.explain.masking import Mask
from twinstream.spec.file.paths import parse_path

SECRET = b"a secret of the tests"


def hash_of(stand_in: str) -> str:
    found = re.search(r"#([0-9a-f]{8})›$", stand_in)
    assert found, stand_in
    return found[1]


def unhashed(value: Any) -> Any:
    """The same with ``#…`` for each hash."""
    if isinstance(value, dict):
        return {unhashed(name): unhashed(member) for name, member in value.items()}
    return re.sub("#[0-9a-f]{8}›", "#…›", value) if isinstance(value, str) else value


def test_masked_values_show_type_length_and_hash_only_except_those_that_may_be_seen() -> None:
    nested = {"x": 1.5, "y": {"z": 2}}
    value = {"id": 7, "s": "abc", "b": True, "n": None, "l": [1, 2], "o": nested, "r": b"x"}
    assert unhashed(Mask(["id", "o.y"], secret=SECRET)(value)) == {
        "id": 7,
        "s": "‹text, 3 characters, #…›",
        "b": "‹boolean, #…›",
        "n": "‹null›",
        "l": "‹list of 2, #…›",
        "o": {"x": "‹number, #…›", "y": {"z": 2}},
        "r": "‹1 bytes, #…›",
    }


def test_equal_values_of_a_field_have_one_hash_however_they_are_written() -> None:
    mask = Mask([], secret=SECRET)
    one = mask({"n": 1, "s": "a", "l": [1, {"x": 2}]})
    assert one == mask({"n": Decimal("1.0"), "s": "a", "l": [1.0, {"x": 2}]})
    assert mask({"s": "b"})["s"] != one["s"]


def test_a_value_and_its_text_and_equal_values_of_two_fields_have_hashes_of_their_own() -> None:
    mask = Mask([], secret=SECRET)
    seen = mask({"a": "1", "b": "1", "c": {"b": "1"}, "d": 1})
    assert len(set(map(hash_of, (seen["a"], seen["b"], seen["c"]["b"], seen["d"])))) == 4
    assert hash_of(mask(1, ("a",))) != hash_of(mask("1", ("a",)))


def test_another_secret_and_another_comparison_have_other_hashes() -> None:
    masks = [Mask([], secret=SECRET), Mask([], secret=b"another"), Mask([], secret=SECRET, domain="ads")]
    assert len({hash_of(mask("Ann")) for mask in masks}) == 3
    masks[1].take(SECRET)
    assert masks[1]("Ann") == masks[0]("Ann")


def test_names_of_a_map_are_masked_where_they_are_data_and_its_members_by_their_field() -> None:
    mask = Mask(["fares.*.currency"], ["fares"], SECRET)
    seen = mask({"fares": {"ann@example.com": {"tip": 1, "currency": "CHF"}, "bob@example.com": {"tip": 1}}})
    ann, bob = seen["fares"]
    assert unhashed(seen)["fares"].keys() == {"‹name, 15 characters, #…›"}
    assert ann != bob
    assert seen["fares"][ann]["tip"] == seen["fares"][bob]["tip"]
    assert seen["fares"][ann]["currency"] == "CHF"
    assert mask.path(("fares", "ann@example.com", "tip")) == ("fares", ann, "tip")
    assert mask(1, ("fares", "ann@example.com", "tip")) == seen["fares"][ann]["tip"]


def test_a_map_that_may_be_seen_is_shown_with_its_names() -> None:
    mask = Mask(["fares"], ["fares"], SECRET)
    assert mask({"fares": {"ann": 1}}) == {"fares": {"ann": 1}}
    assert mask.path(("fares", "ann")) == ("fares", "ann")


def test_a_map_in_a_map_hides_both_names() -> None:
    mask = Mask([], ["a", "a.*"], SECRET)
    assert "ann" not in str(mask({"a": {"ann": {"ann": 1}}}))
    assert "ann" not in str(mask.path(("a", "ann", "ann", "x")))


def reported(
    more: str, left: dict[str, Any], right: dict[str, Any], order: str = "unordered", secret: bytes = SECRET
) -> dict[str, Any]:
    driver = Driver(spec(order, more))
    driver.take([Batch(LEFT, [record(left)]), Batch(RIGHT, [record(right)])], review=True)
    driver.end()
    (report,) = driver.reports(Mask.of(driver.spec, secret))
    return report


def test_a_report_says_which_names_differ_without_naming_them() -> None:
    left, right = ({"id": 1, "fares": {"ann": tip, "bob": 2}} for tip in (1, 3))
    report = reported("identity: [id]\nmaps: [fares]", left, right)
    (path,) = report["fields"]
    assert unhashed(path) == "fares.‹name, 3 characters, #…›"
    assert parse_path(path)[1] in report["reference"]["fares"]
    assert "ann" not in str(report)
    assert report["fields"][path]["reference"] == report["reference"]["fares"][parse_path(path)[1]]


def test_sides_that_have_the_same_value_show_the_same_hash() -> None:
    report = reported("identity: [id]", {"id": "x", "a": 1, "b": 2}, {"id": "x", "a": 1.0, "b": 3})
    assert report["reference"]["a"] == report["candidate"]["a"]
    assert report["reference"]["b"] != report["candidate"]["b"]


@pytest.mark.parametrize("more", ["identity: [id]", "identity: [id]\nshow: [b]"])
def test_an_id_does_not_tell_the_key_to_who_tries_all_there_are(more: str) -> None:
    """It is the same whatever the key, and with a new secret, where that was lost with the store."""
    ids = {
        reported(more, {"id": key, "b": 1}, {"id": key, "b": 2}, "{per_key: [id]}", secret)["id"]
        for secret, key in product((SECRET, b"another"), "xy")
    }
    assert len(ids) == 1
