"""Records when each signal on the way to an alarm was seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twinstream.drill.signals import Signal, SignalState


class SeenSignal(NamedTuple):
    """A signal seen for the first time, so many seconds after the difference was written."""

    name: str
    seconds: float
    text: str


class AlarmPath:
    """The signals of a drill as they come in."""

    def __init__(self, signals: Sequence[Signal]) -> None:
        self._awaited = list(signals)
        self.seen: list[SeenSignal] = []

    @property
    def awaited(self) -> list[str]:
        """The signals that have not been seen."""
        return [signal.name for signal in self._awaited]

    def look(self, seconds: float, look: SignalState) -> list[SeenSignal]:
        """Record the state at this time; returns the signals seen for the first time."""
        new = [
            SeenSignal(signal.name, seconds, text)
            for signal in self._awaited
            if (text := signal.seen(look)) is not None
        ]
        came = {one.name for one in new}
        self._awaited = [signal for signal in self._awaited if signal.name not in came]
        self.seen += new
        return new
