"""Numbers that two runs of one job write a little differently.

Where the comparison file has a tolerance, each event has a number of its own, a multiple of `STEP`, and each
time it is written that is up to `JITTER` off. So all that is written of one event is within the tolerance,
and so may be what is written of two: closeness is not transitive. What is *another* number is `FURTHER` away.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from tests.support.orders import Event

STEP, JITTER, WITHIN = 3, 1, 2
FURTHER = 12
"""Beyond the tolerance of what any run writes of the same event."""
DIFFERENT = 4
"""So many numbers there are: few, so that many are close to each other."""


def numbered(random: Random, events: Iterable[Event]) -> list[Event]:
    """The events, each with a number of its own."""
    return [{**event, "v": STEP * random.randrange(DIFFERENT)} for event in events]


def again(random: Random, events: Iterable[Any]) -> list[Any]:
    """The events as another run writes them; what is no event stays as it is."""
    return [one if isinstance(one, bytes) else {**one, "v": _near(random, one["v"])} for one in events]


def _near(random: Random, number: int) -> int:
    own = STEP * ((number + JITTER) // STEP)
    return own + random.randint(-JITTER, JITTER)


def same(one: Any, other: Any) -> bool:
    """Whether two are equal, within the tolerance where they are events."""
    if isinstance(one, bytes) or isinstance(other, bytes):
        return bool(one == other)
    return form(one) == form(other) and abs(one["v"] - other["v"]) <= WITHIN


def form(event: Event) -> tuple[Any, ...]:
    """All of an event but its number."""
    return tuple((name, value) for name, value in event.items() if name != "v")


class Letters:
    """Numbers for what is equal, in the order in which it comes: the first of each stands for it.

    Where events come twice (`unique` is false) closeness does not tell which are equal, so all of one form
    are one letter.
    """

    def __init__(self, *, unique: bool) -> None:
        self._unique = unique
        self.events: list[Event] = []
        self._forms: dict[tuple[Any, ...], list[int]] = {}

    def of(self, event: Event) -> int:
        """The letter of an event."""
        letters = self._forms.setdefault(form(event), [])
        for letter in letters:
            if not self._unique or same(self.events[letter], event):
                return letter
        letters.append(len(self.events))
        self.events.append(event)
        return letters[-1]
