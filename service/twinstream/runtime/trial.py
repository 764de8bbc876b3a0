"""Rules on trial, fenced off: whatever becomes of them, the comparison beside which they are tried goes on.

A trial runs on the thread of the matcher, on the records that it reads anyway. It must never make the live
comparison wrong, late or fall, so it is the one that ends, with a reason:

- an exception in it, a limit that it reaches, a call that takes too long (see `fuse`);
- the matcher fell while it took something into the trial, or fell twice while there was one: its supervisor,
  which outlives it, says so at the next start (`over`);
- the memory of the matcher comes near its limit;
- the matcher does not keep up with its topics, and the trial takes a good part of its time (`Burden`).

Where it begins. Its counts are exact only from a start that is one for its rules, too. The start of the live
comparison is, so a trial begins with it, and goes on over restarts by a state of its own in the same
checkpoint. Beside a comparison that is under way it begins where that is, at a moment that is sound for its
rules (see `midway`), and waits for such a moment, or for the next beginning. A moment at which nothing waits
by the live rules (`now` of a reset) is one for many rules, and the beginning of a trial in the same way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import structlog

from twinstream import status, trials
from twinstream.core import snapshot
from twinstream.core.accounts import Hole
from twinstream.core.events import Side
from twinstream.ports import Batch, Clock, Gap, Publisher, Said, Source
from twinstream.runtime.course import Course
from twinstream.runtime.falls import Trail
from twinstream.runtime.fuse import Blown, Fuse, endless
from twinstream.runtime.memory import resident_bytes
from twinstream.runtime.midway import hindrance
from twinstream.runtime.rehearsal import Rehearsal
from twinstream.runtime.relay import TRIAL_TOLD
from twinstream.spec.holes import told
from twinstream.spec.load import digest
from twinstream.spec.masking import Mask, fresh_secret
from twinstream.spec.model import Spec
from twinstream.spec.trial import beyond_rest, changes, midway

PATIENCE_SECONDS = 5.0
"""The longest that a trial may take at once: an older status counts as stale, and a lease ends after 10 s."""
MEMORY_SHARE = 0.8
"""A trial ends at this share of the matcher's memory limit: what is above is for the comparison."""
BURDEN_SECONDS, BURDEN_SHARE = 30.0, 0.1
"""A trial ends where the matcher has fallen back for so long, and it took this share of the time."""

RESTED = (
    "the comparison began at a moment at which nothing waited for a partner by its own rules, and these "
    "may compare more ({keys}), so that what they would pair may lie on both sides of it: begin it anew at "
    "another start (`twinstream reset`), or try the rules on what is kept with `twinstream replay`"
)

T = TypeVar("T")

log = structlog.get_logger()


class Burden:
    """Whether a trial keeps the matcher from keeping up.

    >>> burden = Burden()
    >>> [burden.too_much(at, 1000 + at, at / 2) for at in (0.0, 15.0, 30.0)]
    [False, False, True]
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, float]] = deque()

    def too_much(self, now_s: float, lag: int, spent_s: float) -> bool:
        """Note how many records are to be read, and what the trial took of the time up to now.

        Whether the matcher was behind all the time, and further behind at the end, for `BURDEN_SECONDS`.
        """
        if lag == 0:
            self._looks.clear()
        self._looks.append((now_s, lag, spent_s))
        while len(self._looks) > 1 and now_s - self._looks[1][0] >= BURDEN_SECONDS:
            self._looks.popleft()
        began, lag_then, spent_then = self._looks[0]
        long_enough = now_s - began >= BURDEN_SECONDS
        return long_enough and lag > lag_then > 0 and spent_s - spent_then > BURDEN_SHARE * (now_s - began)


class Terms(NamedTuple):
    """On which terms a trial runs: the trail that it leaves, the fuse, and why it may not run at all."""

    trail: Trail
    fuse: Fuse = endless
    over: str | None = None
    memory_limit_bytes: int | None = None


class Trial:
    """The rules of `spec` on trial beside a comparison with the rules of `live`.

    Constructing it connects nothing. No call of it raises, or takes long. `mask` tells what may be seen of
    what it finds.
    """

    def __init__(
        self, spec: Spec, live: Spec, source: Source, publisher: Publisher, clock: Clock, terms: Terms
    ) -> None:
        self._spec, self._digest, self._changes = spec, digest(spec), changes(live, spec)
        self._source, self._publisher, self._clock, self._terms = source, publisher, clock, terms
        self.mask = Mask.of(spec, fresh_secret())
        self._rehearsal: Rehearsal | None = None
        self._waits: str | None = "the comparison has not begun"
        self._ended: str | None = None
        self._saved_end: str | None = None
        self._last: trials.TrialStatus | None = None
        self._found: dict[str, status.DivergenceReport] = {}
        self._beyond_rest, self._midway = beyond_rest(live, spec), midway(live, spec)
        self._under_way: Course | None = None
        self._is_new = False
        self._burden = Burden()
        self._spent_seconds, self._began_at = 0.0, clock.monotonic()

    # -- where it begins -----------------------------------------------------------------------------------

    def begin(self, live: Course, *, rested: bool = False) -> None:
        """The live comparison begins, and so does this; `rested` where nothing waited by the live rules."""
        if rested and self._beyond_rest:
            self._waits = RESTED.format(keys=" and ".join(f"`{key}`" for key in self._beyond_rest))
        else:
            self._start(live, Rehearsal.begin)

    def resume(self, live: Course, head: dict[str, Any] | None, bodies: Sequence[dict[str, Any]]) -> None:
        """The live comparison goes on with what was saved; so does this, if that has a state of it."""
        mine = head is not None and head["digest"] == self._digest
        if head is not None and mine and head["ended"] is not None:
            self._ended = self._saved_end = head["ended"]
            self._last = trials.TrialStatus.model_validate_json(head["last"]) if head["last"] else None
            return
        if head is not None and mine and head["state"] is not None:
            states = [body["trial"] for body in bodies if "trial" in body]
            self._start(live, lambda rehearsal: rehearsal.resume(head["state"], states))
            if self._rehearsal is None or self._rehearsal.is_in_step():
                return
            self._rehearsal = None
        self._under_way = live
        self._begin_midway(live)

    def _start(self, live: Course, begin: Callable[[Rehearsal], None], *, here: bool = False) -> None:
        self._waits, self._began_at = None, self._clock.monotonic()
        if self._terms.over is not None:
            self.end(self._terms.over)
            return

        def start() -> None:
            self._rehearsal = Rehearsal(self._spec, live, self._source, self._clock, self.mask, here=here)
            begin(self._rehearsal)

        self._fenced(start)

    def _begin_midway(self, live: Course) -> None:
        """Begin beside a comparison that is under way, if this is a moment for it."""
        self._waits = hindrance(live, self._midway)
        if self._waits is None:
            self._under_way, self._is_new = None, True
            self._start(live, Rehearsal.begin, here=True)

    # -- in step with the live one -------------------------------------------------------------------------

    def take(self, item: Batch | Gap) -> None:
        """Take what the live course has taken."""
        if (rehearsal := self._rehearsal) is None:
            return
        if isinstance(item, Batch):
            self._terms.trail.enter_trial(item)
        self._fenced(lambda: rehearsal.take(item))
        self._terms.trail.leave()

    def review(self) -> None:
        """A round is over: explain the scopes that have grown, or begin."""
        if self._under_way is not None:
            self._begin_midway(self._under_way)
        if (rehearsal := self._rehearsal) is not None:
            self._fenced(rehearsal.review)

    def note_topics(self, changed: Sequence[Hole]) -> None:
        """Note what happened to the topics themselves, and what is vouched for."""
        if (rehearsal := self._rehearsal) is not None:
            self._fenced(lambda: rehearsal.note_topics(changed))

    def hear(self, said: Sequence[Said]) -> None:
        """Hear what the versions say of themselves."""
        if (rehearsal := self._rehearsal) is not None:
            self._fenced(lambda: rehearsal.hear(said))

    def survey(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        """Look at everything that waits, and whether the trial is in the way of anything."""
        if (rehearsal := self._rehearsal) is None:
            return
        self._fenced(rehearsal.survey)
        if (reason := self._in_the_way(rehearsal, positions)) is not None and self._ended is None:
            self.end(reason)

    def _in_the_way(self, rehearsal: Rehearsal, positions: Mapping[Side, Mapping[int, int]]) -> str | None:
        if rehearsal.comparison.overflowing:
            return told(rehearsal.comparison.holes[-1], self._spec)
        limit = self._terms.memory_limit_bytes
        if limit is not None and (taken := resident_bytes()) > MEMORY_SHARE * limit:
            return (
                f"the matcher takes {taken:,} bytes of its memory limit of {limit:,}, and the comparison may "
                "need what is left"
            )
        ends = self._source.ends()
        lag = sum(
            max(0, end - positions[side].get(partition, end))
            for side in Side
            for partition, end in ends[side].items()
        )
        if self._burden.too_much(self._clock.monotonic(), lag, self._spent_seconds):
            return (
                f"the matcher fell further behind for {BURDEN_SECONDS:g} s ({lag:,} records are to be read), "
                f"and {self._share():.0%} of its time went into the trial"
            )
        return None

    # -- what it says --------------------------------------------------------------------------------------

    def glance(self, live_reports: Mapping[str, bytes]) -> trials.TrialStatus:
        """How it stands, with the difference that it makes."""
        if (rehearsal := self._rehearsal) is not None:

            def tell() -> trials.TrialStatus:
                rehearsal.show()
                return self._told(rehearsal, live_reports)

            said = self._fenced(tell)
            self._publish(rehearsal)
            self._last = said or self._last
        return self._silent() if self._rehearsal is None or self._last is None else self._last

    @property
    def found(self) -> Sequence[status.DivergenceReport]:
        """The newest of what it has reported, for those who cannot hear it: the newest last."""
        return list(self._found.values())

    def _publish(self, rehearsal: Rehearsal) -> None:
        for one in rehearsal.told.take():
            if isinstance(one, status.DivergenceReport | status.Withdrawn | status.Resumed):
                self._keep(one)
                self._publisher.publish(status.OnTrial(comparison=self._spec.name, said=one))

    def _keep(self, one: status.DivergenceReport | status.Withdrawn | status.Resumed) -> None:
        match one:
            case status.DivergenceReport():
                self._found.pop(one.id, None)
                self._found[one.id] = one
                if len(self._found) > TRIAL_TOLD:
                    del self._found[next(iter(self._found))]
            case status.Withdrawn():
                self._found.pop(one.id, None)
            case status.Resumed():
                self._found = {key: self._found[key] for key in one.divergences if key in self._found}

    def _told(self, rehearsal: Rehearsal, live_reports: Mapping[str, bytes]) -> trials.TrialStatus:
        glance = rehearsal.glance()
        return self._blank(
            "running",
            glance.reason,
            since=glance.started_at,
            verdict=glance.verdict,
            events=glance.events,
            matched=glance.matched,
            unmatched=glance.unmatched,
            accounts=glance.accounts,
            divergences=glance.divergences,
            explained_by_rule=dict(rehearsal.hits),
            suspicions=glance.suspicions,
            hole_count=glance.hole_count,
            contrast=rehearsal.contrast(live_reports),
            time_share=round(self._share(), 3),
        )

    def _silent(self) -> trials.TrialStatus:
        """What is said of a trial that does not run; what has ended keeps its last counts."""
        if self._ended is None:
            return self._blank("waiting", self._waits or "")
        if self._last is None:
            return self._blank("ended", self._ended)
        return self._last.model_copy(update={"state": "ended", "reason": self._ended})

    def _blank(self, state: str, reason: str, **more: Any) -> trials.TrialStatus:
        said = {"state": state, "reason": reason, "spec_digest": self._digest, **more}
        order, changed = self._spec.order_text, list(self._changes)
        return trials.TrialStatus.model_validate({**said, "order": order, "changes": changed})

    def _share(self) -> float:
        """Its part of the matcher's time since it began."""
        return self._spent_seconds / max(self._clock.monotonic() - self._began_at, 1e-3)

    # -- state, as a part of the live comparison's checkpoint ----------------------------------------------

    def head(self) -> dict[str, Any]:
        """What a checkpoint says of it; its state, but for that of the comparison."""
        rehearsal = self._rehearsal
        state = None
        if rehearsal is not None and rehearsal.begun:
            state = self._fenced(rehearsal.state)
        last = self._silent().model_dump_json() if self._ended is not None else None
        return {"digest": self._digest, "ended": self._ended, "last": last, "state": state}

    def base(self) -> dict[str, Any]:
        """What a base has of it."""
        if (rehearsal := self._rehearsal) is None:
            return {}
        self._is_new = False
        state = self._fenced(rehearsal.base)
        return {} if state is None else {"trial": state}

    def delta(self, sweep: snapshot.Sweep | None) -> dict[str, Any]:
        """What a delta has of it: all, where none before has any. Behind one that got lost comes a base."""
        if (rehearsal := self._rehearsal) is None or self._is_new:
            return self.base()
        state = self._fenced(lambda: rehearsal.delta(sweep))
        return {} if state is None else {"trial": state}

    @property
    def is_unsaved(self) -> bool:
        """Whether a save makes anything final, or has what no checkpoint says."""
        return self._ended != self._saved_end or (self._rehearsal is not None and self._rehearsal.is_unsaved)

    @property
    def sweeping(self) -> bool:
        """Whether some of what it held when a sweep began is not saved since."""
        return self._rehearsal is not None and self._rehearsal.sweeping

    def begin_sweep(self) -> None:
        """Begin to save once more all that is held."""
        if self._rehearsal is not None:
            self._rehearsal.begin_sweep()

    def saved(self) -> None:
        """What was saved last took effect."""
        self._saved_end = self._ended
        if (rehearsal := self._rehearsal) is not None:
            self._fenced(rehearsal.saved)

    # -- the fence -----------------------------------------------------------------------------------------

    def end(self, reason: str) -> None:
        """Nothing more is tried, for this reason; what it held is let go."""
        self._ended, self._rehearsal = reason, None
        log.warning("the trial has ended", comparison=self._spec.name, reason=reason)

    def _fenced(self, work: Callable[[], T]) -> T | None:
        """Do some of the trial's work; where it fails, the trial has ended, and None is returned."""
        started = self._clock.monotonic()
        try:
            with self._terms.fuse(PATIENCE_SECONDS):
                return work()
        except Blown as blown:
            self.end(str(blown))
        except Exception as error:  # noqa: BLE001 - whatever it is, the live comparison goes on
            self.end(f"it failed with {type(error).__name__}: {error}")
        finally:
            self._spent_seconds += self._clock.monotonic() - started
        return None
