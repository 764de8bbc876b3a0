"""A changed comparison file on the records of a comparison that runs: a course of its own, in step with that.

It is fed with what the *live* course was fed with, in the same order and from the same start, and hears of
all that it hears of: looks at the topics, what the versions say, ends. It has counts, differences and a
verdict of its own, and they are those of a comparison that runs alone with this file. It publishes nothing
itself: what it has to tell stands in `told`.

Its state is a part of the checkpoint of the live comparison, and takes effect with it: so both are always of
the same positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twinstream import status, trials
from twinstream.core import snapshot
from twinstream.core.accounts import Hole
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.ports import Batch, Clock, Gap, Said, Source
from twinstream.runtime.contrast import Contrast, Explained, Open, View
from twinstream.runtime.course import Course
from twinstream.runtime.reports import Reports
from twinstream.runtime.surveys import Surveys
from twinstream.runtime.timepieces import Timepieces
from twinstream.spec.codec import Codec
from twinstream.spec.explain import Explainer
from twinstream.spec.load import digest
from twinstream.spec.masking import Mask
from twinstream.spec.model import Spec


class Told:
    """What has been told and not been published."""

    def __init__(self) -> None:
        self.waiting: list[status.Publication] = []

    def publish(self, publication: status.Publication, made_at: float | None = None) -> None:  # noqa: ARG002
        """Keep it until it is taken."""
        self.waiting.append(publication)

    def take(self) -> list[status.Publication]:
        """What was told since the last call."""
        told, self.waiting = self.waiting, []
        return told


class Rehearsal:
    """One course of a changed file beside a `live` one, from where that has begun, or `here`, where it is."""

    def __init__(
        self, spec: Spec, live: Course, source: Source, clock: Clock, mask: Mask, *, here: bool = False
    ) -> None:
        codec = Codec(spec)
        self._live, self._clock = live, clock
        self._course = live.beside_from_here(spec, codec) if here else live.beside(spec, codec)
        self._surveys = Surveys(self._course, source, clock, Timepieces(clock))
        self._contrast = Contrast()
        self._saved_diverged = False
        self._explained = Explained(self.comparison.ledger.known.rules)
        self.comparison.ledger.known = self._explained
        self.told = Told()
        explainer = Explainer(spec, digest(spec), codec, mask)
        self._reports = Reports(spec, explainer, self.told, clock)

    @property
    def comparison(self) -> Comparison:
        """The comparison, as far as it has come."""
        return self._course.comparison

    # -- in step with the live one -------------------------------------------------------------------------

    def begin(self) -> None:
        """It begins, and nothing is saved of it."""
        self._reports.resume({}, {}, {})

    def take(self, item: Batch | Gap) -> None:
        """Take what the live course has taken."""
        self.comparison.moment = self._live.comparison.moment
        self._course.intake.take(item)

    def review(self) -> None:
        """Explain the scopes that have grown."""
        self.comparison.review()

    def note_topics(self, changes: Sequence[Hole]) -> None:
        """Note what happened to the topics themselves, and what is vouched for."""
        if changes:
            self.comparison.disown()
        for change in changes:
            self.comparison.hole(change)
        for side in Side:
            own = self._course.intake.positions[side]
            own.update({at: of for at, of in self._live.intake.positions[side].items() if at not in own})
        self.comparison.vouch(self._live.comparison.ledger.vouched_at)
        self._surveys.vouch()

    def hear(self, said: Sequence[Said]) -> None:
        """Hear what the versions say of themselves."""
        self._course.control.take(said)

    def survey(self) -> None:
        """Look at everything that waits."""
        self._surveys.take()
        self._reports.add(self.comparison.take_closed(), self.comparison.take_tainted())
        self._reports.add_explained(self._explained.take_examples())

    def show(self) -> None:
        """Tell of the differences of open scopes."""
        self._reports.show(self.comparison.provisional())

    # -- what it says --------------------------------------------------------------------------------------

    def glance(self) -> status.ComparisonStatus:
        """How it stands, as a comparison of its own would say."""
        situation, live = self._course.situation, self._live.situation
        situation.waiting_for, situation.rereading = live.waiting_for, live.rereading
        situation.troubles, situation.stalled = live.troubles, live.stalled
        situation.unsaved_divergence = self.comparison.diverged and not self._saved_diverged
        return self._course.reporter.glance(situation, self._clock.monotonic())

    @property
    def hits(self) -> Mapping[str, int]:
        """How often each known difference has explained something."""
        return self._explained.hits

    def contrast(self, live_reports: Mapping[str, bytes]) -> trials.Contrast:
        """What it makes of the divergences of the live comparison, and the other way round."""
        live = self._live.comparison
        theirs = View(live_reports, {}, Open(live), _compared(live, live_reports))
        found = self._reports.closed
        complete = _compared(self.comparison, found) and self._explained.complete
        return self._contrast.tell(
            theirs, View(found, self._explained.rule_at, Open(self.comparison), complete)
        )

    # -- state ---------------------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether its start is found; what was read before is not saved."""
        return self._course.begun()

    def state(self) -> dict[str, Any]:
        """All but the state of the comparison."""
        return {**self._course.state(), **self._reports.state(self.comparison.ledger.doubted)}

    def base(self) -> dict[str, Any]:
        """The state of the comparison, whole."""
        return {"state": snapshot.snapshot(self.comparison), **self._found(whole=True)}

    def delta(self, sweep: snapshot.Sweep | None) -> dict[str, Any]:
        """What changed of it since the last snapshot of either kind."""
        whole = sweep is not None and sweep.first
        return {"state": snapshot.delta(self.comparison, sweep), **self._found(whole=whole)}

    def _found(self, *, whole: bool) -> dict[str, Any]:
        if whole:
            self._reports.lost()
        return {"reports": dict(self._reports.unsaved), "explained": self._explained.rows(whole=whole)}

    @property
    def is_unsaved(self) -> bool:
        """Whether a save makes anything final."""
        doubted, sure = self.comparison.ledger.doubted, self.comparison.diverged_for_sure
        return bool(self._reports.unsaved) or self._reports.awaits(doubted) or sure != self._saved_diverged

    @property
    def sweeping(self) -> bool:
        """Whether a sweep has not come to its end."""
        return snapshot.sweeping(self.comparison)

    def begin_sweep(self) -> None:
        """Begin to save once more all that is held."""
        snapshot.begin_sweep(self.comparison)

    def saved(self) -> None:
        """What was saved last took effect."""
        self._reports.saved(self.comparison.ledger.doubted)
        self._saved_diverged = self.comparison.diverged_for_sure
        self._course.situation.saved = self.comparison.ledger.found_by_kind.copy()

    def resume(self, state: dict[str, Any], bodies: Sequence[dict[str, Any]]) -> None:
        """Go on with what was saved: a `state`, and all that a snapshot and the deltas behind it had."""
        base, *deltas = (body["state"] for body in bodies)
        self._course.restore(state, snapshot.merged(base, deltas))
        self._saved_diverged = self.comparison.diverged_for_sure
        self._explained.restore(row for body in bodies for row in body["explained"])
        reports = {key: data for body in bodies for key, data in body["reports"].items()}
        self._reports.resume(reports, state["first_seen"], state["doubted"])

    def is_in_step(self) -> bool:
        """Whether it stands where the live course does."""
        return self._course.intake.positions == self._live.intake.positions


def _compared(comparison: Comparison, reports: Iterable[str]) -> bool:
    """Whether a comparison has compared everything, and all that it has found is among its reports."""
    given_up = comparison.holes or comparison.overflowing or comparison.halted
    return not given_up and len(list(reports)) >= comparison.ledger.found_by_kind.total()
