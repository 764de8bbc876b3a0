"""The scheduler: every decision of a simulation is drawn here, from one seed, and can be printed as a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from random import Random
from typing import TypeVar

T = TypeVar("T")
START_MS = 1_700_000_000_000
"""The time of day at the beginning, and Kafka's time of the first records."""


@dataclass(frozen=True)
class Weather:
    """How often what goes wrong in one run.

    Those of a call are chances for each call into a port; the others are weights against a step of a process.
    """

    crash_in_call: float
    pause_in_call: float
    answer_lost: float
    call_lost: float
    arrives_late: float
    repeated: float
    slow: float
    crash: float
    host_lost: float
    stop: float
    store_away: float
    store_falls_back: float
    store_emptied: float
    broker_away: float
    retention: float
    wall_jump: float

    @cached_property
    def disturbs_calls(self) -> bool:
        """Whether anything may happen to a call."""
        return any(getattr(self, name) for name in _CALLS)

    def __str__(self) -> str:
        """What may go wrong."""
        rates = {field.name: getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{name} {rate}" for name, rate in rates.items() if rate) or "fair"


_CALLS = ("crash_in_call", "pause_in_call", "answer_lost", "call_lost", "arrives_late", "repeated", "slow")
_RATES = dict.fromkeys(_CALLS, (0.01, 0.04, 0.12))
_WEIGHTS = (0.05, 0.2, 0.5)
CALM = Weather(**{field.name: 0.0 for field in fields(Weather)})


class Scheduler:
    """Draws every decision. `note` keeps a readable line of each, if a log is asked for."""

    def __init__(self, seed: int, *, log: bool = False) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.log: list[str] | None = [] if log else None
        self.now = 0.0

    def note(self, text: str) -> None:
        """One line of the log, with the time."""
        if self.log is not None:
            self.log.append(f"{self.now:9.3f}  {text}")

    def chance(self, probability: float) -> bool:
        """True so often; nothing is drawn for what never happens."""
        return probability > 0 and self.random.random() < probability

    def one_of(self, options: Sequence[T]) -> T:
        """Any of them."""
        return options[int(self.random.random() * len(options))]

    def aside(self, what: str, options: Sequence[T]) -> T:
        """Any of them, by the seed and a name alone: what else is drawn stays as it was."""
        return options[int(self.apart(what).random() * len(options))]

    def apart(self, what: str) -> Random:
        """What draws by the seed and a name alone."""
        return Random(f"{self.seed} {what}")

    def number(self, least: int, most: int) -> int:
        """A whole number between both, both included."""
        return least + int(self.random.random() * (most - least + 1))

    def seconds(self, least: float, most: float) -> float:
        """A time between both, in milliseconds."""
        return round(least + self.random.random() * (most - least), 3)

    def weighted(self, options: Mapping[T, float]) -> T:
        """One of the keys, as often as its weight says."""
        left = self.random.random() * sum(options.values())
        for option, weight in options.items():
            left -= weight
            if left < 0:
                return option
        return next(reversed(list(options)))

    def weather(self) -> Weather:
        """What goes wrong in this run: some faults often, some never, so that runs differ in kind."""
        share = self.one_of((0.1, 0.3, 0.6))
        rates = {}
        for field in fields(Weather):
            choices = _RATES.get(field.name, _WEIGHTS)
            rates[field.name] = self.one_of(choices) if self.chance(share) else 0.0
        return Weather(**rates)


class SimulatedClock:
    """The port `Clock` of one host: the one monotonic time, and a time of day that somebody may set."""

    def __init__(self, scheduler: Scheduler, whose: str) -> None:
        self._scheduler, self.whose = scheduler, whose
        self.set_by = 0.0

    def seconds(self) -> float:
        """The time of day, in seconds since 1970."""
        return START_MS / 1000 + self._scheduler.now + self.set_by

    def now(self) -> datetime:
        """The time of day."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def monotonic(self) -> float:
        """Simulated seconds."""
        return self._scheduler.now
