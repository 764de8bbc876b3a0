"""The examples and messages of docs/spec.md are what the product takes and says."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.support.refusals import HEAD, refusal
from twinstream import check
from twinstream.spec.file.schema import comparison_schema
from twinstream.spec.file.source import read_source
from twinstream.spec.load import loads

PAGE = (Path(__file__).parents[3] / "docs" / "spec.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
MESSAGES = " ".join(re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[-1].split())
SCHEMA = Draft202012Validator(comparison_schema())
KINDS = (
    *("end_of_day", "end_of_month", "end_of_hour", "flush", "gps", "ride"),
    *("inc", "dec", "barrier", "reading", "punctuation"),
)


def whole(example: str) -> str:
    """An example as a file, with the parts that it does not show."""
    if "version:" in example:
        return example
    words = re.findall(r"\w+", example.replace("barrier:", ""))
    kinds = {kind: {} for kind in KINDS if kind in words}
    order = "" if "order:" in example else "order: total\n"
    declared = "" if "kinds:\n" in example else f"kinds: {yaml.safe_dump(kinds, default_flow_style=True)}"
    return f"{HEAD}{declared}{order}{example}"


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module `checks`, which an example names: it has the functions that the page shows."""
    module = ModuleType("checks")
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, vars(module))
    monkeypatch.setitem(sys.modules, "checks", module)


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_taken(example: str) -> None:
    text = whole(example)
    loads(text)
    SCHEMA.validate(read_source(text, "ads.yaml").data)


@pytest.mark.usefixtures("functions")
def test_the_function_of_the_example_accepts_any_largest_row_and_no_other() -> None:
    (equality,) = (yaml.safe_load(example)["equality"] for example in EXAMPLES if "any_of:" in example)
    rows = [{"x": x, "y": y} for x, y in ((1, 5), (2, 5), (3, 4))]
    results = [
        {"result": row, "group": group} for row, group in zip(rows, (rows, rows[::-1], rows), strict=True)
    ]
    spec = {"order": "unordered", "equality": equality}
    assert check(spec, results[:1], results[1:2]).equivalent
    assert not check(spec, results[:1], results[2:]).equivalent


def test_there_are_examples_of_every_form() -> None:
    forms = ("per_key", "by_key", "barrier", "parallel", "dependent", "same", "before", "quantum")
    assert all(any(f"{form}:" in example for example in EXAMPLES) for form in forms)


DAY = f"{HEAD}kinds: {{day: {{where: {{type: day}}}}, ride: {{}}}}\n"
TOTAL = f"{HEAD}order: total\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}orde: total",
        f"{HEAD}order: sorted",
        f"{DAY}order:\n  barrier: day\n  inner: {{per_kye: [taxi]}}",
        f"{DAY}order: {{barrier: dya, inner: total}}",
        f"{DAY}order: {{barrier: day, inner: {{dependent: [[day, ride]]}}}}",
        f"{DAY}order: {{dependent: [{{pair: [ride, ride], before: {{field: ts}}}}]}}",
        f"{HEAD}order: {{per_key: [taxi]}}\nequality: {{ignore: [taxi]}}",
        f"{HEAD}order: {{per_key: [taxi]}}\nequality: {{compare_only: [fare]}}",
        f"{HEAD}order: unordered\nequality: {{tolerance: {{eta: {{abs: 0.5}}}}}}",
        f"{TOTAL}equality: {{ignore: [meta], quantum: {{meta.fare: 0.01}}}}",
        f"{TOTAL}identity: [$offset]",
        f"{TOTAL}decode: {{format: avro}}",
        f"{TOTAL}overdue: {{after: 1 minute}}",
        f"{TOTAL}overdue: {{clock: kafka}}",
        f"{TOTAL}overdue: {{clock: input}}",
        f"{TOTAL}control: ads.control",
        f"{TOTAL}emits: upsert",
        f"{TOTAL}order: total",
    ],
)
def test_a_message_is_the_one_that_is_shown(text: str) -> None:
    assert f"twinstream: {refusal(text)}" in MESSAGES
