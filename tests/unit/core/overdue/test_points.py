"""What is overdue on the clocks that say how far each side has come: event time, and the input."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from tests.support.timelines import timeline
from twinstream.core.accounting.unmatched import UnmatchedEvents
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Event, Form, Side
from twinstream.core.overdue.points import SLACK, Points
from twinstream.spec.load import loads

VERSIONS = """\
version: 1
name: test
reference: {{topic: r, version: "1"}}
candidate: {{topic: c, version: "2"}}
control: said
order: {order}
"""
IN = ("in", 0)
SET_ASIDE = "{by_key: [k], inner: total}"


# -- event time --------------------------------------------------------------------------------------------

TIMED = "overdue: {clock: event_time, field: t, unit: s, after: 10s}"
PROVES = TIMED.replace("10s", "10s, proves: true")


@pytest.mark.parametrize(
    ("text", "more", "order", "suspicions"),
    [
        pytest.param("L:a@5 both@0-16 ? both@16 ?", TIMED, "unordered", [0, 1], id="before the frontier"),
        pytest.param("L:a@5 both@0-30 ? R:a@5 ?", TIMED, "unordered", [1, 0], id="until its partner comes"),
        pytest.param(
            "L:a@1 L:a@2 R:a@3 R:a@2 both@0-60 ?", TIMED, SET_ASIDE, [0], id="not what is set aside"
        ),
    ],
)
def test_an_event_is_suspected(text: str, more: str, order: str, suspicions: list[int]) -> None:
    seen = timeline(text, more, order, timed=True)
    seen.driver.comparison.review()
    assert (seen.suspicions, seen.kinds) == (suspicions, [])
    assert seen.diverged == (order == SET_ASIDE)


def test_a_lost_copy_behind_fresh_ones_is_a_suspicion_on_every_clock() -> None:
    assert timeline("L:a@0 both:a@1-100 ?", TIMED).suspicions == [1]


def test_a_restart_changes_nothing() -> None:
    seconds = " ".join(f"restart both@{second}" for second in range(16, 20))
    assert timeline(f"L:a@5 both@0-16 ? {seconds} ?", PROVES, timed=True).kinds == ["missing"]


def test_both_sides_must_be_read_to_their_ends() -> None:
    seen = timeline("both@0-30 ? L:a@5", TIMED, timed=True)
    for at_end in ((True, False), (False, True), (False, False)):
        assert seen.driver.comparison.survey(at_end).suspicions == 0
    assert seen.go_on("?").suspicions == [0, 1]


def test_an_event_without_a_readable_time_is_never_overdue() -> None:
    seen = timeline("", PROVES, timed=True)
    values = ({"k": "a"}, {"k": "b", "t": "soon"}, {"k": "c", "t": True})
    seen.driver.feed(LEFT, list(map(record, values)))
    assert (seen.go_on("both@0-30 ?").suspicions, seen.diverged) == ([0], False)


def test_times_may_be_texts() -> None:
    driver = Driver(spec("unordered", PROVES))
    for side, names in ((LEFT, "axbc"), (RIGHT, "xbc")):
        seconds = {"a": 0, "x": 1, "b": 2, "c": 30}
        texts = [record({"k": name, "t": f"2026-03-01T12:00:{seconds[name]:02}Z"}) for name in names]
        driver.feed(side, texts)
    driver.look()
    assert driver.kinds() == ["missing"]


def test_what_is_set_aside_is_settled_where_it_proves() -> None:
    seen = timeline("L:a@1 L:a@2 R:a@3 R:a@2 both@0-60 ?", PROVES, SET_ASIDE, timed=True)
    seen.driver.comparison.review()
    assert (seen.suspicions, seen.kinds) == ([0], ["extra", "missing"])


# -- the input ---------------------------------------------------------------------------------------------


def marked(more: str = "", order: str = "unordered", window_end: str = "") -> Driver:
    """A comparison on the clock of the input."""
    clock = f"overdue: {{clock: input{window_end}}}\n"
    text = VERSIONS.format(order=order) + clock + more
    return Driver(loads(text))


def put_out(driver: Driver, side: Side, *offsets: int | None, name: str = "v") -> None:
    """Events that come from these records of the input."""
    values = [record({"k": name, "v": -1 if offset is None else offset}) for offset in offsets]
    marks = [None if offset is None else f"in:0:{offset}" for offset in offsets]
    driver.feed(side, values, marks=marks)


def say(driver: Driver, side: Side, batch: int, consumed: int, watermark: int | None = None) -> None:
    """A version has finished a batch, and written all that was written so far."""
    fact = Finished("q", "r", batch, {IN: consumed}, watermark, {0: driver.offsets[side]})
    driver.comparison.note_finished(side, fact)


def test_an_event_is_missing_once_the_other_version_has_consumed_past_its_input() -> None:
    driver = marked()
    put_out(driver, LEFT, 0, 1, 2)
    put_out(driver, RIGHT, 0, 2)
    driver.look()
    assert not driver.comparison.diverged
    say(driver, RIGHT, 0, consumed=1)
    driver.look()
    assert driver.kinds() == []
    say(driver, RIGHT, 1, consumed=3)
    driver.look()
    (found,) = driver.findings()
    assert found.finding.kind == "missing"
    assert found.finding.event[2] == 1


def test_an_event_without_a_mark_and_one_with_a_bad_mark_are_never_overdue() -> None:
    driver = marked()
    put_out(driver, LEFT, None)
    driver.feed(LEFT, [record({"k": "bad"})], marks=["in:0"])
    say(driver, RIGHT, 0, consumed=10**9, watermark=10**15)
    say(driver, RIGHT, 1, consumed=10**9, watermark=10**15)
    assert driver.look().suspicions == 0
    assert not driver.comparison.diverged


def window(driver: Driver, side: Side, *ends: int) -> None:
    driver.feed(side, [record({"end": end}) for end in ends])


def test_a_window_is_missing_once_a_later_batch_than_that_of_its_watermark_is_read() -> None:
    driver = marked(window_end=", window_end: end")
    window(driver, LEFT, 100, 200)
    window(driver, RIGHT, 200)
    say(driver, RIGHT, 0, consumed=0, watermark=100)
    driver.look()
    assert driver.kinds() == []
    say(driver, RIGHT, 1, consumed=0, watermark=100)
    driver.look()
    assert driver.kinds() == ["missing"]


def test_a_window_that_the_watermark_has_not_passed_is_not_overdue() -> None:
    driver = marked(window_end=", window_end: end")
    window(driver, LEFT, 100)
    for batch in range(3):
        say(driver, RIGHT, batch, consumed=0, watermark=99)
    driver.look()
    assert not driver.comparison.diverged


def test_an_event_of_an_input_record_is_not_judged_by_its_window_even_if_its_mark_cannot_be_read() -> None:
    driver = marked(window_end=", window_end: end")
    for number, mark in enumerate(("in:0:500", "in:0:x")):
        driver.feed(LEFT, [record({"k": number, "end": 5})], marks=[mark])
    for batch in range(3):
        say(driver, RIGHT, batch, consumed=400, watermark=10)
    driver.look()
    assert not driver.comparison.diverged


def test_an_overdue_event_and_one_of_its_identity_are_one_change() -> None:
    driver = marked("identity: [k]")
    driver.feed(LEFT, [record({"k": "a", "v": 1})], marks=["in:0:0"])
    driver.feed(RIGHT, [record({"k": "a", "v": 2})], marks=["in:0:0"])
    say(driver, RIGHT, 0, consumed=1)
    driver.look()
    assert driver.kinds() == ["changed"]


def rule(kind: str, ceiling: str = "{count: 9}") -> str:
    when = f"when: {{divergences: [{kind}]}}, owner: us, expires: 2100-01-01, ceiling: {ceiling}"
    return f"known_differences: [{{id: R-1, {when}}}]\n"


@pytest.mark.parametrize("first", Side)
@pytest.mark.parametrize(
    ("named", "kinds", "covered"),
    [("changed", [], 1), ("missing", ["changed"], 0), ("extra", ["changed"], 0)],
)
def test_two_halves_of_a_change_are_what_a_rule_for_changes_covers_whichever_is_proven_first(
    first: Side, named: str, kinds: list[str], covered: int
) -> None:
    driver = marked(f"identity: [k]\n{rule(named)}")
    for side in (first, first.other):
        for batch, value in ((0, 1), (1, 2)):
            if batch == side:
                driver.feed(side, [record({"k": "a", "v": value})], marks=[f"in:0:{50 * batch + 5}"])
            say(driver, side, batch, consumed=50 * batch + 50)
            driver.look()
    assert (driver.kinds(), driver.comparison.differences.known.counts) == (kinds, {"R-1": covered})


@pytest.mark.parametrize("late", [False, True])
def test_a_healthy_event_is_no_half_of_one_of_its_identity_that_is_lost(late: bool) -> None:
    driver = marked(f"identity: [k]\n{rule('missing')}")
    driver.feed(LEFT, [record({"k": "a", "v": 1})], marks=["in:0:5"])
    for side in (RIGHT, LEFT) if late else Side:
        driver.feed(side, [record({"k": "a", "v": 2})], marks=["in:0:60"])
        say(driver, side, 0, consumed=100)
        driver.look()
    assert (driver.kinds(), driver.comparison.matched) == ([], 1)
    assert driver.comparison.differences.known.counts == {"R-1": 1}


def test_a_share_is_one_of_the_pairs_of_later_too() -> None:
    driver = marked(rule("missing", "{share: 0.1}"))
    for batch, numbers in enumerate((range(5), range(5, 102))):
        for side in Side:
            kept = [number for number in numbers if side is LEFT or number >= 2]
            driver.feed(side, [record({"k": number}) for number in kept], marks=[f"in:0:{n}" for n in kept])
            say(driver, side, batch, consumed=numbers.stop)
        driver.look()
        assert not driver.comparison.diverged
    driver.end()
    assert (driver.kinds(), driver.comparison.differences.known.counts) == ([], {"R-1": 2})


def test_an_equal_event_that_waits_for_another_partition_is_no_missing_one() -> None:
    kinds = "kinds: {day: {where: {k: day}}, v: {}}"
    driver = marked(kinds, order="{barrier: day, inner: unordered, copies: per_partition}")
    for side in Side:
        driver.comparison.expect_partitions(side, {0, 1})
    day = [record({"k": "day"})]
    driver.feed(LEFT, day, partition=0)
    driver.feed(LEFT, day, partition=1)
    driver.feed(LEFT, [record({"k": "v", "v": 1})], marks=["in:0:0"])
    driver.feed(RIGHT, day, partition=0)
    driver.feed(RIGHT, [record({"k": "v", "v": 1})], marks=["in:0:0"])
    say(driver, RIGHT, 0, consumed=1)
    driver.look()
    assert not driver.comparison.diverged
    driver.feed(RIGHT, day, partition=1)
    driver.look()
    assert not driver.comparison.diverged
    assert driver.comparison.matched == 2


# -- points ------------------------------------------------------------------------------------------------


def _event(number: int) -> Event:
    return Event(Form("", b"", "", b"%d" % number), 0, number, 0, 0.0)


def test_what_left_is_forgotten_in_time() -> None:
    held = UnmatchedEvents()
    waiting = Points(held, lambda event: ("axis", event[2]))
    events = [_event(number) for number in range(10 * SLACK)]
    held.came(events)
    held.settle()
    assert waiting.passed({"axis": 1}) == {id(events[0]): events[0]}
    held.left(events[:-1])
    held.settle()
    assert waiting.passed({"axis": 1}) == {}
    assert sum(map(len, waiting._heaps.values())) == 1
    assert list(waiting.passed({"axis": 10 * SLACK}).values()) == events[-1:]


def test_an_axis_that_nobody_has_reached_passes_nothing() -> None:
    held = UnmatchedEvents()
    waiting = Points(held, lambda event: (event[2] % 2, event[2]))
    events = [_event(number) for number in range(4)]
    held.came(events)
    held.settle()
    assert list(waiting.passed({1: 9}).values()) == [events[1], events[3]]


KNOWN = """known_differences:
- {id: K, when: {divergences: [missing]}, owner: me, expires: 2999-01-01, ceiling: {count: 9}}
"""


@pytest.mark.parametrize("looks", [[], [2], [3], [5], [3, 5], [4, 6]])
@pytest.mark.parametrize("inner", ["total", "{per_key: [k]}", "unordered"])
@pytest.mark.parametrize("more", ["", KNOWN])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_barrier_lost_with_an_event_before_it_is_the_same_difference_whenever_somebody_looks(
    looks: list[int], inner: str, more: str, *, at_once: bool
) -> None:
    kinds = "kinds: {e: {where: {t: e}}, row: {}}\n"
    driver = marked(kinds + more, order=f"{{barrier: e, inner: {inner}}}")
    read = 0
    for batch, end in enumerate((*looks, 10, 10)):
        for side in Side:
            kept = [offset for offset in range(read, end) if side is LEFT or offset > 1]
            values = [record({"t": "e" if n in {1, 5, 7} else "row", "n": n, "k": 0}) for n in kept]
            driver.feed(side, values, marks=[f"in:0:{offset}" for offset in kept])
            if not at_once:
                driver.comparison.review()
            say(driver, side, batch, consumed=end)
        read = end
        driver.look()
        if at_once:
            driver.comparison.review()
    driver.end()
    assert driver.comparison.matched == 8
    assert driver.kinds() == ([] if more else ["missing", "missing"])
    assert driver.comparison.diverged is not bool(more)
