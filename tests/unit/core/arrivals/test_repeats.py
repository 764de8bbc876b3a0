"""A verdict that hangs on what is a copy is a matter of what the candidate wrote, and of nothing else."""

from __future__ import annotations

from itertools import chain, zip_longest

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, batches, record, spec
from twinstream.core.arrivals.repeats import KEPT, Repeats
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Event, Form
from twinstream.core.order import Lanes
from twinstream.core.state.merge import merged
from twinstream.core.state.snapshot import delta, snapshot

DAYS = "kinds: {day: {where: {t: day}}, rest: {}}\n"
RULE = "known_differences:\n- {id: DUP, when: {divergences: [duplicate]}, owner: us, expires: 2100-01-01, "


def driver(order: str = "{per_key: [k]}", horizon: int = 100, *, count: int = 9, more: str = "") -> Driver:
    limits = f"limits: {{recent_matches: 0, duplicate_horizon: {horizon}}}\n"
    return Driver(spec(order, f"{limits}{RULE}ceiling: {{count: {count}}}}}\n{more}"))


def outcome(driver: Driver) -> tuple[bool, int, int]:
    """Whether it diverged, how many events are explained, and how many holes there are."""
    comparison = driver.comparison
    return comparison.diverged, comparison.accounts[RIGHT].explained, len(comparison.holes)


def ended(driver: Driver, text: str) -> tuple[bool, int, int]:
    driver.take(batches(f"{text} L:. R:."), review=True)
    return outcome(driver)


COPY, EXTRA, UNCLEAR = (False, 1, 0), (True, 0, 0), (False, 0, 1)


def test_copies_of_a_barrier_in_other_partitions_are_no_copies_of_an_event() -> None:
    known = driver("{barrier: day, inner: unordered, copies: per_partition}", more=DAYS)
    known.comparison.expect_partitions(LEFT, (0, 1))
    known.comparison.expect_partitions(RIGHT, (0, 1))
    for partition in (0, 1):
        known.feed(RIGHT, [record({"t": "day", "k": "a", "v": 1})], partition=partition)
    known.end()
    assert outcome(known) == EXTRA


@pytest.mark.parametrize(("between", "told"), [(2, COPY), (3, UNCLEAR)])
def test_beyond_the_horizon_nobody_knows(between: int, told: tuple[bool, int, int]) -> None:
    others = " ".join(f"L:b{n} R:b{n}" for n in range(between))
    one = driver("unordered", horizon=3)
    assert ended(one, f"L:a1 R:a1 {others} R:a1") == told
    if told == UNCLEAR:
        (hole,) = one.comparison.holes
        assert (hole.side, hole.partition, hole.offset) == (RIGHT, 0, 4)
        assert "offset 4 of partition 0" in hole.reason
        assert "limits.duplicate_horizon" in hole.reason
        (found,) = one.findings()
        assert (found.finding.kind, found.tainted) == ("extra", True)


def test_an_unclear_event_taints_no_other_difference() -> None:
    others = " ".join(f"L:b{n} R:b{n}" for n in range(5))
    one = driver(horizon=3)
    assert ended(one, f"{others} R:a1 L:c1") == (True, 0, 1)
    assert sorted((found.finding.kind, found.tainted) for found in one.findings()) == [
        ("extra", True),
        ("missing", False),
    ]


def test_an_event_that_no_rule_would_cover_as_a_copy_is_clear() -> None:
    others = " ".join(f"L:b{n} R:b{n}" for n in range(5))
    assert ended(driver("unordered", 3, count=1), f"{others} R:b4 R:a1")[:2] == (True, 1)


def test_what_a_share_of_the_pairs_does_not_cover_yet_is_unclear_as_well() -> None:
    others = " ".join(f"L:b{n} R:b{n}" for n in range(5))
    share = f"{RULE}ceiling: {{share: 0.01}}}}\n"
    one = Driver(spec("unordered", f"limits: {{duplicate_horizon: 3}}\n{share}"))
    assert ended(one, f"{others} R:b4 R:a1") == (False, 1, 1)


def test_a_restored_unclear_event_taints_nothing_either() -> None:
    one = driver("{per_key: [k]}", horizon=3)
    others = " ".join(f"L:b{n} R:b{n}" for n in range(5))
    one.take(batches(f"{others} L:a2 R:a1 L:a3 R:a3 L:. R:."))
    (hole,) = one.comparison.holes
    one.restart()
    assert one.comparison.holes == [hole]
    assert not one.comparison.certainty.tainted


@pytest.mark.parametrize(("elsewhere", "told"), [(4, EXTRA), (5, UNCLEAR)])
def test_a_copy_is_not_known_where_another_partition_has_forgotten_something(
    elsewhere: int, told: tuple[bool, int, int]
) -> None:
    one = driver("unordered", horizon=3)
    others = [record({"k": "b", "v": value}) for value in range(elsewhere)]
    one.feed(LEFT, others)
    one.feed(RIGHT, others, partition=1)
    one.offsets = [elsewhere, 0]
    one.feed(RIGHT, [record({"k": "a"})])
    one.end()
    assert outcome(one) == told


@pytest.mark.parametrize("between", [3, 40], ids=["compared with it", "behind where the sides met"])
@pytest.mark.parametrize("pace", ["in turns", "one side first"])
@pytest.mark.parametrize("order", ["{per_key: [k]}", "{dependent: [{pair: [event, event], same: [k]}]}"])
def test_an_event_before_its_equal_one_is_no_copy(order: str, pace: str, between: int) -> None:
    reference = [*(f"L:a{n}" for n in range(2, between)), "L:a1"]
    candidate = ["R:a1", *(f"R:a{n}" for n in range(2, between)), "R:a1"]
    turns = zip_longest(reference, candidate, fillvalue="") if pace == "in turns" else [reference, candidate]
    assert ended(driver(order), " ".join(chain.from_iterable(turns))) == EXTRA


@pytest.mark.parametrize("partition", [0, 1], ids=["of its partition", "of another one"])
def test_what_lies_before_the_start_is_not_known(partition: int) -> None:
    one = driver("unordered")
    forms, _ = one.codec.forms([record({"k": "z"})])
    one.comparison.arrivals.before_start(RIGHT, Run(forms, partition, [0], [0], 0.0), by_place=True)
    one.offsets = [1, 1]
    assert ended(one, "L:a1 R:a1 R:b1") == UNCLEAR


def test_a_delta_has_what_has_come_and_not_what_was_saved() -> None:
    one = driver("unordered", horizon=50)
    one.take(batches(" ".join(f"R:a{n % 5}" for n in range(40))))
    states = [snapshot(one.comparison)]
    for n in range(40, 44):
        one.take(batches(f"R:a{n}"))
        states.append(delta(one.comparison))
    sizes = [len(state["repeats"]["windows"][0]["offsets"]) for state in states]
    marks = [len(state["repeats"]["marked"]) for state in states]
    assert (sizes, marks) == ([40, 1, 1, 1, 1], [35, 0, 0, 0, 0])
    one.take(batches("L:a0 L:a0 L:a1 L:a1"))
    states.append(delta(one.comparison))
    assert merged(states[0], states[1:])["repeats"] == snapshot(one.comparison)["repeats"]


def test_the_memory_is_bounded_by_the_horizon_and_by_what_waits() -> None:
    repeats = Repeats(7, bytes, Lanes())
    rows = [Event(Form("", b"%d" % (at % 3), "event", b""), 0, at, 0, 0.0) for at in range(3 * KEPT)]
    for start in range(0, len(rows), 100):
        repeats.note(0, rows[start : start + 100])
        repeats.trim(lambda event: event[2] >= len(rows) - 10)
    state = repeats.state(rows, whole=True)
    assert len(state["windows"][0]["offsets"]) == 8
    assert len(state["marked"]) <= KEPT + 100
    assert all(map(repeats.is_copy, rows[-10:]))
