"""Whether two runs' numbers of a field differ by little, and the least that makes them equal.

A number *wobbles* when it differs by far less than the field's values differ among themselves, or by what the
last digits of a binary float lose. Whole numbers and times of the calendar do not wobble: a count that
differs is another count, and a clock is left out as a whole.

- `bound` is the largest difference, rounded up to one digit: a `tolerance`. `part` is the same of the
  difference against the larger number, where it allows less than half as much, as of numbers of many sizes.
- `step` is the smallest power of ten to whose multiples both numbers of every pair are rounded alike: a
  `quantum`. Values near the middle between two multiples may fall apart in another run: `at_risk` counts
  those that lie no farther from one than the largest difference.

Differences that are more than a hundred times those of nearly all others are no wobble, and are left out.
A difference beyond what doubles lose has to show in a twentieth of the pairs: one price of a thousand that is
a cent higher is no noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from twinstream.spec.calibration.evidence import FEWEST_SEEN, SELDOM

SMALL = 100
"""A wobble is at most this part of the range of the field's values."""
FLOAT_NOISE = Fraction(1, 10**6)
"""What is left of a sum of doubles in another order, relative to its size, and to 1 where that is more."""
LAST_DIGITS = Fraction(1, 10**12)
"""The same, relative to numbers of any size."""
OFTEN = 0.05
"""A number that differs by more than that in a smaller share of the pairs is another number."""
OUTLIER = 100
_STEPS = 12
_EPOCHS = [(10**9 * 10**unit, 22 * 10**8 * 10**unit) for unit in (0, 3, 6, 9)]
"""Times from 2001 to 2039, in s, ms, µs and ns."""

Numbers = tuple[Fraction, Fraction]


class Wobble(NamedTuple):
    """By how much a number differs: see above. `step` is None where no sensible one makes all equal."""

    largest: Fraction
    bound: Decimal
    part: Decimal | None
    step: Decimal | None
    at_risk: int


def wobble(differing: Sequence[Numbers], values: Iterable[Fraction], share: float) -> Wobble | None:
    """The wobble of a field; None where its numbers differ in another way.

    `differing` are the pairs that differ, `values` all values of the field in one run, and `share` tells how
    often it differs where it is.
    """
    if all(a.denominator == 1 and b.denominator == 1 for a, b in differing):
        return None
    near = _without_outliers(differing)
    every: list[Fraction] = sorted(values)
    largest = max(abs(a - b) for a, b in near)
    if len(near) < (1 - SELDOM) * len(differing) or _is_clock(every):
        return None
    if not _is_last_digits(near, largest, every):
        small = largest <= (_high(every) - _low(every)) / SMALL
        if not small or share < OFTEN or len(differing) < FEWEST_SEEN:
            return None
    step = _step(near, largest, every)
    at_risk = 0 if step is None else sum(_to_middle(value, Fraction(step)) <= largest for value in every)
    bound = _rounded_up(largest)
    return Wobble(largest, bound, _part(near, bound, every), step, at_risk)


def _part(near: Sequence[Numbers], bound: Decimal, every: Sequence[Fraction]) -> Decimal | None:
    """The largest difference against the larger number, if it allows less than half of what `bound` does."""
    part = _rounded_up(max(abs(a - b) / max(abs(a), abs(b)) for a, b in near))
    allowed = Fraction(part) * sum(map(abs, every))
    return part if 2 * allowed < Fraction(bound) * len(every) else None


def _without_outliers(differing: Sequence[Numbers]) -> list[Numbers]:
    gaps = sorted(abs(a - b) for a, b in differing)
    limit = OUTLIER * gaps[int((1 - SELDOM) * (len(gaps) - 1))]
    return [(a, b) for a, b in differing if abs(a - b) <= limit]


def _low(every: Sequence[Fraction]) -> Fraction:
    return every[len(every) // 20]


def _high(every: Sequence[Fraction]) -> Fraction:
    return every[-1 - len(every) // 20]


def _is_clock(every: Sequence[Fraction]) -> bool:
    return any(first <= _low(every) and _high(every) <= last for first, last in _EPOCHS)


def _is_last_digits(near: Sequence[Numbers], largest: Fraction, every: Sequence[Fraction]) -> bool:
    """Whether it is what doubles lose: such a difference may show in any share of the pairs."""
    size = min(Fraction(1), abs(_low(every)) + abs(_high(every)))
    return largest <= FLOAT_NOISE * size or _within(near, LAST_DIGITS)


def _within(near: Sequence[Numbers], part: Fraction) -> bool:
    return all(abs(a - b) <= part * max(abs(a), abs(b)) for a, b in near)


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
