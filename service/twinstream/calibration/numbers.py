"""Whether two runs' numbers of a field differ by little, and the least that makes them equal.

A number *wobbles* when it differs by far less than the field's values differ among themselves, or by what the
last digits of a binary float lose. Whole numbers and times of the calendar do not wobble: a count that
differs is another count, and a clock is left out as a whole.

- `bound` is the largest difference, rounded up to one digit: a `tolerance`. `part` is the same of the
  difference against the larger number, where it allows less than half as much, as of numbers of many sizes.
- `step` is the smallest power of ten to whose multiples both numbers of every pair are rounded alike: a
  `quantum`. Values near the middle between two multiples may fall apart in another run: `at_risk` counts
  those that lie no farther from one than the largest difference.

Differences that are more than four times those of nearly all others are no wobble, and set no bound: one
price that is changed does not widen it. A difference beyond what doubles lose has to show in a twentieth of
the pairs: one price of a thousand that is a cent higher is no noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from twinstream.calibration.evidence import FEWEST_SEEN, SELDOM

SMALL = 100
"""A wobble is at most this part of the range of the field's values."""
FLOAT_NOISE = Fraction(1, 10**6)
"""What is left of a sum of doubles in another order, relative to its size, and to 1 where that is more."""
LAST_DIGITS = Fraction(1, 10**12)
"""The same, relative to numbers of any size."""
OUTLIER = 4
"""A difference more than so many times the tenth largest (or the median of few) is another number."""
_STEPS = 12
_EPOCHS = [(10**9 * 10**unit, 22 * 10**8 * 10**unit) for unit in (0, 3, 6, 9)]
"""Times from 2001 to 2039, in s, ms, µs and ns."""

Numbers = tuple[Fraction, Fraction]


class Wobble(NamedTuple):
    """By how much a number differs: see above. `step` is None where no sensible one makes all equal.

    `seldom`: it is what a sum of doubles loses, which may show in any share of the pairs. `last_digits`: no
    more than their last digits, which may show for some keys alone, as where sums are longer.
    """

    largest: Fraction
    bound: Decimal
    part: Decimal | None
    step: Decimal | None
    at_risk: int
    seldom: bool
    last_digits: bool


def wobble(near: Sequence[Numbers], values: Iterable[Fraction]) -> Wobble | None:
    """The wobble of a field; None where its numbers differ in another way.

    `near` are the pairs that differ, but for outliers, `values` all values of the field in one run.
    """
    if all(a.denominator == 1 and b.denominator == 1 for a, b in near):
        return None
    every: list[Fraction] = sorted(values)
    largest = max(abs(a - b) for a, b in near)
    if _is_clock(every):
        return None
    last_digits = _within(near, LAST_DIGITS)
    seldom = last_digits or _is_float_noise(largest, every)
    if not seldom and largest > (_high(every) - _low(every)) / SMALL:
        return None
    step = _step(near, largest, every)
    at_risk = 0 if step is None else sum(_to_middle(value, Fraction(step)) <= largest for value in every)
    bound = _rounded_up(largest)
    return Wobble(largest, bound, _part(near, bound, every), step, at_risk, seldom, last_digits)


def outliers(differing: Sequence[Numbers]) -> set[int]:
    """Which pairs differ by far more than nearly all others."""
    sizes = _sizes(differing)
    limit = OUTLIER * _upper(sizes) if sizes else Fraction(0)
    return {
        place for place, size in enumerate(sizes) if size > limit and not is_last_digits(differing[place])
    }


def widest(differing: Sequence[Numbers]) -> set[int]:
    """Which pairs differ by as much as any, or not by far less: those that set the bound."""
    sizes = _sizes(differing)
    limit = max(sizes) / OUTLIER
    return {place for place, size in enumerate(sizes) if size >= limit}


def is_last_digits(numbers: Numbers) -> bool:
    """Whether two numbers differ by no more than what doubles lose in their last digits."""
    return _within([numbers], LAST_DIGITS)


def _sizes(differing: Sequence[Numbers]) -> list[Fraction]:
    """By how much numbers differ: absolutely, or against their size, whichever is more alike."""
    gaps = [abs(a - b) for a, b in differing]
    parts = [abs(a - b) / max(abs(a), abs(b)) for a, b in differing]
    return min((gaps, parts), key=_unlike) if differing else []


def _unlike(sizes: Sequence[Fraction]) -> Fraction:
    """How many times a middle one the largest but outliers is."""
    ranked = sorted(sizes)
    return ranked[int((1 - SELDOM) * (len(ranked) - 1))] / ranked[len(ranked) // 2]


def _upper(sizes: Sequence[Fraction]) -> Fraction:
    """The tenth largest, or the median of few."""
    return sorted(sizes)[-1 - min(FEWEST_SEEN - 1, (len(sizes) - 1) // 2)]


def _part(near: Sequence[Numbers], bound: Decimal, every: Sequence[Fraction]) -> Decimal | None:
    """The largest difference against the larger number, if it allows less than half of what `bound` does."""
    part = _rounded_up(max(abs(a - b) / max(abs(a), abs(b)) for a, b in near))
    allowed = Fraction(part) * sum(map(abs, every))
    return part if 2 * allowed < Fraction(bound) * len(every) else None


def _low(every: Sequence[Fraction]) -> Fraction:
    return every[len(every) // 20]


def _high(every: Sequence[Fraction]) -> Fraction:
    return every[-1 - len(every) // 20]


def _is_clock(every: Sequence[Fraction]) -> bool:
    return any(first <= _low(every) and _high(every) <= last for first, last in _EPOCHS)


def _is_float_noise(largest: Fraction, every: Sequence[Fraction]) -> bool:
    """Whether it is what a sum of doubles loses: such a difference may show in any share of the pairs."""
    return largest <= FLOAT_NOISE * min(Fraction(1), abs(_low(every)) + abs(_high(every)))


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
