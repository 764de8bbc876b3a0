"""Whether two runs' numbers of a field differ by little, and the least that makes them equal.

A number *wobbles* when it differs by far less than the field's values differ among themselves, or by what the
last digits of a binary float lose. Whole numbers and times of the calendar do not wobble: a count that
differs is another count, and a clock is left out as a whole.

- `bound` is the largest difference, rounded up to one digit: a `tolerance`.
- `step` is the smallest power of ten to whose multiples both numbers of every pair are rounded alike: a
  `quantum`. Values near the middle between two multiples may fall apart in another run: `at_risk` counts
  those that lie no farther from one than the largest difference.

Differences that are more than a hundred times those of nearly all others are no wobble, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from twinstream.spec.calibration.evidence import SELDOM

SMALL = 100
"""A wobble is at most this part of the range of the field's values."""
FLOAT_NOISE = Fraction(1, 10**6)
"""What is left of a sum of doubles in another order, relative to its size, and to 1 where that is more."""
OUTLIER = 100
_STEPS = 12
_EPOCHS = [(10**9 * 10**unit, 22 * 10**8 * 10**unit) for unit in (0, 3, 6, 9)]
"""Times from 2001 to 2039, in s, ms, µs and ns."""

Numbers = tuple[Fraction, Fraction]


class Wobble(NamedTuple):
    """By how much a number differs: see above. `step` is None where no sensible one makes all equal."""

    largest: Fraction
    bound: Decimal
    step: Decimal | None
    at_risk: int


def wobble(differing: Sequence[Numbers], values: Iterable[Fraction]) -> Wobble | None:
    """The wobble of a field; None where its numbers differ in another way.

    `differing` are the pairs that differ, `values` all values of the field in one run.
    """
    if all(a.denominator == 1 and b.denominator == 1 for a, b in differing):
        return None
    near = _without_outliers(differing)
    every: list[Fraction] = sorted(values)
    largest = max(abs(a - b) for a, b in near)
    if len(near) < (1 - SELDOM) * len(differing) or not _is_small(largest, every):
        return None
    step = _step(near, largest, every)
    at_risk = 0 if step is None else sum(_to_middle(value, Fraction(step)) <= largest for value in every)
    return Wobble(largest, _rounded_up(largest), step, at_risk)


def _without_outliers(differing: Sequence[Numbers]) -> list[Numbers]:
    gaps = sorted(abs(a - b) for a, b in differing)
    limit = OUTLIER * gaps[int((1 - SELDOM) * (len(gaps) - 1))]
    return [(a, b) for a, b in differing if abs(a - b) <= limit]


def _is_small(largest: Fraction, every: Sequence[Fraction]) -> bool:
    low, high = every[len(every) // 20], every[-1 - len(every) // 20]
    if any(first <= low and high <= last for first, last in _EPOCHS):
        return False
    size = min(Fraction(1), abs(low) + abs(high))
    return largest <= (high - low) / SMALL or largest <= FLOAT_NOISE * size


def _rounded_up(number: Fraction) -> Decimal:
    """The smallest number of one digit that is not below."""
    power = _power(number)
    digit = -(-number // (Fraction(10) ** power))
    return Decimal(int(digit)).scaleb(power).normalize()


def _power(number: Fraction) -> int:
    """The power of ten of the leading digit."""
    power = len(str(number.numerator)) - len(str(number.denominator))
    while Fraction(10) ** power > number:
        power -= 1
    while Fraction(10) ** (power + 1) <= number:
        power += 1
    return power


def _step(near: Sequence[Numbers], largest: Fraction, every: Sequence[Fraction]) -> Decimal | None:
    """The smallest power of ten that makes all pairs equal, and is small beside the values themselves."""
    size = max(abs(every[0]), abs(every[-1]), every[-1] - every[0])
    for power in range(_power(largest), _power(largest) + _STEPS):
        step = Fraction(10) ** power
        if step > size / 10:
            return None
        if all(round(a / step) == round(b / step) for a, b in near):
            return Decimal(1).scaleb(power)
    return None


def _to_middle(value: Fraction, step: Fraction) -> Fraction:
    """How far a value is from the next place between two multiples where rounding turns."""
    part = value / step % 1
    return abs(part - Fraction(1, 2)) * step
