"""Bags in which numbers have a tolerance: the number of events left over does not hang on who came first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations, product
from typing import Any

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.events import Event, Form, Side
from twinstream.core.matching import bags as module
from twinstream.core.matching.bags import Bags, merged

NEAR = "identity: [k]\nequality: {per_kind: {row: {tolerance: {v: {abs: 0.5}}}}}"
KINDS = f"kinds: {{mark: {{where: {{t: mark}}}}, tick: {{where: {{t: tick}}}}, row: {{}}}}\n{NEAR}"
ORDERS = {
    "bag": "unordered",
    "epochs": "{barrier: mark, inner: unordered}",
    "epochs of a key": "{by_key: [r], inner: {barrier: mark, inner: unordered}}",
    "branches": "{parallel: {m: {kinds: [mark], order: {barrier: mark, inner: unordered}},"
    " r: {kinds: [row, tick], order: unordered}}}",
    "beside rules": "{dependent: [[mark, tick]]}",
    "beside rules, of a key": "{by_key: [r], inner: {dependent: [[mark, tick]]}}",
}


def row(number: float, key: int = 1) -> bytes:
    return record({"t": "row", "r": 1, "k": key, "v": number})


def mark(number: int) -> bytes:
    return record({"t": "mark", "r": 1, "n": number})


def feed(driver: Driver, left: Sequence[bytes], right: Sequence[bytes], lefts: Sequence[int]) -> None:
    """Both lists, those of the left at these turns."""
    queues = iter(left), iter(right)
    for turn in range(len(left) + len(right)):
        side = LEFT if turn in lefts else RIGHT
        driver.feed(side, [next(queues[side])])


@pytest.mark.parametrize("order", ["epochs", "epochs of a key"])
def test_behind_a_difference_and_a_barrier_a_lane_is_a_new_one(order: str) -> None:
    driver = Driver(spec(ORDERS[order], KINDS))
    for side in Side:
        driver.feed(side, [row((10, 10.3)[side]), row(7, key=3 + side), mark(1), row(8), mark(2)])
    driver.comparison.review()
    assert driver.kinds() == ["extra", "missing"]
    driver.feed(LEFT, [row(10.6), mark(3)])
    driver.feed(RIGHT, [row(9.6), mark(3)])
    driver.end()
    assert driver.kinds() == ["changed", "extra", "missing"]
    assert driver.comparison.holes == []


@pytest.mark.parametrize("order", ORDERS)
def test_as_many_as_possible_are_paired_in_any_order_of_reading(order: str) -> None:
    left_rows, right_rows = ([row(0), row(0.75)], [row(0.5), row(-0.25)])
    for left, right in product(permutations(left_rows), permutations(right_rows)):
        for lefts in combinations(range(4), 2):
            driver = Driver(spec(ORDERS[order], KINDS))
            feed(driver, left, right, lefts)
            driver.end()
            assert (driver.comparison.matched, driver.comparison.diverged) == (2, False)


def test_sequences_beside_a_bag_are_compared_as_they_were() -> None:
    order = (
        "{parallel: {m: {kinds: [mark], order: {per_key: [r]}}, r: {kinds: [row, tick], order: unordered}}}"
    )
    for numbers in ((1, 2), (2, 1)):
        driver = Driver(spec(order, KINDS))
        driver.feed(LEFT, [mark(1), row(10), mark(2), row(10.6)])
        driver.feed(RIGHT, [row(10.3), mark(numbers[0]), row(9.6), mark(numbers[1])])
        assert driver.comparison.diverged is (numbers == (2, 1))


# -- what is forgotten -------------------------------------------------------------------------------------


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 1)


def unknown(driver: Driver) -> list[str]:
    return [hole.reason for hole in driver.comparison.holes]


BESIDE = [row(5, key=2)], [row(5, key=2)]


def behind_a_pair(
    order: str = "bag", *, more: str = "", beside: Sequence[Sequence[bytes]] = BESIDE, restarts: bool = False
) -> Driver:
    """10 and 10.3 were paired, with another pair behind them; then 10.6 waits on the left."""
    driver = Driver(spec(ORDERS[order], KINDS + more))
    for side in Side:
        driver.feed(side, [row((10, 10.3)[side]), *beside[side]])
        if restarts:
            driver.restart()
    driver.feed(LEFT, [row(10.6)])
    return driver


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("last", [(), (mark(1),)])
def test_what_could_be_paired_with_more_memory_is_a_doubt_and_no_difference(
    order: str, last: tuple[bytes, ...], *, restarts: bool
) -> None:
    driver = behind_a_pair(order, restarts=restarts)
    assert unknown(driver) == []
    driver.feed(RIGHT, [row(9.6), *last])
    driver.feed(LEFT, last)
    driver.end()
    assert not driver.comparison.diverged
    assert unknown(driver) == [module.UNKNOWN_PAIRS.reason]
    assert "came again further apart than is remembered" in unknown(driver)[0]


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("order", ["epochs", "epochs of a key"])
def test_nor_is_it_a_difference_for_a_side_that_is_behind_a_barrier(order: str) -> None:
    driver = behind_a_pair(order)
    driver.feed(LEFT, [mark(1)])
    driver.feed(RIGHT, [row(9.6), mark(1)])
    assert (driver.comparison.diverged, len(unknown(driver))) == (False, 1)
    driver.end()
    assert not driver.comparison.diverged


@pytest.mark.usefixtures("forgetful")
def test_a_difference_in_another_lane_counts_all_the_same() -> None:
    driver = behind_a_pair(beside=[[row(5, key=2), row(v, key=3)] for v in (7, 70)])
    driver.feed(RIGHT, [row(9.6)])
    driver.end()
    assert driver.comparison.diverged
    assert unknown(driver) == [module.UNKNOWN_PAIRS.reason]
    found = sorted((one.finding.kind, one.tainted) for one in driver.findings())
    assert found == [("changed", False), ("changed", True)]


@pytest.mark.usefixtures("forgetful")
def test_where_one_side_alone_has_events_left_over_that_is_a_difference() -> None:
    driver = behind_a_pair()
    driver.end()
    assert driver.comparison.diverged
    assert (driver.kinds(), unknown(driver)) == (["missing"], [])


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("shrinks", [False, True])
def test_what_is_left_of_one_side_is_a_difference_also_where_memory_was_given_back(*, shrinks: bool) -> None:
    driver = behind_a_pair()
    driver.feed(RIGHT, [row(9.6)])
    if shrinks:
        driver.comparison.index.shrink()
    driver.feed(RIGHT, [row(10.6)])
    driver.end()
    assert driver.comparison.diverged
    assert (driver.kinds(), unknown(driver)) == (["extra"], [])


@pytest.mark.usefixtures("forgetful")
def test_a_clock_proves_nothing_of_what_could_be_paired_with_more_memory() -> None:
    driver = behind_a_pair(more="\noverdue: {clock: arrival, after: 1s, proves: true}")
    driver.feed(RIGHT, [row(9.6)])
    for side in Side:
        driver.feed(side, [row(8, key=4)], [90_000])
    driver.look()
    assert [driver.comparison.unmatched(side) for side in Side] == [0, 0]
    assert (driver.comparison.diverged, unknown(driver)) == (False, [module.UNKNOWN_PAIRS.reason])


def test_of_a_lane_only_so_many_pairs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OF_A_LANE", 1)
    driver = behind_a_pair(beside=[[row(50)], [row(50)]])
    driver.feed(RIGHT, [row(9.6)])
    driver.end()
    assert (driver.comparison.diverged, len(unknown(driver))) == (False, 1)


def test_where_it_takes_too_long_to_make_room_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOKED_AT", 1)
    driver = Driver(spec("unordered", KINDS))
    feed(driver, [row(10), row(10.6)], [row(10.3), row(9.6)], (0, 1))
    driver.end()
    assert (driver.comparison.diverged, len(unknown(driver))) == (False, 1)


# -- state -------------------------------------------------------------------------------------------------


def event(number: int, lane: Any = b"lane", offset: int = 0) -> Event:
    text = b"%s %d" % (lane if isinstance(lane, bytes) else lane[1], number)
    return Event(Form(lane, text, "event", text), 0, offset, 0, 0.0)


def form_of(text: bytes) -> Form:
    return Form(text.split()[0], text, "event", text)


def near(one: Event, other: Event) -> bool:
    return abs(int(one[0][1].split()[1]) - int(other[0][1].split()[1])) <= 1


@pytest.mark.parametrize("sweeps_at", [(), (5, 8)], ids=["deltas", "with the first deltas of sweeps"])
def test_deltas_have_what_changed_and_together_they_are_the_whole(
    monkeypatch: pytest.MonkeyPatch, sweeps_at: Sequence[int]
) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    monkeypatch.setattr(module, "MARKS", 2)
    bags = Bags(near)
    states = [bags.state(whole=True)]
    for number in range(12):
        lane = b"lane%d" % (number // 2)
        bags.partner(LEFT, event(number, lane), [event(number + 1, lane)], 0)
        states.append(bags.state(whole=number in sweeps_at))
        whole = merged(states)
        again = Bags(near)
        again.restore(whole, form_of)
        assert again.state(whole=True) == bags.state(whole=True) == whole
        assert len(states[-1]["pairs"]) == (3 if number in sweeps_at else 1)
    assert len(whole["pairs"]) == 3
    assert len(whole["marks"]) == 2


def test_what_is_set_aside_below_a_key_is_forgotten_there_until_the_next_barrier() -> None:
    held: tuple[dict[Any, Event], dict[Any, Event]] = {}, {}
    bags = Bags(near)
    lanes = [("a", b"lane"), ("b", b"lane")]
    for lane in lanes:
        bags.partner(LEFT, event(1, lane), [event(2, lane)], 1)
        for side in Side:
            held[side][lane] = event(9, lane)
        bags.crowd(lane, held, 1)
    bags.lose(("a", None), 1)
    assert [bags.forgot(lane, 1) for lane in lanes] == [True, False]
    assert bags.doubtful() == {}, "what waited there was set aside"
    bags.crowd(lanes[0], held, 1)
    assert bags.doubtful() == {lanes[0]: held}
    bags.close(("a", None), 1)
    assert [bags.forgot(lane, 1) for lane in lanes] == [False, False]
    assert [depth for depth, *_ in bags.state(whole=True)["pairs"].values()] == [1]


def test_what_is_forgotten_of_one_lane_does_not_pile_up_behind_what_is_kept_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "OF_A_LANE", 2)
    bags = Bags(near)
    bags.partner(LEFT, event(1, b"kept"), [event(1, b"kept")], 0)
    for number in range(100):
        bags.partner(LEFT, event(number, b"hot"), [event(number, b"hot")], 0)
    records = [record for _, _, record, _ in bags.state(whole=True)["pairs"].values()]
    assert records == [b"kept 1", b"hot 98", b"hot 99"]
    assert len(bags._pairs) == 3


def test_nothing_piles_up_where_no_state_is_ever_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 5)
    monkeypatch.setattr(module, "MARKS", 5)
    monkeypatch.setattr(module, "_SPARE", 5)
    bags = Bags(near)
    held = {b"one": 1}, {b"one": 1}
    for number in range(500):
        lane = b"hot" if number % 2 else b"lane%d" % number
        bags.partner(LEFT, event(number, lane), [event(number, lane)], 0)
        bags.crowd(b"%d" % number, held, 0)
    whole = bags.state(whole=True)
    assert (len(whole["pairs"]), len(whole["marks"]), whole["gone"]) == (5, 5, [])
    sizes = {
        name: len(getattr(bags, name)) for name in ("_pairs", "_new_pairs", "_new_marks", "_gone", "_crowded")
    }
    assert max(sizes.values()) <= 20, sizes
