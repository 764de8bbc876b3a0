"""The board's knowledge of one matcher: its last status, and how often it fell."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from twinstream.api.state.final import keeping_final
from twinstream.api.state.timings import Tally
from twinstream.status.comparison import Reset, ShardStatus, UnmatchedEvent

LOOP_FALLS, LOOP_SECONDS = 3, 600.0
"""A matcher that falls so often within this time is in a crash loop, even while it is running."""


@dataclass(slots=True)
class MatcherView:
    """Everything known of one matcher. Its last status was true at `as_of`, on the monotonic clock.

    `ended`: the beginning of the comparison that a reset has ended, `ended_by` the reset's id. `shown` are
    its reported divergences, by id: whether each of them is provisional. `waiting` are the events that have
    waited longest for a partner.
    """

    as_of: float
    said: ShardStatus | None = None
    ended: datetime | None = None
    ended_by: str = ""
    lost: str | None = None
    unheard: str | None = None
    falls: int = 0
    fell_at: deque[float] = field(default_factory=lambda: deque(maxlen=LOOP_FALLS))
    fell_last: str = ""
    shown: dict[str, bool] = field(default_factory=dict)
    waiting: tuple[UnmatchedEvent, ...] = ()
    match_latency: Tally = field(default_factory=Tally)
    processing: Tally = field(default_factory=Tally)

    def fall(self, reason: str, now: float) -> None:
        """Record that it fell, without being told to stop; `now` is on the monotonic clock."""
        self.lost = self.fell_last = reason
        self.falls += 1
        self.fell_at.append(now)

    def hear(self, said: ShardStatus, as_of: float) -> None:
        """Record a status. While a matcher loads what is saved, what it had found stays."""
        before = None if self.said is None else self.said.status
        self.said = said.model_copy(update={"status": keeping_final(said.status, before)})
        self.as_of = as_of
        self.match_latency.hear(said.status.match_latency)
        self.processing.hear(said.status.processing)
        self.ended = self.lost = self.unheard = None

    def loop(self, name: str, now: float) -> str | None:
        """The sentence about it if it falls repeatedly."""
        if len(self.fell_at) < LOOP_FALLS or now - self.fell_at[0] >= LOOP_SECONDS:
            return None
        return (
            f"{name} fell {self.falls} times, {LOOP_FALLS} of them within the last {LOOP_SECONDS / 60:g} "
            f"minutes, lately because: {self.fell_last}{'' if self.lost else '; it runs now'}"
        )

    def end(self, reset: Reset) -> None:
        """Record that the comparison was reset: earlier and late statuses about it no longer count."""
        if self.said is not None and all(one.id != reset.id for one in self.said.status.resets):
            self.ended, self.ended_by, self.said = self.said.status.started_at, reset.id, None
            self.waiting = ()

    def go_on(self, resets: Iterable[Reset]) -> None:
        """Check the resets known to their maker: a reset not among them is lost, and has ended nothing."""
        if all(one.id != self.ended_by for one in resets):
            self.ended = None
