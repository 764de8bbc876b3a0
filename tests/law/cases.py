"""One case: a declaration and a trace, held against the law by some plans, and made small where it breaks."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import yaml

from tests.law.declarations import BARRIER, FEATURES, Declaration, Draw, declaration
from tests.law.prediction import predicted
from tests.law.runs import PLAIN, Outcome, Plan, outcome, plans
from tests.law.traces import Row, Trace, trace
from twinstream.core.diagnosis.looks import MEETING_RUN
from twinstream.errors import SpecError

PLANS = 8
COPY_NAMED = "duplicate or extra"
"""Two runs call a copy differently, and no rule asks what it is."""
Level = Literal["all", "counts", "verdict"]
"""All of the law; all but what a copy is called; only the verdict."""
_OPTIONAL = {"identity", "equality", "known_differences", "duplicates", "limits", "on_divergence", "kinds"}


class Case(NamedTuple):
    """A declaration and a trace for it."""

    declaration: Declaration
    trace: Trace


@dataclass(frozen=True)
class Break:
    """A case that breaks the law: what disagrees, under which plans.

    With one plan it breaks what was predicted, or crashed.
    """

    case: Case
    what: str
    plans: tuple[Plan, ...]

    def breaks(self, level: Level) -> bool:
        """Whether it breaks what a level asks to hold."""
        if level == "counts":
            return self.what != COPY_NAMED
        return level == "all" or any(word in self.what for word in ("verdict", ", not ", "crash"))

    @property
    def group(self) -> str:
        """The features that it takes to break it, and what it breaks."""
        several = {"partitions"} if self.case.trace.partitions > 1 else set()
        return f"{self.what}: {' + '.join(sorted(self.case.declaration.features() | several))}"


def drawn(seed: int, allowed: frozenset[str] = FEATURES) -> tuple[Case, list[Plan]]:
    """The case of a seed, and the plans to hold it against."""
    rng = random.Random(seed)
    draw = Draw(rng, allowed)
    while True:
        made = declaration(rng, allowed)
        try:
            made.spec()
        except SpecError:  # as a tolerance in a bag
            continue
        sides = trace(draw, made)
        return Case(made, sides), plans(rng, PLANS, sum(map(len, sides)))


def broken(case: Case, chosen: Sequence[Plan]) -> Break | None:
    """The worst way in which a case breaks the law under these plans, if any."""
    answers: list[tuple[Plan, Outcome]] = []
    for plan in chosen:
        try:
            answers.append((plan, outcome(case.declaration, case.trace, plan)))
        except Exception as error:  # noqa: BLE001 - a crash is an answer, too
            return Break(case, f"crash {type(error).__name__}", (plan,))
    verdict = predicted(case.declaration, case.trace).verdict
    for plan, answer in answers:
        if verdict is not None and answer.verdict != verdict:
            return Break(case, f"{answer.verdict}, not {verdict}", (plan,))
    if verdict is None and case.declaration.halts and case.declaration.rules:
        return None
    answers = [(plan, _told(case, answer, is_open=verdict is None)) for plan, answer in answers]
    first, plain = answers[0]
    found = [(disagreement(case.declaration, plain, answer), plan) for plan, answer in answers[1:]]
    worst = max(found, key=lambda one: _weight(one[0]), default=("", first))
    return Break(case, worst[0], (first, worst[1])) if worst[0] else None


def _told(case: Case, answer: Outcome, *, is_open: bool) -> Outcome:
    """Of an outcome what must be the same in all runs (`docs/limits.md` has the exceptions).

    What was read first may decide which of equal events in several partitions is left over; where the outcome
    is open, also whether a difference beside a hole was certain before it.
    """
    declaration = case.declaration
    verdict = "INCONCLUSIVE" if is_open and answer.verdict == "DIVERGED" else answer.verdict
    if case.trace.partitions > 1 and declaration.tells_copies and declaration.order == "unordered":
        return Outcome("INCONCLUSIVE" if is_open else verdict, {}, {}, {}, {})
    if is_open and declaration.doubts_everything:
        return Outcome(verdict, {}, {}, {}, {})
    return answer._replace(verdict=verdict) if declaration.replays else answer


def _weight(what: str) -> list[bool]:
    """How bad a disagreement is: a wrong verdict is worse than a wrong count, and that than a wrong name."""
    return [*(name in what for name in ("verdict", "accounts", "explained", "kinds")), bool(what)]


def disagreement(declaration: Declaration, one: Outcome, other: Outcome) -> str:
    """The members in which two outcomes differ that must not.

    Behind a halt all that comes is ignored, and which events that are is a matter of how the sides come. So
    is under rules which events a difference is explained by, where it is known or many match: accounts are
    nearly equal then. And so is which event takes the last place of a ceiling, but not how many are
    explained; and which match is the latest: where one is remembered and no known difference tells copies, a
    duplicate may be an extra.
    """
    members: tuple[str, ...] = Outcome._fields
    if declaration.halts or declaration.explains_by_rules:
        members = ("verdict",)
    elif declaration.uses_up(one.explained):
        members = ("verdict",)
        if sum(one.explained.values()) != sum(other.explained.values()):
            return "explained"
    elif declaration.is_ruled and one.reference.get("matched", 0) >= MEETING_RUN:
        members = tuple(name for name in members if name not in ("kinds", *_nearly_equal(one, other)))
    if not declaration.tells_copies and one != other:
        unnamed = _without_duplicates(one), _without_duplicates(other)
        if unnamed[0] == unnamed[1]:
            return "" if declaration.forgets else COPY_NAMED
    names = [name for name in members if getattr(one, name) != getattr(other, name)]
    if {"reference", "candidate"} & set(names):
        names = ["accounts", *(name for name in names if name not in ("reference", "candidate"))]
    return ", ".join(names)


def _nearly_equal(one: Outcome, other: Outcome) -> list[str]:
    """The accounts in which two outcomes differ by no more than twice the events that differ anyway."""
    found = []
    for name in ("reference", "candidate"):
        here, there = getattr(one, name), getattr(other, name)
        most = 2 * min(here.get("divergent", 0), there.get("divergent", 0))
        if all(abs(here.get(key, 0) - there.get(key, 0)) <= most for key in {*here, *there}):
            found.append(name)
    return found


def _without_duplicates(answer: Outcome) -> Outcome:
    """The outcome with duplicates called extra."""
    kinds = Counter(answer.kinds)
    kinds["extra"] += kinds.pop("duplicate", 0)
    return answer._replace(kinds=dict(+kinds))


# -- making small --------------------------------------------------------------------------------------------


def smallest(found: Break) -> Break:
    """The same kind of break with less in the file, and with fewer rows."""
    return _with_less_declared(_with_fewer_rows(_with_less_declared(found)))


def _again(found: Break, case: Case) -> Break | None:
    """The break where it is still there."""
    try:
        case.declaration.spec()
    except SpecError:
        return None
    if not _well_placed(case):
        return None
    again = broken(case, found.plans)
    return again if again is not None and again.what.split()[0] == found.what.split()[0] else None


def _well_placed(case: Case) -> bool:
    """Whether no partitions hold events that the order relates."""
    fields = case.declaration.placed_by
    copied = BARRIER if case.declaration.has_copies else None
    rows = [row for side in case.trace for row in side if row.event["type"] != copied]
    if case.trace.partitions == 1 or fields == []:
        return True
    places = {(tuple(row.event[field] for field in fields or ()), row.partition) for row in rows}
    return fields is not None and len(places) == len({key for key, _ in places})


def _with_less_declared(found: Break) -> Break:
    """Declare one thing less, or a plain order, as long as it still breaks."""
    file = found.case.declaration.file
    orders = ("total", "unordered") if not isinstance(file["order"], str) else ()
    less = [
        {name: file[name] for name in file if name != left_out}
        for left_out in sorted(_OPTIONAL & file.keys())
    ]
    for simpler in (*less, *({**file, "order": order} for order in orders)):
        again = _again(found, found.case._replace(declaration=Declaration(simpler)))
        if again is not None:
            return _with_less_declared(again)
    return found


def _with_fewer_rows(found: Break) -> Break:
    """Take rows away, many at a time and then single ones: of both sides at once, then of one side."""
    size = max(map(len, found.case.trace))
    while size:
        before = found
        for sides in ((0, 1), (0,), (1,)):
            start = 0
            while start < max(len(found.case.trace[side]) for side in sides):
                rows = [*found.case.trace]
                for side in sides:
                    rows[side] = rows[side][:start] + rows[side][start + size :]
                again = _again(found, found.case._replace(trace=Trace(*rows)))
                found, start = (again, start) if again else (found, start + size)
        size = size // 2 if size > 4 or found is before else size
    return found


# -- telling -------------------------------------------------------------------------------------------------


def told(found: Break) -> str:
    """All of a break: the file, both sequences one value a line, the runs and what they answer."""
    expected = predicted(found.case.declaration, found.case.trace)
    lines = [
        found.what,
        "",
        yaml.safe_dump(found.case.declaration.file, sort_keys=False, width=110).rstrip(),
        "",
    ]
    for name, side in zip(("reference", "candidate"), found.case.trace, strict=True):
        lines += [f"{name}:", *map(_line, side), ""]
    lines.append(f"predicted: {expected.verdict or 'open, since ' + expected.open_because}")
    for plan in found.plans:
        lines.append(f"{plan}\n    {_answer(found.case, plan)}")
    return "\n".join(lines)


def _line(row: Row) -> str:
    wrote = "" if row.attempt is None else "   batch {1}, {2}/{3}.{4}".format(*row.attempt)
    style = f"   style {row.style}" if row.style else ""
    where = f"   partition {row.partition}" if row.partition else ""
    return f"  {row.number:4} {json.dumps(row.event)}{wrote}{style}{where}"


def _answer(case: Case, plan: Plan) -> str:
    try:
        answer = outcome(case.declaration, case.trace, plan)
    except Exception as error:  # noqa: BLE001 - a crash is an answer, too
        return f"{type(error).__name__}: {error}"
    accounts = f"    {answer.reference}\n    {answer.candidate}"
    return f"{answer.verdict} {answer.kinds} explained {answer.explained}\n{accounts}"


def held_against(seed: int, allowed: frozenset[str] = FEATURES) -> Break | None:
    """How the case of a seed breaks the law, if it does."""
    case, chosen = drawn(seed, allowed)
    return broken(case, [PLAIN, *chosen])
