"""Which comparison a status speaks of: that of the file, or one that a reset has begun in its place.

A reset that is asked for takes effect at most once, and one that was refused never. What the store holds is
not taken back but by a loss of the store, and who has loaded it knows of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from tests.simulation.anew import Asked, begun
from tests.simulation.ends import Outcome, surprises, undisturbed
from tests.simulation.inputs import Input
from twinstream.status.comparison import ComparisonStatus, ResetRefused, ResetRequest


class Eras:
    """The resets of one run. `stored`: how many the store knows, `heard_of`: how many each service knows."""

    def __init__(self, given: Input, violated: Callable[[str], None]) -> None:
        self._given, self._violated = given, violated
        self._begun: dict[bytes, Input] = {}
        self._calm: dict[int, Outcome] = {}
        self._refused: set[str] = set()
        self._known: dict[str, int] = {}
        self._asked: dict[str, Asked] = {}
        self.stored = 0
        self.heard_of: dict[object, int] = {}

    def ask(self, start: Asked) -> ResetRequest:
        """Somebody asks for a reset to a start."""
        name = f"reset {len(self._asked) + 1}"
        self._asked[name] = start
        return ResetRequest(id=name, by="somebody", reason="why not", address="", start=start)

    @property
    def asked(self) -> bool:
        """Whether a reset was ever asked for."""
        return bool(self._asked)

    def counted(self, resets: int) -> bool:
        """What is in effect knows of so many; whether the comparison was begun anew with that."""
        anew, back = resets > self.stored, resets < self.stored
        self.stored = resets
        if back:
            self._violated(f"a reset is taken back: {resets} are known")
        return anew

    def lost(self, resets: int) -> None:
        """The store has lost something, and knows of so many now."""
        self.stored = resets
        self.heard_of.clear()
        self._refused.clear()  # A request may be back for some seconds.

    def loaded(self, token: str, resets: int) -> None:
        """A process has loaded what is stored, which knew of so many at least."""
        self._known[token] = resets

    def begun_anew(self, service: object) -> None:
        """A service is told that the comparison has begun anew."""
        self.heard_of[service] = self.stored

    def refused(self, refusal: ResetRefused) -> None:
        """A request is refused, or nobody knows."""
        if not refusal.open:
            self._refused.add(refusal.id)

    def check(self, token: str, status: ComparisonStatus) -> None:
        """A process that compares says how things stand."""
        names = [reset.id for reset in status.resets]
        if status.reset_count < self._known.get(token, 0):
            self._violated(f"{token} does not know of a reset: {status.reset_count} of {self._known[token]}")
        if len(set(names)) < len(names) or not self._asked.keys() >= set(names):
            self._violated(f"{token} was reset more often than was asked for: {names}")
        if self._refused.intersection(names):
            self._violated(f"{token} was reset though that was refused: {names}")

    def of(self, status: ComparisonStatus) -> Input | None:
        """What is compared by a status; None where the record of the last reset is lost."""
        if not status.reset_count:
            return self._given
        if not status.resets:
            return None
        return self._begun_at(status.resets[-1].start)

    def all(self) -> list[Input]:
        """All that any process has spoken of, or may compare though the record of its reset was lost."""
        for start in self._asked.values():
            if isinstance(start, dict):
                self._begun_at(start)
        return [self._given, *self._begun.values()]

    def _begun_at(self, start: Any) -> Input:
        key = orjson.dumps(start)
        if key not in self._begun:
            self._begun[key] = begun(self._given, start)
        return self._begun[key]

    def calm(self, given: Input) -> Outcome:
        """How it ends where nothing happens."""
        if id(given) not in self._calm:
            self._calm[id(given)] = calm = undisturbed(given)
            for surprise in surprises(given, calm) if given is self._given else ():
                self._violated(f"undisturbed: {surprise}")
        return self._calm[id(given)]
