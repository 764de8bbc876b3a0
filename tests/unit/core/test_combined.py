"""Where two declarations meet: tolerance, identity, barriers and known differences, at any pace."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rides import KINDS
from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.events import Side
from twinstream.testing import check

TOLERANT = "equality: {tolerance: {v: {abs: 0.5}}}\n"
ORDERS = {
    "sequence": "{per_key: [k]}",
    "sequences between days": "{barrier: day, inner: {per_key: [k]}}",
    "one sequence between days": "{barrier: day, inner: total}",
    "bags between days": "{barrier: day, inner: unordered}",
}
BETWEEN_DAYS = [order for name, order in ORDERS.items() if "days" in name]

paces = pytest.mark.parametrize("size", [1, 7, 10_000])
firsts = pytest.mark.parametrize("first", Side)
restarts = pytest.mark.parametrize("restarts", [False, True])


def rule(*kinds: str) -> str:
    return (
        f"known_differences: [{{id: R-1, when: {{divergences: [{', '.join(kinds)}]}}, owner: us,"
        " expires: 2100-01-01, ceiling: {count: 9}}]\n"
    )


def ride(number: float, key: str = "a", v: float = 0) -> dict[str, Any]:
    return {"t": "ride", "k": key, "n": number, "v": v}


def day(number: int) -> dict[str, Any]:
    return {"t": "day", "n": number}


def run(
    order: str,
    more: str,
    reference: list[Any],
    candidate: list[Any],
    *,
    size: int = 7,
    first: Side = LEFT,
    restarts: bool = False,
) -> Driver:
    """Feed both sides to their end: in turn, so many events of each, with a look after each batch.

    Events are values, or records.
    """
    driver = Driver(spec(order, (KINDS if "day" in order else "") + more))
    sides = [
        [value if isinstance(value, bytes) else record(value) for value in values]
        for values in (reference, candidate)
    ]
    for place in range(0, max(map(len, sides)), size):
        for side in (first, first.other):
            if batch := sides[side][place : place + size]:
                driver.feed(side, batch)
                driver.comparison.review()
                if restarts:
                    driver.findings()
                    driver.restart()
    driver.end()
    return driver


def told(driver: Driver) -> tuple[str, list[str], list[int]]:
    """The verdict, the kinds of what is not explained, and how many events of each side are."""
    comparison = driver.comparison
    verdict = "DIVERGED" if comparison.diverged else "INCONCLUSIVE" if comparison.in_dispute else "EQUIVALENT"
    return verdict, driver.kinds(), [account.explained for account in comparison.accounts]


def moved(values: list[Any], place: int, by: int) -> list[Any]:
    """One value so many places later."""
    rest = [*values[:place], *values[place + 1 :]]
    return [*rest[: place + by], values[place], *rest[place + by :]]


# -- tolerance -----------------------------------------------------------------------------------------------


@paces
@firsts
def test_under_a_tolerance_one_lost_event_is_one_missing(size: int, first: Side) -> None:
    rides = [ride(0, v=number) for number in range(40)]
    driver = run(ORDERS["sequence"], TOLERANT, rides, [*rides[:7], *rides[8:]], size=size, first=first)
    assert told(driver) == ("DIVERGED", ["missing"], [0, 0])


@paces
@pytest.mark.parametrize("explains", ["reordered", "duplicate"])
def test_what_moved_and_changed_beyond_the_tolerance_changed(size: int, explains: str) -> None:
    """A rule for what moved does not explain it; one for a copy is refused beside a tolerance."""
    rides = [ride(number, v=1) for number in range(20)]
    candidate = moved(rides, 4, 5)
    candidate[9] = ride(4, v=500)
    more = TOLERANT + (rule("reordered") if explains == "reordered" else "")
    assert told(run(ORDERS["sequence"], more, rides, candidate, size=size)) == (
        "DIVERGED",
        ["changed"],
        [0, 0],
    )


@paces
@firsts
@restarts
@pytest.mark.parametrize("order", [ORDERS["sequence"], "unordered"])
@pytest.mark.parametrize(
    ("surplus", "name"),
    [(record(ride(4, v=2), style), "duplicate") for style in range(4)]
    + [(record(ride(4, v=v)), "extra") for v in (1.75, 2.25, 500)],
)
def test_under_a_tolerance_a_copy_is_what_equals_exactly_an_event_of_the_candidate_that_matched(
    order: str, surplus: bytes, name: str, restarts: bool, size: int, first: Side
) -> None:
    """However it is spelled; 1.75 is what the reference wrote."""
    more = TOLERANT + ("identity: [n]\n" if order == "unordered" else "")
    rides = [ride(number, v=1.75) for number in range(20)]
    candidate = [record(ride(number, v=2)) for number in range(20)]
    candidate[12:12] = [surplus]
    driver = run(order, more, rides, candidate, size=size, first=first, restarts=restarts)
    assert told(driver) == ("DIVERGED", [name], [0, 0])


@paces
@firsts
def test_a_copy_is_told_among_events_that_differ_in_nothing_but_a_tolerated_number(
    size: int, first: Side
) -> None:
    """0 and 0.8 are close to 0.4 and not to each other; which of them is looked at decides nothing."""
    values = [0, 0.4, 0.8, 5, 0.8, 0.4, 0]
    rides, candidate = ([ride(0, v=v) for v in values] for _ in range(2))
    candidate[4:4] = [ride(0, v=0.4)]
    assert told(run("total", TOLERANT, rides, candidate, size=size, first=first))[1] == ["duplicate"]


@paces
def test_what_changed_beyond_the_tolerance_changed_where_it_stands(size: int) -> None:
    rides = [ride(0, v=1) for _ in range(40)]
    candidate = [*rides[:7], ride(0, v=9), *rides[8:]]
    assert told(run(ORDERS["sequence"], TOLERANT, rides, candidate, size=size))[1] == ["changed"]


# -- barriers ------------------------------------------------------------------------------------------------


@paces
@pytest.mark.parametrize("order", BETWEEN_DAYS)
def test_what_moved_over_a_barrier_and_changed_changed(order: str, size: int) -> None:
    before, behind = [ride(number) for number in range(5)], [ride(number) for number in range(5, 40)]
    reference = [*before, day(1), *behind, day(2)]
    candidate = [*before[:4], day(1), ride(4, v=7), *behind, day(2)]
    driver = run(order, "identity: [n]\n", reference, candidate, size=size)
    assert told(driver)[:2] == ("DIVERGED", ["changed"])
    (found,) = driver.findings()
    assert found.finding.left is not None
    assert found.finding.right is not None
    assert (found.finding.left[2], found.finding.right[2]) == (4, 5), "where it stood on either side"


@pytest.mark.parametrize(
    ("reference", "candidate"),
    [
        ("0:4", "1:4"),
        ("0:4 0:9", "0:9 1:4"),
        ("0:4 1:8", "1:4 1:8"),
        ("0:4 0:9 1:8", "0:9 1:4 1:8"),
        ("0:4 0:9 1:8", "0:9 1:8 1:4"),
    ],
)
@pytest.mark.parametrize("first", ["reference-first", "alternate", "candidate-first"])
def test_an_event_that_changed_its_key_changed_whatever_else_both_keys_have(
    reference: str, candidate: str, first: str
) -> None:
    left, right = (
        [dict(zip(("k", "id"), word.split(":"), strict=True)) for word in text.split()]
        for text in (reference, candidate)
    )
    answer = check({"order": {"per_key": ["k"]}, "identity": ["id"]}, left, right, interleave=first)
    assert [one.kind for one in answer.examples] == ["changed"]


@pytest.mark.parametrize("schedule", ["R1 R1 L3 review L1 R1 review", "R2 R1 L3 L1 review look"])
def test_a_half_that_a_clock_proves_joins_one_of_a_scope_whichever_was_proven_first(schedule: str) -> None:
    driver = Driver(spec("{per_key: [k]}", "identity: [id]\noverdue: {after: 60s, proves: true}\n"))
    rows = {
        "L": [(0, "a", 10), (40, "b", 12), (60, "a", 11), (180, "c", 13)],
        "R": [(8, "a", 10), (70, "b", 11), (185, "c", 13)],
    }
    for step in schedule.split():
        if step == "review":
            driver.comparison.review()
        elif step == "look":
            driver.look(200)
        else:
            left_over = rows[step[0]]
            now, rows[step[0]] = left_over[: int(step[1])], left_over[int(step[1]) :]
            records = [record({"k": key, "id": number}) for _, key, number in now]
            driver.feed(Side("LR".index(step[0])), records, [second * 1000 for second, _, _ in now])
    driver.end()
    assert driver.kinds() == ["changed", "missing"]


# -- known differences ---------------------------------------------------------------------------------------

RULES = [("reordered",), ("missing", "extra"), ("missing", "reordered")]


@paces
@firsts
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("by", [5, 34, 1500])
def test_an_event_that_moved_is_reordered_to_each_rule_at_any_pace(
    order: str, by: int, size: int, first: Side
) -> None:
    rides = [
        day(number) if "day" in order and number % 20 == 0 else ride(number) for number in range(1, by + 60)
    ]
    candidate = moved(rides, 9, by)
    if "unordered" in order and by == 5:
        candidate = moved(rides, 9, 20)
    for kinds in RULES:
        driver = run(order, rule(*kinds), rides, candidate, size=size, first=first)
        explained = "reordered" in kinds
        expected = ("EQUIVALENT", [], [1, 1]) if explained else ("DIVERGED", ["reordered"], [0, 0])
        assert told(driver) == expected, kinds


@paces
@firsts
def test_an_event_that_moved_takes_one_place_of_a_ceiling_also_where_its_first_half_took_the_last(
    size: int, first: Side
) -> None:
    rides = [ride(number) for number in range(40)]
    candidate = [ride(99), *moved(rides, 0, 39)]
    two = rule("missing", "extra", "reordered").replace("{count: 9}", "{count: 2}")
    assert told(run("total", two, rides, candidate, size=size, first=first)) == ("EQUIVALENT", [], [1, 2])
    one = rule("missing", "extra", "reordered").replace("{count: 9}", "{count: 1}")
    assert told(run("total", one, rides, candidate, size=size, first=first))[0] == "DIVERGED"


@paces
@firsts
@restarts
@pytest.mark.parametrize("moved_key", ["a", "b"])
def test_an_event_that_moved_leaves_the_place_of_its_first_half_to_one_that_is_missing(
    moved_key: str, size: int, first: Side, restarts: bool
) -> None:
    def part(key: str) -> list[dict[str, Any]]:
        return [ride(0, key, v=int(key != moved_key)), *(ride(number, key, v=9) for number in range(1, 21))]

    one, other = part("a"), part("b")
    candidate = [*one[1:], *other[1:], ride(0, moved_key)]
    declared = "owner: us, expires: 2100-01-01, ceiling: {count: 1}"
    rules = (
        f"known_differences: [{{id: M, when: {{divergences: [missing]}}, {declared}}},"
        f" {{id: R, when: {{divergences: [reordered], where: {{v: 0}}}}, {declared}}}]\n"
    )
    driver = run("{per_key: [k]}", rules, one + other, candidate, size=size, first=first, restarts=restarts)
    assert told(driver) == ("EQUIVALENT", [], [2, 1])


@paces
@firsts
@pytest.mark.parametrize("kind", ["missing", "extra"])
def test_a_rule_for_one_half_of_what_moved_does_not_explain_the_other(
    kind: str, size: int, first: Side
) -> None:
    rides = [ride(number) for number in range(100)]
    driver = run(ORDERS["sequence"], rule(kind), rides, moved(rides, 9, 34), size=size, first=first)
    assert told(driver)[0] == "DIVERGED"


@paces
@firsts
def test_a_share_is_one_of_all_pairs_and_not_of_those_so_far(size: int, first: Side) -> None:
    rides = [ride(number, v=number % 7) for number in range(1000)]
    candidate = [ride(number, v=-1) if number in (3, 23, 43) else one for number, one in enumerate(rides)]
    share = rule("changed").replace("{count: 9}", "{share: 0.01}") + "identity: [n]\n"
    assert told(run(ORDERS["sequence"], share, rides, candidate, size=size, first=first)) == (
        "EQUIVALENT",
        [],
        [3, 3],
    )


@paces
@pytest.mark.parametrize("matches", [0, 1, 100_000])
@pytest.mark.parametrize("kinds", [("extra",), ("duplicate",)])
def test_what_is_a_copy_to_a_rule_is_no_matter_of_what_is_remembered(
    matches: int, kinds: tuple[str, ...], size: int
) -> None:
    rides = [ride(number) for number in range(60)]
    candidate = [*rides[:30], rides[2], *rides[30:]]
    more = f"limits: {{recent_matches: {matches}}}\n{rule(*kinds)}"
    expected = "EQUIVALENT" if kinds == ("duplicate",) else "DIVERGED"
    assert told(run("unordered", more, rides, candidate, size=size))[0] == expected


def test_with_no_matches_remembered_nothing_is_called_a_copy() -> None:
    values = [{"v": 0}, {"v": 2}], [{"v": 2}, {"v": 2}]
    driver = run("total", "limits: {recent_matches: 0}\n", *values)
    assert "duplicate" not in driver.kinds()
    assert driver.comparison.unmatched(RIGHT) == 0
