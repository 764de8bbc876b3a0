"""The results of checks, what was found in each side, and whether it counts."""

from __future__ import annotations

from collections.abc import Mapping

from twinstream.core.checks.checks import Watched
from twinstream.core.checks.property import Finding
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.explain import holes
from twinstream.explain.sentences import NAMES
from twinstream.spec.file.checks import Check
from twinstream.spec.file.model import Spec
from twinstream.status.comparison import CheckedSide, CheckStatus, Position, Violation

UNSAVED = "a violation was found; it is announced once it is saved and both topics are confirmed unchanged"
NO_RECORDS = "recorded output has no control records"


def results(
    comparison: Comparison,
    spec: Spec,
    saved: frozenset[tuple[Side, int]] | None,
    waiting_for: str | None = None,
) -> list[CheckStatus]:
    """The results of all checks of a file.

    `saved` are the sides and numbers of the checks of which a checkpoint has a violation. It is None for
    recorded output, which needs no checkpoint, and has no control records. `waiting_for` is why there is no
    start, without which nothing is saved.
    """
    sides: dict[Side, Mapping[int, Watched]] = {
        side: {watched.number: watched for watched in comparison.checks.of(side)} for side in Side
    }
    return [
        _status(
            check,
            {
                NAMES[side]: _result(comparison, spec, side, sides[side][number], saved, waiting_for)
                for side in Side
                if number in sides[side]
            },
        )
        for number, check in enumerate(spec.all_checks)
    ]


def unread(spec: Spec) -> tuple[CheckStatus, ...]:
    """The checks of a file of which nothing was read yet."""
    nothing = CheckedSide(state="undecided", reason="nothing was read yet")
    return tuple(_status(check, dict.fromkeys(check.sides, nothing)) for check in spec.all_checks)


def _status(check: Check, sides: Mapping[str, CheckedSide]) -> CheckStatus:
    return CheckStatus(id=check.id, property=check.what, text=check.text, gate=check.gate, **sides)


def _result(
    comparison: Comparison,
    spec: Spec,
    side: Side,
    watched: Watched,
    saved: frozenset[tuple[Side, int]] | None,
    waiting_for: str | None,
) -> CheckedSide:
    check, tally = spec.all_checks[watched.number], watched.tally
    if saved is None and check.hears:
        return CheckedSide(state="not_checked", reason=NO_RECORDS)
    first = [
        Violation(position=_position(spec, check, side, finding), problem=finding.text)
        for finding in tally.first
    ]
    found = CheckedSide(state="holds", checked=tally.rows, violations=tally.violations, first=first)
    is_saved = saved is None or (side, watched.number) in saved
    if is_saved and tally.certain_at is not None and tally.certain_at <= comparison.proven.vouched_at:
        return found.model_copy(update={"state": "violated"})
    reason = _doubt(comparison, spec, side, watched, waiting_for)
    return found if reason is None else found.model_copy(update={"state": "undecided", "reason": reason})


def _doubt(
    comparison: Comparison, spec: Spec, side: Side, watched: Watched, waiting_for: str | None
) -> str | None:
    """Why a check that no certain violation was found of does not hold."""
    tally = watched.tally
    if (hole := next(comparison.checks.holes(side), None)) is not None:
        return f"input was not checked: {holes.told(hole, spec)}"
    if tally.doubt is not None:
        at = _position(spec, spec.all_checks[watched.number], side, tally.doubt)
        return f"the record at {at.topic} {at.partition}:{at.offset} {tally.doubt.text}"
    if tally.violations:
        return waiting_for or UNSAVED
    return watched.judge.unsettled()


def _position(spec: Spec, check: Check, side: Side, finding: Finding) -> Position:
    """The place of a row; a finding about watermarks is about a control record."""
    topic = spec.version_of(side).topic if check.watermark is None else spec.control or ""
    return Position(topic=topic, partition=finding.partition, offset=finding.offset)
