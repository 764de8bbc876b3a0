"""What a look at everything unmatched finds: suspicions, proofs, and how far each partition is settled."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from tests.support.timelines import timeline
from twinstream.core.events import FORM, RECORD, TIMESTAMP_MS
from twinstream.core.overdue.judging import Lag

SECOND = 1000
PROVES = "overdue: {after: 60s, proves: true}"
NAMED = f"{PROVES}\nidentity: [k]"
KEYED = "{per_key: [k]}"
AT_END = (True, True)


@pytest.mark.parametrize(
    ("text", "more", "suspicions", "kinds"),
    [
        pytest.param("L:a@0 both@0-60 ? both@60 ?", "", [0, 1], [], id="an overdue event is one"),
        pytest.param("L:a@0 both@0-100 ? R:a@100 ?", "", [1, 0], [], id="until its partner comes"),
        pytest.param(
            "L:a@0 both@0-100 ? ?", PROVES, [0, 0], ["missing"], id="where that proves it is missing"
        ),
        pytest.param("L:a@0 apart@1-30 apart@70-100 ?", PROVES, [59], [], id="not without a later match"),
        pytest.param(
            "L:a@50 both@0-100 apart@100-120 ? both@120 ?",
            PROVES,
            [1, 0],
            ["missing"],
            id="by the whole time",
        ),
        pytest.param("L:a=1@0 R:a=2@0 both@0-100 ?", NAMED, [0], ["changed"], id="two of one identity"),
        pytest.param("L:a@1000 both:a@1001-1200 ?", PROVES, [1], [], id="a lost copy behind fresh ones"),
        pytest.param("L:a@1000 both:a@1001-1200 restart ?", "", [1], [], id="also after a restart"),
        pytest.param(
            "both@0-200 L:a@150 L:a@100 R:a@150 ? L:a@205 R:a@205 both@200-206 ?",
            "",
            [1, 0],
            [],
            id="not by an older copy that was read later",
        ),
        pytest.param(
            "both@0-200 L:a@150 L:a@100 R:a@150 ? restart L:a@205 R:a@205 both@200-206 ?",
            "",
            [1, 0],
            [],
            id="nor after a restart",
        ),
        pytest.param("both@900-1000 L:a@1000 both:a@1001-1060 ?", "", [0], [], id="not before it is overdue"),
    ],
)
def test_a_look_tells_what_is_overdue(text: str, more: str, suspicions: list[int], kinds: list[str]) -> None:
    seen = timeline(text, more)
    assert (seen.suspicions, seen.kinds, seen.diverged) == (suspicions, kinds, bool(kinds))


def test_nothing_is_overdue_while_a_side_is_not_read_to_its_end() -> None:
    seen = timeline("L:a@0 both@0-100", PROVES)
    for at_end in ((True, False), (False, True)):
        assert seen.driver.comparison.survey(at_end).suspicions == 0
        assert not seen.diverged


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("text", "more", "timed"),
    [
        ("L:a@0 both@0-100 ?", "", False),
        ("L:a@1000 both:a@1001-1200 ?", "", False),
        ("L:a@5 both@0-30 ?", "overdue: {clock: event_time, field: t, unit: s, after: 10s}", True),
    ],
    ids=["by arrival", "hidden behind fresh copies", "by event time"],
)
def test_a_suspicion_stays_while_a_side_is_not_read_to_its_end_until_all_of_its_time_have_matched(
    text: str, more: str, timed: bool, restarts: bool
) -> None:
    seen = timeline(text, more, timed=timed)
    if restarts:
        seen.driver.restart()
    comparison = seen.driver.comparison
    for at_end in ((True, False), (False, True), (False, False)):
        assert comparison.survey(at_end).suspicions == seen.suspicions[-1] == 1
    seen.driver.feed(LEFT, [record({"k": "new"})], [2_000_000])
    assert comparison.survey((False, True)).suspicions == 1, "nothing new is suspected"
    (late,) = (event for event, _ in comparison.index.unmatched(LEFT) if event[TIMESTAMP_MS] < 2_000_000)
    seen.driver.feed(RIGHT, [late[FORM][RECORD]], [2_000_000])
    assert comparison.survey((False, True)).suspicions == 0


def test_what_matched_is_never_taken_for_newer_than_it_is() -> None:
    driver = Driver(spec("unordered"))
    driver.feed(LEFT, [_event("a"), _event("b")], [10, 50])
    driver.feed(RIGHT, [_event("a"), _event("b"), _event("other")], [70, 90, 95])
    assert driver.comparison.ledger.newest_matched_ms == [50, 90]


def test_an_overdue_event_and_a_fresh_one_of_its_identity_are_one_change() -> None:
    seen = timeline("L:a=1@0 R:other@99 R:a=2@99 both@0-100 ?", NAMED)
    assert (seen.suspicions, seen.kinds, seen.held) == ([0], ["changed"], [[], [0]])


@pytest.mark.parametrize("passed", ["", "both@21-80 "])
def test_a_lost_event_that_a_rule_covers_is_no_surplus_when_it_comes_late(passed: str) -> None:
    when = "when: {divergences: [missing]}, owner: us, expires: 2100-01-01, ceiling: {count: 1}"
    more = f"{PROVES.replace('60s', '10s')}\nknown_differences: [{{id: R-1, {when}}}]"
    seen = timeline(f"L:a@0 both@0-20 ? {passed}R:a@81 both@82-150 ?", more)
    assert (seen.kinds, seen.diverged, seen.held) == ([], False, [[], []])
    assert [account.explained for account in seen.driver.comparison.accounts] == [1, 1]


def test_a_fresh_event_of_a_sequence_is_no_copy_of_those_before_it() -> None:
    seen = timeline("L:a=1@0 both@0-100 L:a=2@100 R:a=1@100 ?", order=KEYED)
    assert seen.suspicions == [0]


def test_exactly_the_overdue_copy_is_proven_where_timestamps_do_not_grow() -> None:
    seen = timeline("both@0 L:a@90 L:a@0 both@1-100 ? ?", PROVES)
    (found,) = seen.driver.findings()
    assert found.finding.left is not None
    assert (found.finding.left[2], seen.held[LEFT]) == (2, [1])


@pytest.mark.parametrize(
    ("text", "order", "open_from", "oldest"),
    [
        ("both@0-3 L:a@5 both@6-9 R:b@4 ?", "unordered", ({0: 3}, {0: 6}), 4),
        ("both@0-3 L:a@3 both@4-6 ?", "total", ({0: 3}, {0: 3}), 3),
    ],
    ids=["what waits", "what is set aside"],
)
def test_a_look_tells_the_first_unsettled_offset_and_the_oldest_time(
    text: str, order: str, open_from: tuple[dict[int, int], ...], oldest: int
) -> None:
    seen = timeline(text, order=order)
    assert (seen.looks[0].first_open, seen.looks[0].oldest_ms) == (open_from, oldest * SECOND)
    assert seen.driver.comparison.verified_up_to(LEFT, {0: 7, 1: 5}) == {0: 3, 1: 5}


def _event(name: str, value: int = 0) -> bytes:
    return record({"k": name, "v": value})


def test_what_waits_is_weighed_by_side_wherever_it_waits() -> None:
    seen = timeline("L:a=1@0 L:b=100@0 R:b=20@0 ?", order=KEYED)
    left, right = len(_event("a", 1)) + len(_event("b", 100)), len(_event("b", 20))
    assert seen.looks[0].held_bytes == [left, right]


def test_more_bytes_than_may_be_held_are_one_hole() -> None:
    size = len(_event("a", 1))
    seen = timeline("L:a=1@0 R:a=2@0 ?", f"limits: {{unmatched_bytes: {2 * size}}}")
    assert seen.driver.comparison.holes == []
    seen.go_on("L:a=3@0 ? ?")
    (hole,) = seen.driver.comparison.holes
    assert hole.reason == (
        f"limits.unmatched_bytes ({2 * size}) was reached: what came after was not compared"
    )


def test_a_time_in_the_future_proves_nothing_before_the_reader_has_waited_as_long() -> None:
    seen = timeline("L:late@0 both@0-2 both@3000 both@4-6", PROVES)
    assert seen.driver.comparison.survey(AT_END, Lag(read_s=59.9)).suspicions == 1
    assert seen.kinds == []
    assert seen.driver.comparison.survey(AT_END, Lag(read_s=60.0)).suspicions == 0
    assert seen.kinds == ["missing"]


def test_a_closing_scope_does_not_take_one_sides_times_for_the_others() -> None:
    """The candidate is late, and keeps its lateness: what the reference matched is as old as it says."""
    driver, late = timeline("L:z@10 L:tick@0", PROVES, order=KEYED).driver, 300
    for second in range(1, 40):
        driver.feed(LEFT, [_event("tick", second)], [second * SECOND])
    for second in range(1, 40):
        driver.feed(RIGHT, [_event("tick", second)], [(late + second) * SECOND])
    driver.comparison.review()
    assert driver.kinds() == ["missing"]
    assert driver.comparison.ledger.newest_matched_ms == [39 * SECOND, (late + 39) * SECOND]


def test_after_a_halt_nothing_is_judged_any_more() -> None:
    more = f"{PROVES}\non_divergence: halt"
    seen = timeline("L:a@0 both@0-100 L:b=1@100 R:b=2@100 ?", more, order=KEYED)
    assert (seen.suspicions, seen.kinds) == ([0], [])


def test_a_known_difference_that_time_has_proven_does_not_halt() -> None:
    known = "{id: K, when: {divergences: [missing]}, owner: us, expires: 2100-01-01, ceiling: {count: 1}}"
    seen = timeline("L:a@0 both@0-100 ?", f"{PROVES}\non_divergence: halt\nknown_differences: [{known}]")
    assert seen.driver.comparison.accounts[LEFT].explained == 1
    assert not seen.driver.comparison.halted
