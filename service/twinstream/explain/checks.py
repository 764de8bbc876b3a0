"""What the results of checks mean for a release, and how they are told.

If the candidate violates a check, the gate is what the check's `gate` says. If the reference violates it,
alone, or if it cannot be decided, the gate is at most `undecided`: the check, or the reference, is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from twinstream.status.comparison import CheckedSide, CheckStatus

SIDES = ("reference", "candidate")


class Judged(NamedTuple):
    """What checks make of a gate, and why: a sentence without its dot."""

    answer: Literal["fail", "undecided"]
    reason: str


def judged(checks: Sequence[CheckStatus]) -> Judged | None:
    """The gate as the checks by themselves leave it: None if they let it pass. The worst one decides."""
    found = [one for check in checks if check.gate != "ignore" for one in _judged(check)]
    return min(found, key=lambda one: one.answer != "fail", default=None)


def _judged(check: CheckStatus) -> Iterator[Judged]:
    reference, candidate = check.reference, check.candidate
    if candidate is not None and candidate.state == "violated" and check.gate != "ignore":
        yield Judged(check.gate, f"the candidate violates the check `{check.id}`: {found_text(candidate)}")
    if reference is not None and reference.state == "violated":
        text = f"the reference violates the check `{check.id}`: {found_text(reference)}"
        yield Judged("undecided", f"{text}; the check is wrong, or the reference")
    for name, side in zip(SIDES, (reference, candidate), strict=True):
        if side is not None and side.state == "undecided" and (check.gate == "fail" or side.violations):
            text = f"the check `{check.id}` is undecided for the {name}: {side.reason}"
            yield Judged("undecided", text)


def violations(checks: Sequence[CheckStatus]) -> int:
    """The number of violations of all checks, in both sides."""
    sides = (side for check in checks for side in (check.reference, check.candidate))
    return sum(side.violations for side in sides if side is not None)


def found_text(side: CheckedSide) -> str:
    """The number of violations, and the first one.

    >>> from twinstream.status.comparison import Position, Violation
    >>> at = Position(topic="ads", partition=0, offset=7)
    >>> first = [Violation(position=at, problem="has no key")]
    >>> found_text(CheckedSide(state="violated", violations=2, first=first))
    '2 violations, the first: the record at ads 0:7 has no key'
    """
    first = side.first[0]
    at = f"{first.position.topic} {first.position.partition}:{first.position.offset}"
    count = "1 violation" if side.violations == 1 else f"{side.violations:,} violations, the first"
    return f"{count}: the record at {at} {first.problem}"


def check_lines(checks: Sequence[CheckStatus]) -> Iterator[str]:
    """What the checks make of the gate, if they do not let it pass; then what each has found.

    >>> side = CheckedSide(state="holds", checked=1200)
    >>> list(check_lines([CheckStatus(id="keyed", property="once", text="", gate="fail", candidate=side)]))
    ['check keyed: holds (candidate 1,200)']
    """
    if (found := judged(checks)) is not None:
        yield f"checks: {found.answer}, since {found.reason}"
    for check in checks:
        sides = {name: side for name in SIDES if (side := getattr(check, name)) is not None}
        if all(side.state == "holds" for side in sides.values()):
            counts = ", ".join(f"{name} {side.checked:,}" for name, side in sides.items())
            yield f"check {check.id}: holds ({counts})"
        elif all(side.state == "not_checked" for side in sides.values()):
            yield f"check {check.id}: not checked, since {next(iter(sides.values())).reason}"
        else:
            yield from (f"check {check.id}: {_line(name, side)}" for name, side in sides.items())


def _line(name: str, side: CheckedSide) -> str:
    if side.state == "violated":
        return f"the {name} violates it: {found_text(side)}"
    if side.state == "holds":
        return f"holds for the {name} ({side.checked:,})"
    more = f"; {found_text(side)}" if side.violations else ""
    return f"undecided for the {name}: {side.reason}{more}"
