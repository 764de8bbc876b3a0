from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, batches, record, spec, trace
from twinstream.core.accounting.certainty import HOLES_LIMIT
from twinstream.core.accounts import Hole
from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.diagnosis.looks import MEETING_RUN
from twinstream.core.events import Form, Side
from twinstream.core.order import Pairwise
from twinstream.core.rules import Rules
from twinstream.errors import RelationError


def run(count: int, start: int = 0, key: str = "a") -> list[bytes]:
    """Distinct events of one key."""
    return [record({"k": key, "v": value}) for value in range(start, start + count)]


def take(order: str, text: str, more: str = "") -> Driver:
    driver = Driver(spec(order, more))
    driver.take(batches(text), review=True)
    return driver


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("L:a1 L:b1 R:b1", ["missing"]),
        ("L:b1 R:a1 R:b1", ["extra"]),
        ("L:a1 L:b1 R:a1 R:a1 R:b1", ["duplicate"]),
        ("L:a1 L:b1 L:c1 R:b1 R:c1 R:a1", ["reordered"]),
        ("L:a1 L:b1 R:a2 R:b1", ["extra", "missing"]),
    ],
)
def test_a_fault_in_a_sequence_has_its_kind(text: str, kinds: list[str]) -> None:
    driver = take("total", text)
    driver.end()
    assert driver.kinds() == kinds


def test_an_event_that_turns_up_far_away_keeps_the_witness_of_its_lack() -> None:
    driver = Driver(spec("total"))
    driver.feed(LEFT, [record({"k": "moved"}), *run(MEETING_RUN)])
    driver.feed(RIGHT, run(MEETING_RUN))
    driver.comparison.review()
    assert driver.kinds() == ["missing"]
    driver.feed(RIGHT, [record({"k": "moved"})])
    driver.end()
    (found,) = driver.findings()
    assert found.finding.kind == "reordered"
    assert [event[2] for _, event in found.finding.witness] == [1, 0]
    assert driver.comparison.differences.closed_by_kind == {"missing": 0, "reordered": 1}


def test_a_difference_that_no_known_one_may_cover_is_in_no_dispute() -> None:
    driver = take("total", "L:a1 R:b1")
    assert driver.comparison.scopes
    assert not driver.comparison.in_dispute


def test_while_both_sides_are_open_nothing_faces_an_end() -> None:
    assert take("unordered", "L:a1 R:b1").comparison.provisional() == []


def test_what_waits_faces_no_end_where_some_of_what_came_was_not_compared() -> None:
    halted = take("{per_key: [k]}", "L:a1 R:b1 R:a2 L:b1 L:.", "on_divergence: halt")
    found = [divergence.finding for divergence in halted.comparison.provisional()]
    assert {finding.event[0][0] for finding in found} == {halted.codec.form(record({"k": "a", "v": 1})).route}
    full = take("unordered", "L:a1 L:b1 L:. R:.", "limits: {unmatched_events: 1}")
    assert full.comparison.provisional() == []


@pytest.mark.parametrize(
    ("trace", "more", "kinds"),
    [
        ("L:a1 L:b1 R:b1 R:a1", "", ["reordered"]),
        ("R:a1 R:b1 L:b1 L:a1", "", ["reordered"]),
        ("L:a1 L:b1 L:c1 R:c1 R:a1 R:b1", "", ["reordered"]),
        ("L:a1 L:b1 R:b1 R:c1", "", ["missing"]),
        ("L:a1 R:a2", "identity: [k]", ["changed"]),
        ("L:a1 L:b1 R:a2 R:b2", "identity: [k]", ["changed", "changed"]),
        ("R:a2 R:b1 L:a1 L:b1", "identity: [k]", ["changed"]),
        ("L:a1 L:b1 R:b1 R:a2", "identity: [k]", ["changed"]),
        ("L:a1 L:b1 R:b1 R:a1 R:a2", "identity: [k]", ["reordered"]),
        ("L:a1 R:b1", "identity: [k]", ["missing"]),
    ],
)
def test_a_difference_is_called_what_it_is_before_its_scope_closes(
    trace: str, more: str, kinds: list[str]
) -> None:
    driver = take("total", trace, more)
    driver.comparison.review()
    assert sorted(found.finding.kind for found in driver.comparison.provisional()) == kinds


@pytest.mark.parametrize("equal", [MEETING_RUN - 1, MEETING_RUN])
def test_a_scope_closes_at_a_run_of_equal_events(equal: int) -> None:
    driver = Driver(spec("total"))
    driver.feed(LEFT, run(1 + equal))
    driver.feed(RIGHT, run(equal, start=1))
    driver.comparison.review()
    assert driver.kinds() == (["missing"] if equal == MEETING_RUN else [])
    assert driver.comparison.matched == (equal if equal == MEETING_RUN else 0)


@pytest.mark.parametrize("size", [1, 50, 1000])
def test_many_changes_in_a_row_are_changes_and_what_follows_them_meets_again(size: int) -> None:
    driver = Driver(spec("total", "identity: [v]"))
    wrong = [record({"k": "wrong", "v": value}) for value in range(150)]
    reference, candidate = run(150 + 60), wrong + run(60, start=150)
    for start in range(0, 210, size):
        driver.feed(LEFT, reference[start : start + size])
        driver.feed(RIGHT, candidate[start : start + size])
        driver.comparison.review()
    assert not driver.comparison.scopes
    assert driver.kinds() == ["changed"] * 150
    assert driver.comparison.matched == 60


# -- halt ----------------------------------------------------------------------------------------------------


def halted(text: str, order: str = "unordered", more: str = "") -> Driver:
    driver = Driver(spec(order, f"on_divergence: halt\n{more}"))
    driver.take(batches(text))
    driver.comparison.review()
    return driver


def test_a_partner_that_was_ignored_after_a_halt_is_not_called_missing() -> None:
    driver = halted("L:a1 L:a2 R:b9 R:a1 R:a2 L:. R:.", "total")
    assert [found.finding.kind for found in driver.comparison.provisional()] == ["extra"]
    driver = halted("L:a1 R:a2 L:b1 R:. L:.", "{per_key: [k]}")
    assert sorted(found.finding.kind for found in driver.comparison.provisional()) == ["missing"]


def test_with_nothing_behind_the_halt_all_is_named_at_the_end() -> None:
    assert halted("L:a1 R:a2 L:. R:.", "total").kinds() == ["extra", "missing"]
    assert halted("L:a1 L:b1 R:c1 L:. R:.").kinds() == ["extra", "missing", "missing"]


def test_what_an_end_has_proven_is_named_after_a_halt_too() -> None:
    assert halted("L:a1 R:. L:.").kinds() == ["missing"]
    assert halted("L:a1 R:b1 R:. R:c1 L:.").kinds() == ["missing"]
    assert halted("L:a1 R:a2 R:. L:.", more="identity: [k]").kinds() == ["changed"]


KNOWN = "known_differences:\n- {id: K, when: {divergences: [missing]}, owner: us, expires: 2100-01-01, "


SIXTEEN = " ".join(f"L:a{number} R:a{number}" for number in range(20, 36))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_known_difference_does_not_halt_and_what_is_none_does(size: int) -> None:
    driver = Driver(spec("{per_key: [k]}", f"on_divergence: halt\n{KNOWN}ceiling: {{count: 1}}}}"))
    steps = f"L:a1 L:a2 R:a2 {SIXTEEN} L:b1 R:b1 L:b2 R:b3 L:c1"
    for side in (LEFT, RIGHT):
        values = [value for of, value in trace(steps) if of is side]
        for start in range(0, len(values), size):
            driver.feed(side, [record(value) for value in values[start : start + size]])
            driver.comparison.review()
    accounts = driver.comparison.accounts
    assert (accounts[LEFT].explained, driver.comparison.diverged) == (1, True)
    assert (driver.comparison.matched, accounts[RIGHT].ignored) == (18, 0)


def test_a_scope_in_dispute_that_is_no_known_difference_halts_when_it_closes() -> None:
    known = f"{KNOWN.replace('[missing]', '[extra]')}ceiling: {{count: 1}}}}"
    driver = halted(f"L:a1 L:a2 R:a2 {SIXTEEN} L:b1", "{per_key: [k]}", more=known)
    assert (driver.comparison.halted, driver.comparison.in_dispute) == (True, False)
    assert driver.comparison.diverged
    assert driver.comparison.accounts[LEFT].ignored == 2, "the last of the sixteen, and b1"


def test_a_known_difference_that_an_end_has_proven_does_not_halt() -> None:
    driver = halted("R:. L:a1 L:b1", more=f"{KNOWN}ceiling: {{count: 1}}}}")
    assert driver.comparison.halted
    assert driver.kinds() == ["missing"]
    assert driver.comparison.accounts[LEFT].explained == 1
    driver = halted("R:. L:a1", more=f"{KNOWN}ceiling: {{count: 1}}}}")
    assert not driver.comparison.halted
    assert not driver.comparison.in_dispute


DAYS = "kinds: {day: {where: {k: d}}, a: {}}\n"


@pytest.mark.parametrize("order", ["{barrier: day, inner: unordered}", '{dependent: [[day, "*"]]}'])
def test_a_known_loss_of_a_barrier_does_not_halt_where_an_end_comes_before_the_events_behind_it(
    order: str,
) -> None:
    known = KNOWN.replace("[missing]}", "[missing], where: {k: d}}")
    driver = Driver(spec(order, f"{DAYS}on_divergence: halt\n{known}ceiling: {{count: 1}}}}"))
    driver.take(batches("L:d1 R:a1 R:a2 R:. L:a1 L:a2 L:."))
    comparison = driver.comparison
    assert (comparison.diverged, comparison.halted, comparison.in_dispute) == (False, False, False)
    assert (comparison.matched, comparison.accounts[LEFT].explained) == (2, 1)


# -- holes and limits ----------------------------------------------------------------------------------------


def test_a_difference_behind_a_hole_is_tainted_and_decides_nothing() -> None:
    driver = Driver(spec("total"))
    driver.comparison.hole(Hole("lost offsets"))
    driver.take(batches("L:a1 R:b1 L:. R:."))
    assert not driver.comparison.diverged
    assert [found.tainted for found in driver.findings()] == [True, True]


def test_a_difference_that_is_in_dispute_at_the_hole_decides_nothing() -> None:
    known = KNOWN.replace("missing", "changed") + "ceiling: {count: 1}}"
    driver = take("total", "L:a1 R:a2", f"identity: [k]\n{known}")
    assert driver.comparison.in_dispute
    driver.comparison.hole(Hole("lost offsets"))
    driver.feed(LEFT, [record({"k": "lost"}), *run(MEETING_RUN)])
    driver.feed(RIGHT, run(MEETING_RUN))
    driver.comparison.review()
    assert (driver.kinds(), driver.comparison.accounts[LEFT].explained) == (["missing"], 1)
    assert (driver.comparison.in_dispute, driver.comparison.diverged) == (False, False)


def test_what_faces_an_ended_side_behind_a_hole_is_tainted() -> None:
    driver = Driver(spec("unordered"))
    driver.comparison.hole(Hole("lost offsets"))
    driver.take(batches("L:a1 R:."))
    assert [found.tainted for found in driver.comparison.provisional()] == [True]


def test_a_flood_of_holes_is_bounded() -> None:
    driver = Driver(spec("total"))
    for number in range(3 * HOLES_LIMIT):
        driver.feed(LEFT, run(1), partition=number % 2)
    assert len(driver.comparison.holes) == HOLES_LIMIT


def test_a_key_in_two_partitions_of_a_side_is_a_hole_that_names_both() -> None:
    driver = Driver(spec("{per_key: [k]}"))
    driver.feed(LEFT, run(1), partition=3)
    driver.feed(LEFT, run(1), partition=5)
    (hole,) = driver.comparison.holes
    assert (hole.side, hole.partition) == (LEFT, 5)
    assert "(3 and 5)" in hole.reason


def test_a_full_memory_is_a_hole_and_what_is_dropped_is_never_verified() -> None:
    driver = Driver(spec("unordered", "limits: {unmatched_events: 5}"))
    driver.feed(LEFT, run(6))
    driver.feed(RIGHT, run(3))
    driver.comparison.survey((True, True))
    assert [hole.reason for hole in driver.comparison.holes] == [
        "limits.unmatched_events (5) was reached: what came after was not compared"
    ]
    assert driver.comparison.verified_up_to(RIGHT, {0: 3}) == {0: 0}
    assert driver.comparison.unmatched(RIGHT) == 3
    driver.end()
    assert not driver.comparison.diverged


def test_what_matched_before_a_function_failed_counts_also_within_one_run() -> None:
    def related(one: Form, another: Form) -> bool:
        if b"3" in (one.content, another.content):
            raise RelationError("the function failed")
        return False

    comparison = Comparison(Rules(canonical=bytes, order=Pairwise(related)))
    comparison.feed(LEFT, Run([_form(b"1"), _form(b"2")], 0, [0, 1], [0, 0], 0.0))
    comparison.feed(RIGHT, Run([_form(b"1"), _form(b"3"), _form(b"2")], 0, [0, 1, 2], [0, 0, 0], 0.0))
    assert comparison.matched == 1
    assert [comparison.unmatched(side) for side in Side] == [1, 2]
    assert "the function failed" in comparison.holes[0].reason
    comparison.survey((False, False))
    assert comparison.verified_up_to(RIGHT, {0: 3}) == {0: 1}


def _form(content: bytes) -> Form:
    return Form((), content, "event", content)
