"""Estimates the time on the clocks that stamp records, against the clock of this host.

The age of the verified prefix decides whether it may pass. Its end is Kafka's time of an event, which comes
from the clock of a broker or a producer. So its age is the time on *that* clock, less the end. No single
clock gives this time:

- The wall clock of this host may be wrong, and may jump. If it is behind, an old prefix looks young.
- Records have been written before they are read. So on the clock that stamped a record it is now at least the
  record's time plus the time since it was read, on the monotonic clock, which never jumps. The oldest record
  of a batch is used, so that a single strange time does not matter. A time that is more than a year ahead of
  all others is not a wrong clock, but another unit.
- The store has a clock, usually that of another host.

The latest of them counts. So a clock that is behind makes no prefix young while one of the others is right,
and one that is ahead makes the prefix look older than it is, which lets nothing pass that should not.

If two clocks differ by more than `APART_SECONDS`, they are reported and health is degraded, since one of them
is wrong and nobody here knows which: a user who sees an undecided gate then sees the cause.

A moment found in this way is kept on the monotonic clock; later jumps do not change it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from twinstream.ports import Clock, OwnersRelay

APART_SECONDS = 30.0
"""Far above the difference of synchronised hosts, and a tenth of the staleness that may pass."""
ANOTHER_UNIT_SECONDS = 366 * 86_400.0


class OldestStamp(NamedTuple):
    """The oldest time of some records in milliseconds, and the monotonic time at which they were read."""

    oldest_ms: int
    read_at: float

    def advanced_ms(self, now: float) -> int:
        """The time that the clock which stamped them shows now, at least."""
        return self.oldest_ms + int((now - self.read_at) * 1000)


class SeenAt(NamedTuple):
    """The time of an observation: the time of day, to show, and the monotonic time, to measure from."""

    when: datetime
    at: float

    @classmethod
    def of(cls, clock: Clock) -> SeenAt:
        """Now."""
        return cls(clock.now(), clock.monotonic())

    @classmethod
    def before(cls, when: datetime, clock: Clock) -> SeenAt:
        """A time in an earlier process, known only by its time of day; never in the future."""
        return cls(when, clock.monotonic() - max(0.0, (clock.now() - when).total_seconds()))


class _Told(NamedTuple):
    """The time of the store in seconds since 1970, and the monotonic times of question and answer."""

    seconds: float
    asked_at: float
    answered_at: float


class ClockSkew:
    """All clocks that a matcher has."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: _Told | None = None

    def ask(self, relay: OwnersRelay) -> float | None:
        """Ask the store for the time, and return it; if it does not answer, its last answer still counts."""
        asked_at = self._clock.monotonic()
        seconds = relay.time()
        if seconds is not None:
            self._told = _Told(seconds, asked_at, self._clock.monotonic())
        return seconds

    def moment_of(self, kafka_ms: int, stamps: Iterable[OldestStamp]) -> float:
        """The monotonic time at which the latest of the clocks showed this Kafka time."""
        now = self._clock.monotonic()
        return now - (self._latest(now, stamps) - kafka_ms / 1000)

    def trouble(self) -> str | None:
        """A sentence if the clocks of this host and of the store are apart; None if they are not."""
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
        read = [stamp.advanced_ms(now) / 1000 for stamp in stamps]
        return max([latest, *(told for told in read if told - latest < ANOTHER_UNIT_SECONDS)])

    def _apart(self) -> float:
        """The least seconds that this host's clock is ahead of the store's; negative if it is behind."""
        if self._told is None:
            return 0.0
        ahead = self._clock.now().timestamp() - self._clock.monotonic() - self._told.seconds
        least, most = ahead + self._told.asked_at, ahead + self._told.answered_at
        return least if least > 0 else min(0.0, most)
