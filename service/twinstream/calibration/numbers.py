"""Tells whether a field's numbers differ only slightly between two runs, and finds the least equality for it.

A number *wobbles* if it differs by far less than the field's values differ among themselves, or by the
rounding of binary floats in its last digits. Whole numbers and calendar times do not wobble: another count is
a difference, and a clock is left out entirely.

- `bound` is the largest difference, rounded up to one digit: a `tolerance`. `part` is the same for the
  difference relative to the larger number, if that allows less than half as much, as for numbers of many
  sizes.
- `step` is the smallest power of ten to whose multiples both numbers of every pair are rounded alike: a
  `quantum`. Values near the middle between two multiples may be rounded apart in another run: `at_risk`
  counts the values that lie no farther from a middle than the largest difference.

Differences more than four times those of nearly all others are not wobble, and set no bound: one changed
price does not widen it. A difference larger than the rounding of doubles must show in a twentieth of the
pairs: one price in a thousand that is a cent higher is not noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from twinstream.calibration.evidence import FEWEST_SEEN, SELDOM

SMALL = 100
"""A wobble is at most 1 / `SMALL` of the range of the field's values."""
FLOAT_NOISE = Fraction(1, 10**6)
"""The rounding of a sum of doubles in another order, relative to its size or to 1, whichever is smaller."""
LAST_DIGITS = Fraction(1, 10**12)
"""The rounding of the last digits of doubles, relative to numbers of any size."""
OUTLIER = 4
"""A difference more than so many times the tenth largest (or the median of few) is an outlier."""
_STEPS = 12
_EPOCHS = [(10**9 * 10**unit, 22 * 10**8 * 10**unit) for unit in (0, 3, 6, 9)]
"""Times from 2001 to 2039, in s, ms, µs and ns."""

Numbers = tuple[Fraction, Fraction]


class Wobble(NamedTuple):
    """By how much a number differs: see above. `step` is None if no sensible one makes all pairs equal.

    `seldom`: it is the rounding of a sum of doubles, which may show in any share of the pairs. `last_digits`:
    it is only in their last digits, which may show for some keys alone, for example where sums are longer.
    """

    largest: Fraction
    bound: Decimal
    part: Decimal | None
    step: Decimal | None
    at_risk: int
    seldom: bool
    last_digits: bool


def wobble(near: Sequence[Numbers], values: Iterable[Fraction]) -> Wobble | None:
    """The wobble of a field; None if its numbers differ in another way.

    `near` are the differing pairs without outliers, `values` all values of the field in one run.
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
    """The pairs that differ by far more than nearly all others."""
    sizes = _sizes(differing)
    limit = OUTLIER * _upper(sizes) if sizes else Fraction(0)
    return {
        place for place, size in enumerate(sizes) if size > limit and not is_last_digits(differing[place])
    }


def widest(differing: Sequence[Numbers]) -> set[int]:
    """The pairs that differ the most, or not far less: those that set the bound."""
    sizes = _sizes(differing)
    limit = max(sizes) / OUTLIER
    return {place for place, size in enumerate(sizes) if size >= limit}


def is_last_digits(numbers: Numbers) -> bool:
    """Whether two numbers differ only by the rounding of doubles in their last digits."""
    return _within([numbers], LAST_DIGITS)


def _sizes(differing: Sequence[Numbers]) -> list[Fraction]:
    """By how much numbers differ: absolutely, or relative to their size, whichever varies less."""
    gaps = [abs(a - b) for a, b in differing]
    parts = [abs(a - b) / max(abs(a), abs(b)) for a, b in differing]
    return min((gaps, parts), key=_unlike) if differing else []


def _unlike(sizes: Sequence[Fraction]) -> Fraction:
    """The ratio of the largest difference without outliers to a median one."""
    ranked = sorted(sizes)
    return ranked[int((1 - SELDOM) * (len(ranked) - 1))] / ranked[len(ranked) // 2]


def _upper(sizes: Sequence[Fraction]) -> Fraction:
    """The tenth largest, or the median of few."""
    return sorted(sizes)[-1 - min(FEWEST_SEEN - 1, (len(sizes) - 1) // 2)]


def _part(near: Sequence[Numbers], bound: Decimal, every: Sequence[Fraction]) -> Decimal | None:
    """The largest relative difference, if it allows less than half of what `bound` does."""
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
    """Whether it is the rounding of a sum of doubles, which may show in any share of the pairs."""
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
    return power if Fraction(10) ** power <= number else power - 1


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
    """How far a value is from the nearest middle between two multiples, where rounding turns."""
    part = value / step % 1
    return abs(part - Fraction(1, 2)) * step
