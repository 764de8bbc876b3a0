"""The largest matching of two lists, found by trying everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def largest(left: Sequence[T], right: Sequence[T], equal: Callable[[T, T], bool]) -> int:
    """How many pairs of equal things can be made, each thing in one at most; exponential.

    >>> largest([1, 2], [2, 3], lambda one, other: abs(one - other) <= 1)
    2
    """
    if not left:
        return 0
    first, *rest = left
    found = largest(rest, right, equal)
    for place, other in enumerate(right):
        if equal(first, other):
            found = max(found, 1 + largest(rest, [*right[:place], *right[place + 1 :]], equal))
    return found
