"""The pattern that is told of the pairs of values of a field, and how many it fits."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pytest

from twinstream.grouping.patterns import TRIAL, FieldPatterns, Fit
from twinstream.spec.file.paths import ABSENT


def fed(pairs: list[tuple[Any, Any]]) -> FieldPatterns:
    patterns = FieldPatterns()
    for one, other in pairs:
        patterns.add(one, other)
    return patterns


PRICES = [1.234, 5.678, 9.101, 3.337]


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([(39, 40), (7, 8), (12, 13)], ("shift", None, 1)),
        ([(39, 38.5), (7.25, 6.75)], ("shift", None, -0.5)),
        ([(Decimal("1.1"), Decimal("1.3")), (0.1, 0.3)], ("shift", None, 0.2)),
        ([(1_700_000_000_000 + n, 1_700_003_600_000 + n) for n in range(2)], ("later", None, 3600)),
        ([("2013-01-01T05:00:00Z", "2013-01-01T04:00:00Z"), ("2013-03-01T05:00:00Z", "2013-03-01T04:00:00Z")],
         ("later", None, -3600)),
        ([(3, -3), (-4, 4)], ("sign", None, None)),
        ([(1.5, 1500), (2, 2000)], ("factor", None, "× 1,000")),
        ([(1500, 1.5), (2000, 2)], ("factor", None, "÷ 1,000")),
        ([(price, round(price, 1)) for price in PRICES], ("rounded", "candidate", 1)),
        ([(round(price), price) for price in PRICES], ("rounded", "reference", 0)),
        ([(517, 500), (1234, 1200)], ("rounded", "candidate", -2)),
        ([("Ann", None), ("Bob", None)], ("null", "candidate", None)),
        ([(ABSENT, 3), (ABSENT, "x")], ("absent", "reference", None)),
        ([("Ann", "ANN")], ("case", None, None)),
        ([("abcdef", "abc"), ("xyz12", "xyz")], ("cut", "candidate", None)),
        ([(3, 0), (9, 0), (5, 0)], ("constant", "candidate", "0")),
        ([("a", "x"), ("b", "x")], ("constant", "candidate", '"x"')),
        ([(True, False), (True, False)], ("constant", "candidate", "false")),
    ],
)  # fmt: skip
def test_the_pattern_that_fits_all_pairs_is_told(
    pairs: list[tuple[Any, Any]], told: tuple[str, str | None, Any]
) -> None:
    assert fed(pairs).best() == Fit(*told, len(pairs))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pairs",
    [
        [(39, 40)],  # Any two numbers differ by some number.
        [("a", "b"), ("c", "d")],
        [("straße 1", "strasse 1"), ("\u00b5s", "\u03bcs")],  # Both are in lower case.
        [(1, 5), (7, 2), (3, 9)],
        [({"a": 1}, [2]), (None, 3), (4, None), (True, False), ("", 7)],
        [(float("nan"), 1), (float("inf"), 1e300), (10**400, 2)],
    ],
)
def test_no_pattern_is_told_without_evidence(pairs: list[tuple[Any, Any]]) -> None:
    assert fed(pairs).best() is None


def test_a_pattern_counts_exactly_the_pairs_that_it_fits_also_behind_the_trial() -> None:
    seed = 20261125
    random = Random(seed)
    shifted = [(number, number + 7) for number in range(3 * TRIAL)]
    other = [(number, number + random.choice([1, 2, 3, 11])) for number in range(TRIAL)]
    pairs = shifted + other
    random.shuffle(pairs)
    assert fed(pairs).best() == Fit("shift", None, 7, len(shifted)), f"seed {seed}"


def test_rounding_counts_the_same_in_the_trial_and_behind_it() -> None:
    random = Random(7)
    prices = [random.uniform(0, 900) for _ in range(4 * TRIAL)]
    pairs = [(price, round(price, 2)) for price in prices] + [(price, price + 0.4) for price in prices[:50]]
    random.shuffle(pairs)
    assert fed(pairs).best() == Fit("rounded", "candidate", 2, len(prices))


@pytest.mark.parametrize("cut", [1, TRIAL - 1, TRIAL, 2 * TRIAL])
def test_saved_counts_go_on_as_if_nothing_had_happened(cut: int) -> None:
    pairs: list[tuple[Any, Any]] = [(n / 7, round(n / 7, 1)) for n in range(1, 3 * TRIAL) if n % 7]
    going_on = FieldPatterns()
    going_on.restore(fed(pairs[:cut]).state())
    for pair in pairs[cut:]:
        going_on.add(*pair)
    assert going_on.best() == fed(pairs).best() == Fit("rounded", "candidate", 1, len(pairs))
