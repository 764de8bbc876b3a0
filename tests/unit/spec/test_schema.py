"""The JSON Schema says what loading says about the shape of a file."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.support.refusals import recorded
from twinstream.errors import SpecError
from twinstream.spec.file.schema import comparison_schema, text
from twinstream.spec.file.source import read_source
from twinstream.spec.load import loads

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "docs" / "comparison.schema.json"
CASES = sorted((ROOT / "tests" / "cases").glob("*/spec.yaml"))
SCHEMA = Draft202012Validator(comparison_schema())

RECORDED = recorded(sorted(Path(__file__).with_name("refusals").glob("*.txt")))


def data(text: str) -> Any:
    return read_source(text, "ads.yaml").data


def test_the_schema_that_is_kept_is_the_one_of_the_model() -> None:
    command = "python -m twinstream.spec.file.schema > docs/comparison.schema.json"
    assert KEPT.read_text(encoding="utf-8") == text(), f"renew it: {command}"


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(comparison_schema())


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.parent.name)
def test_a_recorded_case_fits_unless_its_file_is_refused(file: Path) -> None:
    expected = json.loads(file.with_name("expected.json").read_text(encoding="utf-8"))["expect"]
    if expected.get("exit_code") != 2:
        SCHEMA.validate(data(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("claim", RECORDED)
def test_the_schema_takes_and_refuses_the_files_of_the_tables_as_they_say(claim: str) -> None:
    text, _, fits = RECORDED[claim]
    with suppress(SpecError):
        assert SCHEMA.is_valid(data(text)) is fits


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every key."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(node, dict):
            yield (*at, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*at, key))


def misspelt(whole: Any, at: tuple[Any, ...]) -> Any:
    whole = copy.deepcopy(whole)
    node = whole
    for part in at[:-1]:
        node = node[part]
    node[f"{at[-1]}x"] = node.pop(at[-1])
    return whole


def test_a_misspelt_key_fits_nowhere() -> None:
    whole = data(RECORDED["every key is taken 0"].text)
    refused = 0
    for at in places(whole):
        wrong = misspelt(whole, at)
        try:
            loads(yaml.safe_dump(wrong, allow_unicode=True, sort_keys=False))
        except SpecError as error:
            if "unknown key" in str(error) or "is not an order" in str(error):
                refused += 1
                assert not SCHEMA.is_valid(wrong), at
    assert refused > 80


def test_every_key_is_described() -> None:
    schema = comparison_schema()
    for name, model in {"Spec": schema, **schema["$defs"]}.items():
        for key, member in model.get("properties", {}).items():
            assert member.get("description"), f"{name}.{key}"
