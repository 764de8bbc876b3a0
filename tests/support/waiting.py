"""Waiting for something to become true, with a bound: what tests do instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], *, seconds: float = 60.0, what: str, every_seconds: float = 0.05) -> T:
    """Call `look` until it returns something true, and return that; fail with `what` and its last answer.

    The bound is for what never comes. What comes at all may take long where other tests run at the same time.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}; the last answer was {answer!r}")
        time.sleep(every_seconds)


def gathered(
    ask: Callable[[], Iterable[T]], enough: Callable[[list[T]], object], *, what: str, seconds: float = 60.0
) -> list[T]:
    """Ask again and again until all that came is enough; returns it."""
    found: list[T] = []

    def came() -> object:
        found.extend(ask())
        return enough(found)

    eventually(came, what=what, seconds=seconds)
    return found
