"""What is told of differences in a quick way is what the plain definition says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from math import floor, log10
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.worlds import World, worlds
from twinstream.core import canonical as exact
from twinstream.explain.masking import EVERYTHING, Mask
from twinstream.explain.sentences import text_of
from twinstream.explain.title import title
from twinstream.explain.visible import Visible
from twinstream.grouping import patterns
from twinstream.grouping.common import CommonMembers, Members
from twinstream.spec.codec.reduction import differences
from twinstream.spec.file.paths import ABSENT, parse_path, path_text

NAMES = st.sampled_from(["a", "b", "a.b", "\\", "c\\.d", ""])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
CLOSE = st.sampled_from([0, 1, 1.0, True, False, Decimal(1), "1", "", None, -0.0, 2**60])
VALUES = st.recursive(
    CLOSE | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
WHOLE = st.integers(-(10**7), 10**7)
NUMBERS = WHOLE | st.floats(-1e15, 1e15) | st.builds(lambda n, d: n / 10**d, WHOLE, st.integers(0, 10))


def plain_differences(left: Any, right: Any, at: tuple[str, ...] = ()) -> list[Any]:
    """The definition: members are asked one by one, and canonical forms decide."""
    if isinstance(left, dict) and isinstance(right, dict):
        parts = (
            plain_differences(left.get(name, ABSENT), right.get(name, ABSENT), (*at, name))
            for name in sorted({*left, *right})
        )
        return [found for part in parts for found in part]
    absent = left is ABSENT or right is ABSENT
    return [(at, (left, right))] if absent or exact.canonical(left) != exact.canonical(right) else []


@given(VALUES, VALUES)
@example({"a": 1}, {"a": True})
@example({"a": 1}, {"a": 1.0})
def test_differences_are_those_of_canonical_forms(left: Any, right: Any) -> None:
    assert repr(list(differences(left, right))) == repr(plain_differences(left, right))


@given(st.text(alphabet="ab.\\\n", max_size=8), st.lists(NAMES, max_size=4).map(tuple))
def test_paths_are_read_and_written_as_their_grammar_says(text: str, path: tuple[str, ...]) -> None:
    names = re.findall(r"(?:[^.\\]|\\.)+", text)
    assert parse_path(text) == tuple(re.sub(r"\\(.)", r"\1", name) for name in names)
    assert path_text(path) == ".".join(re.sub(r"([.\\])", r"\\\1", name) for name in path)


@given(st.sets(st.lists(NAMES, max_size=2).map(tuple), max_size=3), st.lists(NAMES, max_size=3).map(tuple))
def test_a_mask_shows_what_lies_at_or_below_a_shown_path(
    shown: set[tuple[str, ...]], path: tuple[str, ...]
) -> None:
    named = [path_text(one) for one in shown]
    assert Mask(named).shows(path) == any(path[: len(one)] == one for one in map(parse_path, named))


# -- patterns ----------------------------------------------------------------------------------------------


def digits_by_text(number: Any) -> int:
    text = repr(number)
    if abs(number) < patterns.SMALLEST and number:
        return 10
    whole, _, fraction = text.partition(".")
    if fraction.strip("0"):
        return len(fraction)
    return max(-3, len(whole.rstrip("0")) - len(whole)) if whole.strip("-0") else -3


def plain_span(exact_number: Any, rounded: Any) -> str | None:
    """The fewest and most digits, by the text of the number and a logarithm."""
    apart = abs(exact_number - rounded)
    if not apart or apart > 500:
        return None
    fewest, most = digits_by_text(rounded), floor(min(9, log10(0.5 / apart) + 1e-9))
    return f"{fewest} {most}" if fewest <= most else None


@given(NUMBERS, NUMBERS, st.none() | st.integers(-3, 9))
@example(0, 5e-324, None)
def test_the_digits_of_a_rounded_number_are_those_of_its_text(
    one: Any, other: Any, digits: int | None
) -> None:
    if digits is not None:
        other = round(one, digits)
    assert patterns._rounded(one, other) == plain_span(one, other)


@given(NUMBERS, NUMBERS | st.sampled_from([*(10**n for n in range(10)), 60, 3600, 24, 1024]), st.booleans())
def test_a_factor_is_the_unit_that_the_quotient_is(one: Any, by: Any, divides: bool) -> None:
    other = one / by if divides and by else one * by
    plain = patterns._UNITS.get(f"{other / one:.9g}") if one else None
    assert patterns._factor(one, other) == plain


@given(st.datetimes(), st.timedeltas() | st.timedeltas().map(lambda apart: apart * 0))
def test_times_are_as_far_apart_as_their_difference(one: Any, apart: Any) -> None:
    try:
        other = one + apart
    except OverflowError:
        return
    seconds = Fraction((other - one).total_seconds())
    found = patterns._moved_text_time(one.isoformat(), other.isoformat())
    assert found == (seconds or None)
    assert type(found) is (type(None) if not seconds else int if seconds.denominator == 1 else float)


# -- members in common -------------------------------------------------------------------------------------


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), CLOSE), min_size=1, max_size=6))
def test_members_in_common_have_one_value_of_one_type_in_all(fed: list[Mapping[str, Any]]) -> None:
    common = CommonMembers()
    for values in fed:
        common.add(Members(values, lambda _, value: repr(value)))
    first, *others = fed
    assert list(common) == [
        (name, repr(value))
        for name, value in first.items()
        if all(
            name in one and one[name] == value and type(one[name]) is type(value)
            for one in others
        )
    ]  # fmt: skip


# -- reports -----------------------------------------------------------------------------------------------


@given(worlds(), st.booleans())
def test_a_record_that_is_read_once_tells_what_it_tells_when_read_each_time(
    world: World, shown: bool
) -> None:
    driver = world.driver(identity=["v"])
    driver.take(world.batches())
    driver.end()
    driver.comparison.review()
    each = Visible(driver.spec, driver.codec, EVERYTHING if shown else Mask(["k"]))
    for divergence in driver.findings():
        finding, once = divergence.finding, each.once()
        for _ in range(2):  # What was told has changed nothing that was read.
            assert title(finding, once) == title(finding, each)
            order = driver.spec.order
            assert text_of(divergence, order, once) == text_of(divergence, order, each)
            assert once.key(finding.event) == each.key(finding.event)
            assert once.value(finding.event) == each.value(finding.event)
            assert repr(once.compared(finding)) == repr(each.compared(finding))
