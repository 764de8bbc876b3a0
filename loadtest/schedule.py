"""When the n-th event of a run is due, as a pure function.

A load generator that stamps an event with the time at which it happened to get round to it hides its own
delays: a stall of the system under test slows the generator, and the slow seconds are never measured
("coordinated omission"). So an event is due at a time that depends on its number alone, is stamped with
that time, and is sent late if it must be.

The rate rises linearly from `start` to `rate` events per second during `ramp_seconds`, and stays there.
With `ramp_seconds=0` it is constant.
"""

from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True, slots=True)
class Schedule:
    """The due times of a run.

    >>> constant = Schedule(rate=100)
    >>> constant.due_seconds(250)
    2.5
    >>> constant.due_count(2.5)
    251
    >>> Schedule(rate=100, ramp_seconds=10).due_seconds(500)
    10.0
    """

    rate: float
    start: float = 0.0
    ramp_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise ValueError(f"rate must be above 0 events per second, not {self.rate!r}")
        if self.start < 0 or self.ramp_seconds < 0:
            raise ValueError(
                f"a ramp cannot start at {self.start!r} events/s or last {self.ramp_seconds!r} s"
            )

    @property
    def ramp_events(self) -> float:
        """How many events are due within the ramp."""
        return (self.start + self.rate) / 2 * self.ramp_seconds

    def due_seconds(self, n: int) -> float:
        """When event `n` (from 0) is due, in seconds after the start of the run."""
        if n >= self.ramp_events:
            return self.ramp_seconds + (n - self.ramp_events) / self.rate
        slope = (self.rate - self.start) / self.ramp_seconds
        # This form of the root of start*t + slope/2*t*t = n holds for a flat or falling ramp, too.
        return 2 * n / (self.start + sqrt(max(0.0, self.start**2 + 2 * slope * n))) if n else 0.0

    def due_count(self, seconds: float) -> int:
        """How many events are due up to and including `seconds` after the start of the run."""
        if seconds < 0:
            return 0
        if seconds >= self.ramp_seconds:
            return int(self.ramp_events + (seconds - self.ramp_seconds) * self.rate) + 1
        slope = (self.rate - self.start) / self.ramp_seconds
        return int(self.start * seconds + slope / 2 * seconds**2) + 1
