"""The difference that other rules make on the same records: what one comparison reports and another does not.

A divergence is known by its events, and these by their places in Kafka, which are the same for both. Of a
divergence that one comparison reports, the other has either reported one about an event of it, too; or
explained an event of it by a known difference; or not settled all of its events yet; or paired or left out
all of them: then it *hides* the divergence. What each keeps is bounded: where one has not compared
everything, or has found more than it keeps, nothing is said to be hidden by it.

An answer other than "open" stays, since what is settled stays settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from twinstream import parts, trials
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.findings import Finding
from twinstream.core.known import Known, KnownDifference
from twinstream.spec.explain import NAMES

EXAMPLES = 5
TEXT_SHOWN = 500
"""Characters of an example's text: it is a part of a status, which is polled; the report has all of it."""
EXPLAINED_KEPT = 20_000
"""Places of explained events that are remembered: about as many as `limits.kept_divergences` may hold."""
LOOKED_THROUGH = 100_000
"""Beyond so many waiting events it is not looked up which they are: what may be one counts as open."""

Place = tuple[int, int, int]
"""Side, partition and offset of an event."""
_SIDES = {NAMES[side]: int(side) for side in Side}


class Explained(Known):
    """Known differences that note where they explained something, by the id of the rule.

    `complete` unless some of it was too much to keep.
    """

    def __init__(self, rules: Sequence[KnownDifference]) -> None:
        super().__init__(rules)
        self.rule_at: dict[Place, str] = {}
        self.complete = True
        self._fresh: list[list[Any]] = []

    def explain(self, finding: Finding, matched: int) -> str | None:
        """As `Known.explain`, and noted."""
        rule = super().explain(finding, matched)
        for side, event in finding.events:
            if event is not None and rule is not None:
                self._note((int(side), event[1], event[2]), rule)
        return rule

    def _note(self, place: Place, rule: str) -> None:
        if len(self.rule_at) < EXPLAINED_KEPT:
            self.rule_at[place] = rule
            self._fresh.append([*place, rule])
        else:
            self.complete = False

    def rows(self, *, whole: bool) -> list[list[Any]]:
        """What was noted since the last call, or all of it; for a checkpoint."""
        fresh, self._fresh = self._fresh, []
        return [[*place, rule] for place, rule in self.rule_at.items()] if whole else fresh

    def restore(self, rows: Iterable[Sequence[Any]]) -> None:
        """Take over the rows that were saved."""
        self.rule_at = {(row[0], row[1], row[2]): row[3] for row in rows}
        self.complete = len(self.rule_at) < EXPLAINED_KEPT


class Open:
    """Tells whether an event is not settled, as of the last survey of a comparison."""

    def __init__(self, comparison: Comparison) -> None:
        self._held = [comparison.ledger.held.of(side) for side in Side]
        self._first = [held.first_open() for held in self._held]
        self._places: dict[int, set[tuple[int, int]]] = {}

    def __call__(self, place: Place) -> bool:
        """Complexity: O(1); once a side O(n) in what waits."""
        side, partition, offset = place
        if offset < self._first[side].get(partition, offset + 1):
            return False
        if len(self._held[side]) > LOOKED_THROUGH:
            return True
        if side not in self._places:
            self._places[side] = {(event[1], event[2]) for event in self._held[side]}
        return (partition, offset) in self._places[side]


class View(NamedTuple):
    """What one comparison says: the divergences that it keeps by id, as JSON, and what it explained where.

    `complete`: it compared everything, and all that it found is here.
    """

    reports: Mapping[str, bytes]
    rule_at: Mapping[Place, str]
    is_open: Callable[[Place], bool]
    complete: bool


class _Reported(NamedTuple):
    """A divergence that one comparison reports."""

    key: str
    kind: parts.DivergenceKind
    text: str
    places: tuple[Place, ...]
    data: bytes


class _Answer(NamedTuple):
    """What the other comparison makes of it; `rule` is the one that explains it there."""

    outcome: trials.ContrastOutcome
    rule: str | None = None


class _Book:
    """The divergences of one comparison, and what the other makes of each."""

    def __init__(self) -> None:
        self._reported: dict[str, _Reported] = {}
        self._answers: dict[str, _Answer] = {}
        self.places: set[Place] = set()

    def read(self, reports: Mapping[str, bytes]) -> None:
        """Take in what is reported by now. Complexity: O(n), 0.1 µs each; 10 µs for one that has changed."""
        for key, data in reports.items():
            known = self._reported.get(key)
            if known is None or known.data is not data:
                self._reported[key] = found = _reported(key, data)
                self._answers.pop(key, None)
                self.places.update(found.places)

    def answer(self, other: View, reported_there: set[Place]) -> list[tuple[_Reported, _Answer]]:
        """What the other comparison makes of each."""
        for key, one in self._reported.items():
            known = self._answers.get(key)
            if known is None or known.outcome == "open":
                self._answers[key] = _answer(one.places, other, reported_there)
        return [(one, self._answers[key]) for key, one in self._reported.items()]


def _answer(places: tuple[Place, ...], other: View, reported_there: set[Place]) -> _Answer:
    if any(place in reported_there for place in places):
        return _Answer("reported")
    rule = next((other.rule_at[place] for place in places if place in other.rule_at), None)
    if rule is not None:
        return _Answer("explained", rule)
    if any(map(other.is_open, places)):
        return _Answer("open")
    return _Answer("hidden" if other.complete else "unknown")


def _reported(key: str, data: bytes) -> _Reported:
    said = orjson.loads(data)
    places = tuple(
        (_SIDES[side], position["partition"], position["offset"])
        for side, position in said["positions"].items()
        if position is not None
    )
    return _Reported(key, said["kind"], said["text"], places, data)


class Contrast:
    """What a trial makes of the divergences of the comparison beside it, and the other way round."""

    def __init__(self) -> None:
        self._live, self._trial = _Book(), _Book()

    def tell(self, live: View, trial: View) -> trials.Contrast:
        """How both differ by now. Complexity: O(n) in the divergences that are kept."""
        self._live.read(live.reports)
        self._trial.read(trial.reports)
        of_live = self._live.answer(trial, self._trial.places)
        of_trial = self._trial.answer(live, self._live.places)
        gone = [(one, answer) for one, answer in of_live if answer.outcome in ("hidden", "explained")]
        new = [(one, answer) for one, answer in of_trial if answer.outcome in ("hidden", "explained")]
        return trials.Contrast(
            of_live=_counted(answer for _, answer in of_live),
            hidden_by_kind=_by_kind(gone),
            hidden_by_rule=dict(Counter(answer.rule for _, answer in gone if answer.rule is not None)),
            hidden=_examples(gone),
            of_trial=_counted(answer for _, answer in of_trial),
            new_by_kind=_by_kind(new),
            new=_examples(new),
        )


def _short(text: str) -> str:
    return text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]}…"


def _counted(answers: Iterable[_Answer]) -> dict[trials.ContrastOutcome, int]:
    counts = Counter(answer.outcome for answer in answers)
    return {outcome: counts[outcome] for outcome in trials.CONTRAST_OUTCOMES}


def _by_kind(found: Sequence[tuple[_Reported, _Answer]]) -> dict[parts.DivergenceKind, int]:
    return dict(Counter(one.kind for one, _ in found))


def _examples(found: Sequence[tuple[_Reported, _Answer]]) -> list[trials.ContrastExample]:
    """The first of each kind, and more in the order in which they were found."""
    first = {one.kind: (one, answer) for one, answer in reversed(found)}
    chosen = [*first.values(), *(pair for pair in found if pair not in first.values())][:EXAMPLES]
    return [
        trials.ContrastExample(id=one.key, kind=one.kind, text=_short(one.text), rule=answer.rule)
        for one, answer in chosen
    ]
