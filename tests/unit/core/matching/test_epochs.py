from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.rides import KINDS, day, ride
from tests.support.streams import LEFT, RIGHT, Batch, Driver, record, spec
from twinstream.core.comparison import Comparison
from twinstream.core.diagnosis.looks import MEETING_RUN
from twinstream.core.events import Side
from twinstream.core.state.merge import merged
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import delta, snapshot

BAGS = "{barrier: day, inner: unordered}"
LOST = "limits: {scope_events: 32}"


@pytest.fixture
def driver() -> Driver:
    return Driver(spec(BAGS, KINDS + LOST))


def feed(driver: Driver, *records: bytes, sides: tuple[Side, ...] = (LEFT, RIGHT)) -> None:
    for side in sides:
        driver.feed(side, records)


def lose_first_epoch(driver: Driver) -> None:
    """A difference at the first barrier, which matches, and then too much that differs."""
    driver.feed(LEFT, [ride(1), day(1)])
    driver.feed(RIGHT, [day(1)])
    driver.feed(LEFT, [ride(number) for number in range(100, 120)])
    driver.feed(RIGHT, [ride(number) for number in range(200, 220)])
    driver.comparison.review()
    assert driver.comparison.matched == 1


@pytest.mark.parametrize("restarts", [False, True])
def test_a_lost_scope_meets_again_at_a_barrier_that_both_sides_put_out_after_that(
    driver: Driver, restarts: bool
) -> None:
    lose_first_epoch(driver)
    for one in (day(2), ride(5), ride(6)):
        driver.feed(LEFT, [one])
        if restarts:
            driver.restart()
    driver.feed(RIGHT, [ride(7), day(2), ride(6), ride(5), day(3)])
    assert not driver.comparison.scopes
    assert driver.comparison.matched == 4
    driver.feed(LEFT, [day(3)])
    assert driver.comparison.matched == 5


def test_a_lost_scope_passes_over_a_barrier_that_only_one_side_has(driver: Driver) -> None:
    lose_first_epoch(driver)
    driver.feed(LEFT, [day(2), ride(5), day(3), ride(6)])
    driver.feed(RIGHT, [day(3), ride(6)])
    assert not driver.comparison.scopes
    assert driver.comparison.matched == 3


@pytest.mark.parametrize("first", Side)
def test_lost_scopes_meet_again_each_at_its_own_barrier_over_a_restart(first: Side) -> None:
    driver = Driver(spec("{by_key: [k], inner: {barrier: day, inner: unordered}}", KINDS + LOST))

    def feed_keys(side: Side, *keys: int) -> None:
        for key in keys:
            driver.feed(side, [record({"t": "day", "k": key, "n": 9}), ride(5, key=key), ride(6, key=key)])
            driver.restart()

    for key in range(4):
        for side in Side:
            driver.feed(side, [ride(100 * side + number, key=key) for number in range(20)])
            driver.feed(side, [record({"t": "day", "k": key, "n": 1})])
        driver.feed(LEFT, [ride(number, key=key) for number in range(300, 320)])
        driver.feed(RIGHT, [ride(number, key=key) for number in range(400, 420)])
    driver.comparison.review()
    assert [scope.lost for scope in driver.comparison.scopes] == [True] * 4
    before = driver.comparison.matched
    feed_keys(first, 3, 1)
    feed_keys(first.other, 1, 2)
    assert driver.comparison.matched == before + 3
    feed_keys(first.other, 3)
    feed_keys(first, 2)
    assert driver.comparison.matched == before + 9
    assert len(driver.comparison.scopes) == 1


@pytest.mark.parametrize("restarts", [False, True])
def test_a_copy_that_a_lost_scope_keeps_is_known_as_one(restarts: bool) -> None:
    known = "known_differences: [{id: D, when: {divergences: [duplicate]}, owner: me, ceiling: {count: 9}, "
    driver = Driver(spec(BAGS, f"{KINDS}{LOST}\n{known}expires: 2100-01-01}}]\n"))
    lose_first_epoch(driver)
    driver.feed(RIGHT, [day(2), ride(5), ride(5)])
    if restarts:
        driver.restart()
    driver.feed(LEFT, [day(2), ride(5)])
    driver.end()
    assert [account.explained for account in driver.comparison.accounts] == [0, 1]


def test_what_a_lost_scope_keeps_is_saved_once_until_it_changes(driver: Driver) -> None:
    lose_first_epoch(driver)
    found = [snapshot(driver.comparison), delta(driver.comparison)]
    for records in ([day(2), ride(5)], [], [ride(6)], []):
        if records:
            driver.feed(LEFT, records)
        found.append(delta(driver.comparison))
    found.append(snapshot(driver.comparison))
    assert [state["since_lost"] is None for state in found] == [False, True, False, True, False, True, False]
    assert merged(found[0], found[1:-1])["since_lost"] == found[-1]["since_lost"]
    ((_, left, right),) = found[-1]["since_lost"]
    assert (left["records"], right["records"]) == ([day(2), ride(5), ride(6)], [])
    driver.feed(RIGHT, [day(2)])
    assert delta(driver.comparison)["since_lost"] == []


def test_a_lost_scope_of_a_state_of_an_earlier_version_meets_at_the_next_barrier(driver: Driver) -> None:
    lose_first_epoch(driver)
    driver.feed(LEFT, [day(2), ride(5)])
    state = snapshot(driver.comparison)
    del state["since_lost"]
    driver.comparison = Comparison(driver.comparison.rules)
    restore(driver.comparison, state, driver.codec.form_again, 0.0)
    feed(driver, day(3), ride(5))
    assert driver.comparison.matched == 3


def test_what_a_lost_scope_keeps_is_bounded(driver: Driver) -> None:
    lose_first_epoch(driver)
    driver.feed(LEFT, [day(2), *(ride(number) for number in range(100))])
    driver.feed(RIGHT, [day(2), ride(1)])
    assert driver.comparison.matched == 1
    driver.feed(LEFT, [day(3), ride(5)])
    driver.feed(RIGHT, [day(3), ride(5)])
    assert driver.comparison.matched == 3


def test_nor_does_a_lost_scope_keep_barriers_without_bound(driver: Driver) -> None:
    lose_first_epoch(driver)
    driver.feed(LEFT, [day(number) for number in range(100, 140)])
    driver.feed(RIGHT, [day(number) for number in range(100, 140)])
    assert driver.comparison.matched == 33


def test_a_lane_that_is_set_aside_does_not_hold_a_barrier_up() -> None:
    driver = Driver(spec(LANES, KINDS))
    driver.feed(LEFT, [ride(1, key=7), ride(2, key=7), ride(1, key=8), day(1), ride(3, key=7)])
    driver.feed(RIGHT, [ride(2, key=7), ride(1, key=8), day(1), ride(3, key=7)])
    assert not driver.comparison.scopes
    assert driver.kinds() == ["missing"]
    assert driver.comparison.matched == 4


LANES = "{barrier: day, inner: {per_key: [k]}}"


def feed_in_runs(driver: Driver, left: Sequence[bytes], right: Sequence[bytes], size: int) -> None:
    """Both sides alternately, so many records at a time, as far as they have any."""
    for start in range(0, max(len(left), len(right)), size):
        for side, records in ((LEFT, left), (RIGHT, right)):
            if some := records[start : start + size]:
                driver.feed(side, some)
        driver.comparison.review()


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_half_of_the_earlier_epoch_is_found_first_whatever_the_runs(size: int) -> None:
    driver = Driver(spec(LANES, KINDS + "identity: [n]"))
    again = [ride(number) for number in range(10, 10 + MEETING_RUN)]
    moved = record({"t": "ride", "n": 1, "k": 0, "fare": 5})
    left = [ride(1), ride(2), day(1), ride(3), *again, day(2)]
    right = [ride(2), day(1), moved, ride(3), *again, day(2)]
    feed_in_runs(driver, left, right, size)
    (found,) = driver.findings()
    assert (found.finding.kind, found.first.kind, found.first.event[2]) == ("changed", "missing", 0)
    assert driver.comparison.matched == MEETING_RUN + 4


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_copy_behind_which_the_sides_meet_is_known_as_one_whatever_the_runs(size: int) -> None:
    driver = Driver(spec(LANES, KINDS))
    again = [ride(number) for number in range(10, 10 + MEETING_RUN)]
    spelled = record({"t": "ride", "n": 1, "k": 0}, style=1)
    left, right = [ride(1), day(1)], [spelled, day(1), spelled]
    feed_in_runs(driver, [*left, *again, day(2)], [*right, *again, day(2)], size)
    assert driver.kinds() == ["duplicate"]


@pytest.mark.parametrize(("ahead", "kind"), [(RIGHT, "missing"), (LEFT, "extra")])
def test_a_straggler_behind_a_barrier_has_a_name_as_soon_as_it_is_known(ahead: Side, kind: str) -> None:
    driver = Driver(spec(BAGS, KINDS))
    driver.feed(ahead, [day(1)])
    driver.feed(ahead.other, [ride(1)])
    driver.comparison.review()
    assert [found.finding.kind for found in driver.comparison.provisional()] == [kind]


def test_a_side_may_be_many_epochs_ahead(driver: Driver) -> None:
    records = [written for number in range(500) for written in (ride(number), day(number))]
    driver.feed(LEFT, records)
    assert driver.comparison.unmatched(LEFT) == 1000
    driver.feed(RIGHT, records)
    assert (driver.comparison.matched, driver.comparison.diverged) == (1000, False)


@pytest.mark.parametrize("order", [BAGS, f"{{by_key: [k], inner: {BAGS}}}"])
def test_what_is_proven_missing_takes_nothing_with_it_that_waits_behind_a_barrier(order: str) -> None:
    driver = Driver(spec(order, KINDS + "overdue: {after: 60s, proves: true}"))
    behind = [record({"t": "day", "k": 0}), ride(100), record({"t": "day", "k": 0}), ride(101)]
    driver.feed(LEFT, [ride(number) for number in range(71)], [second * 1000 for second in range(71)])
    driver.feed(LEFT, behind, [71_000] * 4)
    driver.feed(RIGHT, [ride(number) for number in range(1, 71)], [second * 1000 for second in range(1, 71)])
    driver.comparison.survey((True, True))
    assert driver.kinds() == ["missing"]
    assert [since_ms for _, since_ms in driver.comparison.index.unmatched(LEFT)] == [71_000] * 4
    driver.feed(RIGHT, behind)
    assert driver.comparison.matched == 74
    assert [driver.held(side) for side in Side] == [[], []]


def test_a_barrier_lost_behind_a_difference_is_no_difference_of_its_own_while_that_is_open() -> None:
    driver = Driver(spec(LANES, KINDS + "overdue: {after: 60s, proves: true}"))
    driver.feed(LEFT, [ride(1, key=7)])
    driver.feed(RIGHT, [ride(2, key=7)])
    rides, times = [ride(number, key=8) for number in range(71)], [second * 1000 for second in range(71)]
    driver.feed(LEFT, [*rides, day(1), ride(3, key=7)], [*times, 0, 71_000])
    driver.feed(RIGHT, rides, times)
    driver.comparison.survey((True, True))
    assert (driver.kinds(), driver.comparison.diverged) == ([], True)
    driver.feed(RIGHT, [ride(3, key=7)], [72_000])
    driver.end()
    assert sorted(driver.kinds()) == ["extra", "missing", "missing"]
    assert driver.comparison.matched == 72


def met_again_behind_a_barrier(*others: tuple[Side, bytes]) -> Driver:
    """In one key the sides have met again, but the left is past the epoch and the right has one more."""
    driver = Driver(spec(LANES, KINDS))
    rides = [ride(number, key=7) for number in range(1 + MEETING_RUN)]
    driver.feed(LEFT, rides)
    driver.feed(RIGHT, rides[1:])
    for side, other in others:
        driver.feed(side, [other])
    driver.feed(LEFT, [day(1)])
    driver.feed(RIGHT, [ride(99, key=7)])
    driver.comparison.review()
    return driver


def test_what_a_side_behind_has_left_when_a_part_closes_is_set_aside_with_the_barrier() -> None:
    driver = met_again_behind_a_barrier()
    assert driver.kinds() == ["missing"]
    assert [driver.held(side) for side in Side] == [[MEETING_RUN + 1], [MEETING_RUN]]
    driver.feed(RIGHT, [day(1)])
    driver.end()
    assert driver.kinds() == ["extra", "missing"]
    assert driver.comparison.matched == MEETING_RUN + 1


def test_a_part_that_is_set_aside_within_that_is_explained_with_it() -> None:
    rides = [ride(number, key=8) for number in range(1 + MEETING_RUN)]
    driver = met_again_behind_a_barrier(*((LEFT, one) for one in rides), *((RIGHT, one) for one in rides[1:]))
    (scope,) = driver.comparison.scopes
    assert [len(piece) for piece in scope.pieces] == [0, 1], "what has a partner in the day may still match"
    driver.feed(RIGHT, [day(1)])
    assert [len(piece) for piece in scope.pieces] == [1, 2]
    driver.end()
    assert driver.kinds() == ["extra", "missing", "missing"]
    assert driver.comparison.matched == 2 * MEETING_RUN + 1


@pytest.mark.parametrize("review", [True, False])
@pytest.mark.parametrize("first", Side)
def test_what_a_scope_gives_back_at_the_end_is_one_epoch_with_what_stands_behind(
    first: Side, *, review: bool
) -> None:
    sides = (
        [day(1), ride(1), day(2), ride(2)],
        [ride(0), day(1), ride(1), day(2), day(3), ride(2)],
    )
    driver = Driver(spec(BAGS, KINDS))
    for side in (first, first.other):
        driver.take([Batch(side, [one]) for one in sides[side]], review=review)
    driver.end()
    assert (driver.kinds(), driver.comparison.matched) == (["extra", "extra"], 4)


RULES = "{barrier: day, inner: {dependent: [[a, b], [b, c]]}}"
KINDS_OF_RULES = (
    "kinds: {day: {where: {t: day}}, a: {where: {t: a}}, b: {where: {t: b}}, c: {where: {t: c}}, d: {}}\n"
)


def under_rules(sides: tuple[list[bytes], list[bytes]], turns: str) -> Driver:
    """Feed both sides to their end, an event of the side of each turn."""
    driver = Driver(spec(RULES, KINDS_OF_RULES))
    waiting = iter(sides[0]), iter(sides[1])
    for turn in turns:
        side = LEFT if turn == "L" else RIGHT
        driver.feed(side, [next(waiting[side])])
        driver.comparison.review()
    return driver


@pytest.mark.parametrize("turns", ["LLLLLRRRRR", "RRRRRLLLLL", "RRLLLLLRRR", "RLRLRLRLRL"])
def test_what_rules_connect_is_set_aside_with_a_difference_though_the_epoch_had_gathered_it(
    turns: str,
) -> None:
    a, b, c = (record({"t": kind}) for kind in "abc")
    driver = under_rules(([c, b, b, b, day(1)], [a, day(1), b, b, b]), turns)
    driver.end()
    assert driver.kinds() == ["extra", "missing", "reordered", "reordered", "reordered"], "what b is to day"
    assert driver.comparison.matched == 1


@pytest.mark.parametrize("turns", ["LLRRR", "RRRLL", "RRLRL", "RLRLR"])
def test_so_it_is_where_one_side_has_no_barrier(turns: str) -> None:
    a, b, c = (record({"t": kind}) for kind in "abc")
    driver = under_rules(([c, b], [a, day(1), b]), turns)
    driver.end()
    assert driver.kinds() == ["extra", "extra", "missing"]
    assert driver.comparison.matched == 1


def test_what_no_rule_connects_with_it_stays_with_the_epoch() -> None:
    a, b, c, d = (record({"t": kind}) for kind in "abcd")
    driver = under_rules(([c, d, b], [a, day(1)]), "RRLLL")
    assert sorted(len(scope) for scope in driver.comparison.scopes) == [1, 3]
    assert driver.comparison.provisional() != []
    driver.restart()
    driver.end()
    assert driver.kinds() == ["extra", "extra", "missing", "missing", "missing"]
