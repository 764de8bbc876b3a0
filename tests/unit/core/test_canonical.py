from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest

from twinstream.core.canonical import canonical, check
from twinstream.errors import DecodeError


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (nan, b"NaN"),
        (-inf, b"-Infinity"),
        (-0.0, b"0"),
        (0.1, b"0.1"),
        (1e300, b"1e300"),
        (5e-324, b"5e-324"),
        (123456789.0, b"123456789"),
        (Decimal("12.50"), b"12.5"),
        (10**30, b"1e30"),
        (b"", b'x""'),
        (b"\x00\xff", b'x"00ff"'),
        ({"b": [b"a", nan], "a": "x"}, b'{"a":"x","b":[x"61",NaN]}'),
    ],
)
def test_values_of_every_format_have_a_form(value: Any, form: bytes) -> None:
    assert canonical(value) == form


def test_what_json_lacks_is_never_equal_to_what_it_has() -> None:
    values = [nan, inf, -inf, b"", b"NaN", "NaN", "Infinity", "-Infinity", 'x""', 'x"61"', "", None, "null"]
    assert len({canonical(value) for value in values}) == len(values)


def test_a_text_of_half_a_surrogate_pair_is_refused_wherever_it_stands() -> None:
    for value in ("\ud800", ["\ud800"], {"\ud800": 1}, {"a": [{"b": "\ud800"}]}):
        with pytest.raises(UnicodeEncodeError):
            check(value)


def test_the_depth_of_a_value_counts_arrays_and_objects() -> None:
    value: Any = 1
    for _ in range(64):
        value = {"a": [value]}
    check(value)
    with pytest.raises(DecodeError, match="nested deeper than 128"):
        check([value])
