"""Tells how far the clocks that stamp records are from the clock of this host.

How old the verified prefix is decides whether it may pass. What says how far it reaches is Kafka's time of
an event, which the clock of a broker or of a producer told. So its age is what time it is *there*, less that.
None of the clocks at hand tells this alone:

- The wall clock of this host may be wrong, and may jump. One that is behind makes an old prefix young.
- Records tell: one that is read has been written, so by the clock that stamped it it is now its time and
  what has passed since it was read, on the monotonic clock, which never jumps; or later. Of a batch the
  oldest record tells, so that a single strange time does not. What is more than a year ahead of all else is
  no clock that is wrong, but another unit.
- The clock of the store tells, which is another host's as a rule.

The latest of them counts. So a clock that is behind makes nothing young while one of the others is right, and
one that is ahead makes the prefix older than it is, which never passes what should not.

Two clocks further apart than `APART_SECONDS` are named, and health is degraded, since one of them is wrong
and nobody here knows which: who sees that a gate is undecided is told of the clock and not of its effects.

A moment that was found in this way is kept on the monotonic clock; what jumps later does not touch it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from twinstream.ports import Clock, StatusRelay

APART_SECONDS = 30.0
"""Far above what hosts differ by whose clocks are kept right, and a tenth of the staleness that may pass."""
ANOTHER_UNIT_SECONDS = 366 * 86_400.0


class OldestStamp(NamedTuple):
    """The oldest time of some records, in milliseconds, and when they were read, on the monotonic clock."""

    oldest_ms: int
    read_at: float


class SeenAt(NamedTuple):
    """When something was noticed: the time of day, for people, and on the monotonic clock, to count from."""

    when: datetime
    at: float

    @classmethod
    def of(cls, clock: Clock) -> SeenAt:
        """Now."""
        return cls(clock.now(), clock.monotonic())

    @classmethod
    def before(cls, when: datetime, clock: Clock) -> SeenAt:
        """In another life of the process, of which the time of day alone is known; never in the future."""
        return cls(when, clock.monotonic() - max(0.0, (clock.now() - when).total_seconds()))


class _Told(NamedTuple):
    """What the store said is the time, in seconds since 1970; and when, on the monotonic clock."""

    seconds: float
    asked_at: float
    answered_at: float


class ClockSkew:
    """All clocks that a matcher knows of."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: _Told | None = None

    def ask(self, relay: StatusRelay) -> float | None:
        """Ask the store for the time, and return it; where it does not say, what it said before goes on."""
        asked_at = self._clock.monotonic()
        seconds = relay.time()
        if seconds is not None:
            self._told = _Told(seconds, asked_at, self._clock.monotonic())
        return seconds

    def moment_of(self, kafka_ms: int, stamps: Iterable[OldestStamp]) -> float:
        """When it was this time by the latest of the clocks, on the monotonic clock."""
        now = self._clock.monotonic()
        return now - (self._latest(now, stamps) - kafka_ms / 1000)

    def trouble(self) -> str | None:
        """That this host's clock and the store's are apart, as a sentence; None where they are not."""
        apart = self._apart()
        if abs(apart) <= APART_SECONDS:
            return None
        way = "ahead of" if apart > 0 else "behind"
        return (
            f"the clock of this host is {abs(apart):,.0f} s {way} that of Redis: one of them is wrong, so "
            "how old the verified events are is not certain; have both hosts keep their time (NTP)"
        )

    def _latest(self, now: float, stamps: Iterable[OldestStamp]) -> float:
        latest = self._clock.now().timestamp()
        if self._told is not None:
            latest = max(latest, self._told.seconds + now - self._told.asked_at)
        read = [stamp.oldest_ms / 1000 + now - stamp.read_at for stamp in stamps]
        return max([latest, *(told for told in read if told - latest < ANOTHER_UNIT_SECONDS)])

    def _apart(self) -> float:
        """By how much this host's clock is ahead of the store's, at least; negative where it is behind."""
        if self._told is None:
            return 0.0
        ahead = self._clock.now().timestamp() - self._clock.monotonic() - self._told.seconds
        least, most = ahead + self._told.asked_at, ahead + self._told.answered_at
        return least if least > 0 else min(0.0, most)
