"""Faults that lie far apart are found exactly: each once, with its kind and place, in batches of any size."""

from __future__ import annotations

import json
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.diagnosis.looks import MEETING_RUN

APART = MEETING_RUN + 4
"""Events of a lane between two faults: more than it takes to meet again."""

FAULTS = ("drop", "duplicate", "swap", "change", "add")
KIND = {"drop": "missing", "duplicate": "duplicate", "swap": "reordered", "change": "changed", "add": "extra"}


class Planted(NamedTuple):
    """One fault of the candidate: what it is, and the number in its lane of the event that it befalls."""

    fault: str
    place: int


class Plan(NamedTuple):
    """The faults of each lane, and how the streams are cut into batches."""

    faults: list[list[Planted]]
    batch: int
    ahead: int
    restarts: bool


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    lanes = []
    for _ in range(draw(st.integers(1, 3))):
        place, faults = 0, []
        for fault in draw(st.lists(st.sampled_from(FAULTS), max_size=3)):
            place += draw(st.integers(1, 5))
            faults.append(Planted(fault, place))
            place += APART
        lanes.append(faults)
    return Plan(lanes, draw(st.integers(1, 40)), draw(st.integers(-30, 30)), draw(st.booleans()))


def event(lane: int, number: int, value: int = 0) -> bytes:
    return record({"k": lane, "n": number, "v": value})


def candidate_of(lane: int, numbers: range, faults: list[Planted]) -> list[bytes]:
    events = [[event(lane, number)] for number in numbers]
    for fault, place in faults:
        if fault == "drop":
            events[place] = []
        elif fault == "duplicate":
            events[place] *= 2
        elif fault == "swap":
            events[place], events[place + 1] = events[place + 1], events[place]
        elif fault == "change":
            events[place] = [event(lane, place, value=1)]
        else:
            events[place].append(event(lane, 1000 + place))
    return [written for group in events for written in group]


def round_robin(lanes: list[list[bytes]]) -> list[bytes]:
    longest = max(map(len, lanes), default=0)
    return [lane[place] for place in range(longest) for lane in lanes if place < len(lane)]


def compare(order: str, plan: Plan, length: int) -> Driver:
    """Both sides in turn, one up to `ahead` events in front of the other, with a look after each batch."""
    driver = Driver(spec(order, "identity: [k, n]"))
    numbers = range(length)
    reference = round_robin([[event(lane, number) for number in numbers] for lane in range(len(plan.faults))])
    candidate = round_robin([candidate_of(lane, numbers, faults) for lane, faults in enumerate(plan.faults)])
    fed = {LEFT: 0, RIGHT: 0}
    streams = {LEFT: reference, RIGHT: candidate}
    step = 0
    while any(fed[side] < len(streams[side]) for side in streams):
        step += plan.batch
        for side, lead in ((LEFT, plan.ahead), (RIGHT, 0)):
            until = max(fed[side], min(len(streams[side]), step + lead))
            if until > fed[side]:
                driver.feed(side, streams[side][fed[side] : until])
                fed[side] = until
        driver.comparison.review()
        if plan.restarts:
            driver.findings()
            driver.restart()
    return driver


def found(driver: Driver) -> list[tuple[str, int, int]]:
    """The kind of each difference, with its lane and the number of its event."""
    names = []
    for finding, *_ in driver.findings():
        event = finding.left or finding.right
        assert event is not None
        value = json.loads(event[0][3])
        names.append((finding.kind, value["k"], value["n"] % 1000))
    return sorted(names)


def planted(plan: Plan) -> list[tuple[str, int, int]]:
    return sorted(
        (KIND[fault], lane, place) for lane, faults in enumerate(plan.faults) for fault, place in faults
    )


def check_found(driver: Driver, plan: Plan) -> None:
    names, expected = found(driver), planted(plan)
    for (kind, lane, place), (wanted, wanted_lane, wanted_place) in zip(names, expected, strict=True):
        assert (kind, lane) == (wanted, wanted_lane)
        assert place in ({wanted_place, wanted_place + 1} if kind == "reordered" else {wanted_place})


@given(plans())
def test_faults_that_lie_apart_in_their_keys_are_found_when_the_sides_have_met_again(plan: Plan) -> None:
    length = 5 + max(map(len, plan.faults)) * (APART + 5) + APART
    driver = compare("{per_key: [k]}", plan, length)
    assert not driver.comparison.scopes, "every scope has closed"
    check_found(driver, plan)
    driver.end()
    check_found(driver, plan)


@given(plans())
def test_faults_that_lie_apart_in_one_sequence_are_found(plan: Plan) -> None:
    alone = plan._replace(faults=plan.faults[:1])
    driver = compare("total", alone, 5 + len(alone.faults[0]) * (APART + 5) + APART)
    assert not driver.comparison.scopes
    check_found(driver, alone)


@given(plans())
def test_a_fault_right_before_the_end_is_found_at_the_end(plan: Plan) -> None:
    length = 2 + max((faults[-1].place for faults in plan.faults if faults), default=0)
    driver = compare("{per_key: [k]}", plan, length)
    driver.end()
    check_found(driver, plan)


@given(plans())
def test_a_bag_finds_every_fault_but_a_swap_at_the_end(plan: Plan) -> None:
    length = 5 + max(map(len, plan.faults)) * (APART + 5)
    driver = compare("unordered", plan, length)
    driver.end()
    without_swaps = [[fault for fault in faults if fault.fault != "swap"] for faults in plan.faults]
    check_found(driver, plan._replace(faults=without_swaps))
