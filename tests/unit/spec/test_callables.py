from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.canonical import parse
from twinstream.errors import SpecError
from twinstream.spec.codec.callables import friendly
from twinstream.spec.load import load

ORDER = "{{callable: 'tests.unit.spec.test_callables:{}'}}"


def same_key(one: dict[str, Any], another: dict[str, Any]) -> bool:
    return bool(one["k"] == another["k"])


def failing(_one: object, _another: object) -> bool:
    raise KeyError("taxi")


def one_way(one: dict[str, Any], another: dict[str, Any]) -> bool:
    return bool(one["k"] < another["k"])


def vague(_one: object, _another: object) -> str:
    return "perhaps"


def tells_equals_apart(one: dict[str, Any], another: dict[str, Any]) -> bool:
    return "n" in one and "n" in another and one["n"] + another["n"] == 3


not_a_function = 7


@pytest.fixture
def order() -> Callable[..., Driver]:
    return lambda name, more="": Driver(spec(ORDER.format(name), more))


def ride(key: int, number: int = 0) -> bytes:
    return record({"k": key, "n": number})


def test_a_function_decides_what_is_dependent(order: Callable[..., Driver]) -> None:
    driver = order("same_key")
    driver.feed(LEFT, [ride(1), ride(2), ride(1, 1)])
    driver.feed(RIGHT, [ride(2), ride(1), ride(1, 1)])
    assert (driver.comparison.matched, driver.comparison.diverged) == (3, False)
    driver.feed(LEFT, [ride(3), ride(3, 1)])
    driver.feed(RIGHT, [ride(3, 1)])
    assert driver.comparison.diverged


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "failing",
            r"failed with KeyError in line \d+ of test_callables.py, for the events at partition 0 offset \d",
        ),
        ("one_way", r"is not symmetric: it says False one way and True the other"),
        ("vague", r"answered a str, not True or False"),
    ],
)
def test_a_function_that_fails_or_breaks_a_law_ends_matching_without_a_match_or_a_difference(
    order: Callable[..., Driver], name: str, said: str
) -> None:
    driver = order(name)
    driver.feed(LEFT, [ride(1)])
    driver.feed(RIGHT, [ride(2), ride(1)])
    (hole,) = driver.comparison.holes
    assert hole.reason.startswith(f"`order.callable` tests.unit.spec.test_callables:{name} ")
    assert re.search(said, hole.reason)
    assert (driver.comparison.matched, driver.comparison.diverged) == (0, False)
    driver.feed(LEFT, [ride(1)])
    driver.end()
    assert not driver.comparison.diverged


def test_a_function_that_tells_equal_events_apart_is_found_out(order: Callable[..., Driver]) -> None:
    driver = order("tells_equals_apart", "equality: {ignore: [n]}")
    driver.feed(LEFT, [ride(1, 1), ride(2, 2)])
    driver.feed(RIGHT, [ride(1, 9)])
    assert any("tells equal events apart" in hole.reason for hole in driver.comparison.holes)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tests.unit.spec.test_callables:nothing", "has no function 'nothing'"),
        ("tests.unit.spec.test_callables:not_a_function", "has no function 'not_a_function'"),
        ("nowhere_at_all:f", "'nowhere_at_all' cannot be imported: No module named 'nowhere_at_all'"),
    ],
)
def test_a_function_that_is_not_there_is_named(name: str, said: str) -> None:
    with pytest.raises(SpecError, match=f"`order.callable`: .*{said}"):
        Driver(spec(f"{{callable: '{name}'}}"))


@pytest.mark.parametrize(
    ("text", "said"), [("def f(:", "SyntaxError"), ("1 / 0", "ZeroDivisionError in line 1 of")]
)
def test_a_module_that_cannot_be_run_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = f"broken_{said[:4].lower()}"
    (tmp_path / f"{module}.py").write_text(text)
    file = tmp_path / "ads.yaml"
    order = f"order: {{by_key: [k], inner: {{callable: '{module}:f'}}}}"
    file.write_text(f"version: 1\nname: x\nreference: {{topic: r}}\ncandidate: {{topic: c}}\n{order}\n")
    place = f"ads.yaml:5: `order.inner.callable`: '{module}' cannot be imported: it failed with {said}"
    with pytest.raises(SpecError, match=place):
        load(file)


def test_a_function_of_an_equality_that_is_not_there_is_named_with_its_field(tmp_path: Path) -> None:
    file = tmp_path / "ads.yaml"
    equality = "equality: {any_of: {row: 'tests.unit.spec.test_callables:nothing'}}"
    head = "version: 1\nname: x\nreference: {topic: r}\ncandidate: {topic: c}\norder: total\n"
    file.write_text(f"{head}{equality}\n")
    said = r"ads.yaml:6: `equality.any_of.row`: module .* has no function 'nothing'"
    with pytest.raises(SpecError, match=said):
        load(file)


@pytest.mark.parametrize("whole", [1541815603606036480, -(2**63), 2**64 - 1])
def test_a_whole_number_comes_as_one_however_the_rest_is_spelled(whole: int) -> None:
    for rest in ('"é"', r'"\u00e9"', "2.5", "2.50"):
        value = friendly(parse(f'{{"id":{whole},"rest":{rest}}}'.encode()))
        assert (value["id"], type(value["id"])) == (whole, int)


def test_numbers_come_as_a_program_expects_them() -> None:
    value = friendly({"a": Decimal("0.50"), "b": [Decimal("0.10000000000000000001")], "c": 3})
    assert value == {"a": 0.5, "b": [Decimal("0.10000000000000000001")], "c": 3}
    assert type(value["a"]) is float
