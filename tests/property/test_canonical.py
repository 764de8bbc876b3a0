"""Values in every spelling: the fast path, the exact path and an independent definition agree."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.spelling import Number, Style, meaning, write
from twinstream.core.canonical import DEPTH_LIMIT, canonical, parse
from twinstream.errors import DecodeError
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.decode.formats.jsontext import decode

SPELLINGS = [
    *("0", "-0", "0.0", "-0.0", "0e5", "-0E-3", "0.000"),
    *("1", "1.0", "1e0", "10e-1", "0.1e1", "1.000", "1E+0", "100e-2", "-1", "-1.0"),
    *("0.1", "0.10", "1e-1", "0.10000000000000000001", "0.1000000000000000055511151231257827"),
    *("9007199254740992", "9007199254740993", "9007199254740992.0", "9007199254740993.0"),
    *("18446744073709551615", "18446744073709551616", "18446744073709551615.0", "-9223372036854775809"),
    *("1e15", "1000000000000000", "999999999999999.5", "1e20", "100000000000000000000", "1e21", "1e22"),
    *("1000000000000000000000", "123456789012345678901234567890", "123456789012345678901234567891"),
    *(
        "1e400",
        "10e399",
        "1e-400",
        "5e-324",
        "4.9e-324",
        "2.5e-324",
        "1.7976931348623157e308",
        "1e-3",
        "0.001",
    ),
    *("0.0001", "1e-4", "0.00001", "1e-5", "123456.789", "123456789e-3", "1.5", "15e-1", "3.0e2", "300"),
]

numbers = st.one_of(
    st.sampled_from(SPELLINGS),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
).map(Number)
texts = st.one_of(
    st.sampled_from(["", "a", "a b", '", ', '": ', "\\", '"', "é", "\u2028", "\x00", "\x7f", "😀"]), st.text()
)
names = st.one_of(st.sampled_from(["a", "b", "", '": ', "é", "\uffff", "😀"]), st.text(max_size=3))
trees = st.recursive(
    st.one_of(numbers, texts, st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=10,
)


styles = st.builds(
    Style,
    st.sampled_from([",", ", ", " ,", ",\n", "\t,\r\n "]),
    st.sampled_from([":", ": ", " : "]),
    st.sampled_from(["", " ", "\n"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


def answers(record: bytes) -> tuple[bytes | None, bytes | None]:
    """The canonical form by the exact and by the fast path, None where a record is refused."""
    found: list[bytes | None] = []
    for read, form in ((parse, canonical), (decode, canonical_value)):
        try:
            found.append(form(read(record)))
        except DecodeError:
            found.append(None)
    return found[0], found[1]


@given(trees, styles)
def test_the_fast_path_agrees_with_the_exact_one(tree: Any, style: Style) -> None:
    exact, fast = answers(write(tree, style).encode())
    assert exact is not None
    assert fast == exact


@given(trees, styles, styles)
def test_the_style_of_writing_does_not_matter(tree: Any, one: Style, other: Style) -> None:
    assert answers(write(tree, one).encode()) == answers(write(tree, other).encode())


@given(st.one_of(trees, numbers), st.one_of(trees, numbers), styles)
def test_canonical_bytes_are_equal_exactly_for_equal_values(one: Any, other: Any, style: Style) -> None:
    equal = canonical(parse(write(one, style).encode())) == canonical(parse(write(other).encode()))
    assert equal == (meaning(one) == meaning(other))


@pytest.mark.parametrize("one", SPELLINGS)
def test_spellings_of_numbers_are_equal_exactly_for_equal_numbers(one: str) -> None:
    for other in SPELLINGS:
        for wrap in ("{}", '{{"a":{}}}', '{{"a": [{}]}}'):
            pair = [answers(wrap.format(spelling).encode()) for spelling in (one, other)]
            assert (pair[0] == pair[1]) == (Fraction(one) == Fraction(other)), (one, other)


@given(trees, styles)
def test_a_canonical_form_is_its_own(tree: Any, style: Style) -> None:
    form = canonical(parse(write(tree, style).encode()))
    assert answers(form) == (form, form)


@given(trees, styles, st.data())
def test_damaged_records_are_refused_by_both_or_by_none(tree: Any, style: Style, data: st.DataObject) -> None:
    record = bytearray(write(tree, style).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(record)))
        record[place : place + data.draw(st.integers(0, 1))] = data.draw(
            st.one_of(
                st.binary(max_size=1),
                st.sampled_from([b'"', b",", b"e9", b"NaN", b"\\ud800", b"[", b"0", b"-"]),
            )
        )
    exact, fast = answers(bytes(record))
    assert exact == fast


REFUSED = [
    *(b"", b" ", b"{", b"nul", b"[1,]", b'{"a":1,}', b"01", b"+1", b".5", b"1.", b"1 2", b"'a'", b'"\n"'),
    *(b"NaN", b"-Infinity", b"[Infinity]", b"\xff", b'"\xed\xa0\x80"', b"\xef\xbb\xbf1"),
    *(b'"\\ud800"', b'"\\udc00\\ud800"', b'{"\\ud800": 1}', b'[{"a":["\\udfff"]}]'),
    *(b'{"a":1,"a":1}', b'{"a":1,"\\u0061":2}', b'[{"b":{"a":1, "a":1}}]'),
    *(b"1e9999999999999999999", b"-1e-9999999999999999999", b"[0e99999999999999999999]"),
]


@pytest.mark.parametrize("record", REFUSED)
def test_what_is_no_value_is_refused_by_both(record: bytes) -> None:
    assert answers(record) == (None, None)


@given(
    st.integers(DEPTH_LIMIT - 2, DEPTH_LIMIT + 3),
    st.sampled_from(["[]", "{}"]),
    st.sampled_from(["", "1", '""', "[],1"]),
)
@example(DEPTH_LIMIT, "[]", "")
@example(DEPTH_LIMIT + 1, "[]", "")
@example(DEPTH_LIMIT + 1, "{}", "1")
def test_exactly_what_is_nested_deeper_than_the_limit_is_refused(
    depth: int, bracket: str, inside: str
) -> None:
    levels = depth
    if bracket == "{}":
        text = '{"a":' * (depth - 1) + "{" + (f'"a":{inside}' if inside in {"1", '""'} else "") + "}" * depth
    else:
        text = "[" * depth + inside + "]" * depth
        levels += inside == "[],1"
    exact, fast = answers(text.encode())
    assert exact == fast
    assert (exact is None) == (levels > DEPTH_LIMIT)


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_the_deepest_nesting_is_refused_and_not_a_crash(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth):
        assert answers(text.encode()) == (None, None)


@given(st.integers(0, 10), st.text("[{", min_size=DEPTH_LIMIT, max_size=2 * DEPTH_LIMIT))
def test_brackets_in_a_text_are_no_nesting(wrap: int, text: str) -> None:
    exact, fast = answers(("[" * wrap + json.dumps(text) + "]" * wrap).encode())
    assert exact is not None
    assert exact == fast
