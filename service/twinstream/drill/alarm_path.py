"""What was seen on the way of an alarm, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twinstream.drill.signals import Signal, SignalState


class SeenSignal(NamedTuple):
    """A signal was seen for the first time, so many seconds after the difference was written."""

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
        """The signals that have not come."""
        return [signal.name for signal in self._awaited]

    def look(self, seconds: float, look: SignalState) -> list[SeenSignal]:
        """Take a look at this time; the signals that came with it."""
        new = [
            SeenSignal(signal.name, seconds, text)
            for signal in self._awaited
            if (text := signal.seen(look)) is not None
        ]
        came = {one.name for one in new}
        self._awaited = [signal for signal in self._awaited if signal.name not in came]
        self.seen += new
        return new
