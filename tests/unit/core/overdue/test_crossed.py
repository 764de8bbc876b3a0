"""Equal events from different records of the input, which are paired with each other's partners."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, SPEAKING, Driver, record
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.core.overdue import crossed
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import snapshot
from twinstream.spec.load import loads

ORDERS = ("unordered", "{per_key: [k]}")


def speaking(order: str = "unordered", more: str = "") -> Driver:
    text = SPEAKING.replace("order: unordered", f"order: {order}")
    return Driver(loads(f"{text}overdue: {{clock: input}}\n{more}"))


def put_out(driver: Driver, side: Side, *offsets: int | str, letter: str = "a") -> None:
    """Equal events that come from these records of the input, or have an unreadable mark."""
    marks = [at if isinstance(at, str) else f"in:0:{at}" for at in offsets]
    driver.feed(side, [record({"k": 0, "letter": letter})] * len(offsets), marks=marks)


def say(driver: Driver, side: Side, consumed: int) -> int:
    """A version has consumed the input so far, and written all that was written; the suspicions then."""
    fact = Finished("q", "r", consumed, {("in", 0): consumed}, None, {0: driver.offsets[side]})
    driver.comparison.note_finished(side, fact)
    return driver.look().suspicions


@pytest.mark.parametrize("again", [False, True], ids=["as it is", "after a restart"])
@pytest.mark.parametrize("first", list(Side))
@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_whose_partner_was_taken_by_one_of_later_input_waits_for_the_partner_of_that(
    order: str, first: Side, *, again: bool
) -> None:
    driver = speaking(order)
    put_out(driver, first, 90, 5)
    assert say(driver, first, 100) == 0
    put_out(driver, first.other, 5)
    if again:
        driver.restart()
    assert say(driver, first.other, 50) == 0
    assert not driver.comparison.diverged
    if again:
        driver.restart()
    put_out(driver, first.other, 90)
    assert say(driver, first.other, 100) == 0
    assert (driver.kinds(), driver.comparison.matched, driver.comparison.diverged) == ([], 2, False)


@pytest.mark.parametrize("order", ORDERS)
def test_a_lost_copy_among_crossed_ones_is_proven_and_no_other(order: str) -> None:
    driver = speaking(order)
    put_out(driver, LEFT, 90, 5, 7)
    put_out(driver, RIGHT, 5)
    assert say(driver, RIGHT, 50) == 0
    assert driver.kinds() == ["missing"]
    put_out(driver, RIGHT, 90)
    say(driver, LEFT, 100)
    say(driver, RIGHT, 100)
    assert (driver.kinds(), driver.comparison.matched) == (["missing"], 2)


def test_the_copy_is_named_that_has_no_twin() -> None:
    driver = speaking()
    put_out(driver, LEFT, 90, 7, 5)
    put_out(driver, RIGHT, 7)
    say(driver, RIGHT, 50)
    assert driver.places() == [(LEFT, 2)]


def test_a_chain_of_crossed_pairs_excuses_no_more_than_its_last_one() -> None:
    driver = speaking()
    put_out(driver, LEFT, 30, 20, 10)
    put_out(driver, RIGHT, 20, 10)
    say(driver, RIGHT, 25)
    assert not driver.comparison.diverged
    say(driver, RIGHT, 40)
    assert driver.kinds() == ["missing"]


def test_crossed_pairs_over_several_partitions_of_the_input_excuse_until_all_are_passed() -> None:
    driver = speaking()
    put_out(driver, LEFT, "in:1:3", 5)
    put_out(driver, RIGHT, 5)
    say(driver, RIGHT, 50)
    assert not driver.comparison.diverged
    fact = Finished("q", "r", 51, {("in", 1): 4}, None, {0: 1})
    driver.comparison.note_finished(RIGHT, fact)
    driver.look()
    assert driver.kinds() == ["missing"]


@pytest.mark.parametrize("number", [2, 40], ids=["as events", "as whole runs"])
def test_copies_that_are_written_backwards_differ_from_none(number: int) -> None:
    driver = speaking()
    put_out(driver, LEFT, *range(2 * number))
    for half in (range(number), range(number, 2 * number)):
        put_out(driver, RIGHT, *reversed(half))
        assert say(driver, RIGHT, half.stop) == 0
    say(driver, LEFT, 2 * number)
    assert (driver.comparison.matched, driver.comparison.diverged) == (2 * number, False)


def test_whole_runs_that_are_paired_in_another_order_of_the_input_excuse_what_follows() -> None:
    driver = speaking()
    put_out(driver, LEFT, *range(90, 110))
    put_out(driver, RIGHT, *range(20))
    put_out(driver, LEFT, *range(20))
    assert driver.comparison.matched == 20
    say(driver, RIGHT, 50)
    assert not driver.comparison.diverged
    put_out(driver, RIGHT, *range(90, 110))
    say(driver, RIGHT, 200)
    assert (driver.comparison.matched, driver.comparison.diverged) == (40, False)


def test_a_difference_stays_open_while_an_event_of_it_waits_for_a_partner_of_later_input() -> None:
    driver = speaking("{per_key: [k]}")
    put_out(driver, LEFT, 90, 5)
    put_out(driver, LEFT, 6, letter="b")
    put_out(driver, RIGHT, 5)
    put_out(driver, RIGHT, 6, letter="c")
    say(driver, LEFT, 100)
    say(driver, RIGHT, 50)
    driver.comparison.review()
    put_out(driver, RIGHT, 90)
    say(driver, RIGHT, 100)
    driver.comparison.review()
    assert sorted(found.finding.event[0][3] for found in driver.findings()) == [
        record({"k": 0, "letter": letter}) for letter in "bc"
    ]


def test_a_value_within_a_tolerance_waits_for_a_partner_of_later_input() -> None:
    driver = speaking("{per_key: [k]}", "equality: {tolerance: {v: {abs: 1}}}\n")
    for side, values in ((LEFT, {90: 1, 5: 2}), (RIGHT, {5: 2})):
        marks = [f"in:0:{at}" for at in values]
        driver.feed(side, [record({"k": 0, "v": value}) for value in values.values()], marks=marks)
    say(driver, RIGHT, 50)
    assert not driver.comparison.diverged
    say(driver, RIGHT, 91)
    assert driver.kinds() == ["missing"]


def test_beyond_the_pairs_that_are_remembered_an_event_is_suspected_until_all_are_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crossed, "KEPT", 0)
    driver = speaking()
    put_out(driver, LEFT, 90, 5)
    put_out(driver, LEFT, 6, letter="b")
    put_out(driver, RIGHT, 5)
    assert say(driver, RIGHT, 50) == 2
    driver.restart()
    assert driver.look().suspicions == 2
    assert driver.kinds() == []
    put_out(driver, RIGHT, 90)
    assert say(driver, RIGHT, 100) == 0
    assert driver.kinds() == ["missing"]


def test_beside_a_pair_of_an_event_with_a_bad_mark_nothing_of_its_side_is_proven() -> None:
    driver = speaking()
    put_out(driver, LEFT, "in:?", 5)
    put_out(driver, RIGHT, 5, 6, 7)
    assert say(driver, RIGHT, 50) == 0
    put_out(driver, LEFT, 8)
    assert say(driver, RIGHT, 51) == 0
    put_out(driver, LEFT, 9)
    assert say(driver, RIGHT, 52) == 1
    assert not driver.comparison.diverged


def test_pairs_that_both_sides_have_passed_are_forgotten() -> None:
    driver = speaking()
    put_out(driver, LEFT, 90, 5, 3)
    put_out(driver, RIGHT, 5, 3, 90)
    pairs = driver.comparison.clocks.crossed
    assert pairs is not None
    assert sum(map(len, pairs.state()["pairs"])) == 3
    say(driver, LEFT, 100)
    say(driver, RIGHT, 100)
    assert sum(map(len, pairs.state()["pairs"])) == 0


def test_a_checkpoint_without_crossed_pairs_is_read() -> None:
    driver = speaking()
    put_out(driver, LEFT, 90, 5)
    put_out(driver, RIGHT, 5)
    state = snapshot(driver.comparison)
    del state["crossed"]
    again = speaking()
    restore(again.comparison, state, again.codec.form_again, 0.0)
    assert again.comparison.unmatched(LEFT) == 1
