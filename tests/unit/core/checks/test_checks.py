"""What a violation is worth: behind a hole, in input that nobody has vouched for, and over a restart."""

from __future__ import annotations

from twinstream.core.accounts import Hole
from twinstream.core.arrivals.run import Run
from twinstream.core.checks.checks import Checks, Tally
from twinstream.core.checks.property import Declared, EachRow, Lacking
from twinstream.core.events import Form, Side

LEFT, RIGHT = Side
FORM = Form("", b"", "event", b"")
BAD = "is bad"


def checks(holes: list[Hole] | None = None, *sides: Side) -> Checks:
    declared = Declared(sides or tuple(Side), EachRow)
    return Checks([declared], holes if holes is not None else [])


def run(*facts: object) -> Run:
    count = len(facts)
    return Run([FORM] * count, 0, range(count), [0] * count, 0.0, facts=[[fact] for fact in facts])


def tally(made: Checks, side: Side = RIGHT) -> Tally:
    return made.of(side)[0].tally


def test_a_row_that_lacks_what_is_read_is_a_doubt_and_no_violation() -> None:
    made = checks()
    made.take(RIGHT, run("", Lacking("has no `k`"), Lacking("has no `n`")), 7)
    found = tally(made)
    assert found.doubt is not None
    assert (found.doubt.offset, found.doubt.text, found.violations) == (1, "has no `k`", 0)


def test_a_violation_behind_a_hole_of_its_side_is_counted_and_does_not_count() -> None:
    holes: list[Hole] = []
    made = checks(holes)
    holes.append(Hole("lost", LEFT))
    for side in Side:
        made.take(side, run(BAD), 7)
    assert (tally(made, LEFT).violations, tally(made, LEFT).certain_at) == (1, None)
    assert tally(made, RIGHT).certain_at == 7
    holes.append(Hole("lost as well"))
    later = checks(holes)
    later.take(RIGHT, run(BAD), 8)
    assert tally(later).certain_at is None


def test_a_violation_in_input_that_may_be_of_another_topic_does_not_count() -> None:
    made = checks()
    made.take(RIGHT, run(BAD), 7)
    made.disown(vouched_at=7)
    assert tally(made).certain_at == 7
    made.disown(vouched_at=6)
    assert (tally(made).violations, tally(made).certain_at) == (1, None)


def test_a_side_that_is_not_looked_at_has_no_tally() -> None:
    made = checks(None, RIGHT)
    made.take(LEFT, run(BAD), 7)
    assert made.of(LEFT) == []
    assert made
