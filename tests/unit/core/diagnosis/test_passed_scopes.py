"""What is set aside and to which nothing more is to come: both sides have gone on beyond it."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.events import Side

SECOND = 1000
AT_END = (True, True)
SUSPECTS = "overdue: {after: 60s}"
PROVES = "overdue: {after: 60s, proves: true}"
BY_ID = "{per_key: [id]}"


def event(name: int | str, price: int = 1, qty: int = 1) -> bytes:
    return record({"id": name, "price": price, "qty": qty})


def known(kinds: str = "changed", count: int = 100, fields: str = "[price]") -> str:
    rule = f"{{id: P-1, when: {{divergences: [{kinds}], fields: {fields}}}, owner: me, expires: 2999-12-31"
    return f"identity: [id]\nknown_differences:\n  - {rule}, ceiling: {{count: {count}}}}}\n"


def comparing(clock: str, more: str = "", order: str = BY_ID) -> Driver:
    return Driver(spec(order, f"{clock}\n{more}"))


def go_on(driver: Driver, until: int, start: int = 0) -> None:
    """Both sides write the same new event each second."""
    for second in range(start, until):
        for side in Side:
            driver.feed(side, [event(f"tick-{second}")], [second * SECOND])


def differ(driver: Driver, left: bytes, right: bytes, second: int = 0) -> None:
    """An event that comes once, and the candidate writes another instead."""
    driver.feed(LEFT, [left], [second * SECOND])
    driver.feed(RIGHT, [right], [second * SECOND])
    driver.comparison.review()


def survey(driver: Driver) -> None:
    driver.comparison.survey(AT_END)
    driver.comparison.review()
    driver.comparison.survey(AT_END)


def is_open(driver: Driver) -> bool:
    return bool(driver.comparison.scopes)


@pytest.mark.parametrize("clock", [SUSPECTS, PROVES])
def test_a_known_difference_in_a_key_that_never_comes_again_is_in_dispute_until_both_sides_have_passed_it(
    clock: str,
) -> None:
    driver = comparing(clock, known())
    differ(driver, event(7, price=1), event(7, price=2))
    go_on(driver, 60)
    survey(driver)
    assert driver.comparison.in_dispute
    go_on(driver, 62, start=60)
    survey(driver)
    assert not driver.comparison.in_dispute
    assert not driver.comparison.diverged
    assert driver.comparison.differences.known.counts == {"P-1": 1}
    assert [account.explained for account in driver.comparison.accounts] == [1, 1]
    assert [driver.comparison.unmatched(side) for side in Side] == [0, 0]


@pytest.mark.parametrize("clock", [SUSPECTS, PROVES])
def test_what_is_no_known_difference_diverges_then_only_where_the_clock_proves(clock: str) -> None:
    driver = comparing(clock, known())
    differ(driver, event(7, qty=1), event(7, qty=2))
    go_on(driver, 100)
    survey(driver)
    assert driver.comparison.diverged == (clock == PROVES)
    assert driver.comparison.in_dispute == (clock == SUSPECTS)


def test_what_would_be_beyond_the_ceiling_stays_in_dispute_where_the_clock_does_not_prove() -> None:
    driver = comparing(SUSPECTS, known(count=2))
    for number in range(3):
        differ(driver, event(number, price=1), event(number, price=2))
    go_on(driver, 100)
    survey(driver)
    assert driver.comparison.differences.known.counts == {"P-1": 2}
    assert not driver.comparison.diverged
    assert driver.comparison.in_dispute


def test_what_has_no_other_half_yet_stays_open_where_the_clock_does_not_prove() -> None:
    driver = comparing(SUSPECTS, known("missing, reordered", fields="[]"), order="total")
    go_on(driver, 1)
    driver.feed(LEFT, [event("a"), event("b")], [0, 0])
    driver.feed(RIGHT, [event("b")], [0])
    for side in Side:
        driver.feed(side, [event("c")], [100 * SECOND])
    survey(driver)
    assert driver.comparison.in_dispute
    assert driver.comparison.differences.known.counts == {"P-1": 0}


@pytest.mark.parametrize("clock", [SUSPECTS, PROVES])
def test_a_changed_event_of_a_key_that_never_comes_again_is_counted_for_good(clock: str) -> None:
    driver = comparing(clock, "identity: [id]")
    differ(driver, event(7, price=1), event(7, price=2))
    assert driver.comparison.differences.closed_by_kind == {}
    go_on(driver, 100)
    survey(driver)
    assert driver.comparison.differences.closed_by_kind == {"changed": 1}
    assert not is_open(driver)


@pytest.mark.parametrize(("clock", "closed"), [(SUSPECTS, False), (PROVES, True)])
def test_two_events_without_identity_are_missing_and_extra_once_it_is_proven(
    clock: str, closed: bool
) -> None:
    driver = comparing(clock)
    differ(driver, event(7, price=1), event(7, price=2))
    go_on(driver, 100)
    survey(driver)
    assert driver.comparison.diverged
    assert driver.comparison.differences.closed_by_kind == ({"missing": 1, "extra": 1} if closed else {})
    assert bool(driver.comparison.provisional()) == is_open(driver) == (not closed)


def test_equal_events_behind_the_difference_are_pairs_and_not_different() -> None:
    driver = comparing(PROVES, "identity: [id, qty]")
    differ(driver, event(7, price=1), event(7, price=2))
    for side in Side:
        driver.feed(side, [event(7, qty=2), event(7, qty=3)], [1 * SECOND, 1 * SECOND])
    go_on(driver, 100)
    survey(driver)
    assert driver.kinds() == ["changed"]
    assert driver.comparison.matched == 102


def test_a_scope_to_which_something_came_lately_stays_open() -> None:
    driver = comparing(PROVES, "identity: [id, qty]")
    differ(driver, event(7, price=1), event(7, price=2))
    go_on(driver, 90)
    for side in Side:
        driver.feed(side, [event(7, qty=2)], [89 * SECOND])
    go_on(driver, 100, start=90)
    survey(driver)
    assert is_open(driver)


def test_a_side_that_stands_still_leaves_what_is_set_aside_open() -> None:
    driver = comparing(PROVES, "identity: [id]")
    differ(driver, event(7, price=1), event(7, price=2))
    driver.feed(LEFT, [event(f"ahead-{second}") for second in range(200)], [s * SECOND for s in range(200)])
    survey(driver)
    assert is_open(driver)


def test_a_partner_of_what_was_missing_completes_it_when_it_comes_after_all() -> None:
    driver = comparing(PROVES, order="{per_key: [id]}")
    driver.feed(LEFT, [event(7, qty=1), event(7, qty=2)], [0, 0])
    driver.feed(RIGHT, [event(7, qty=2)], [0])
    go_on(driver, 100)
    survey(driver)
    assert driver.kinds() == ["missing"]
    driver.feed(RIGHT, [event(7, qty=1)], [100 * SECOND])
    go_on(driver, 200, start=100)
    survey(driver)
    assert driver.kinds() == ["reordered"]


def test_an_epoch_whose_barrier_is_lacking_is_settled_as_at_the_end() -> None:
    kinds = "kinds: {tick: {where: {id: tick}}, mark: {where: {id: mark}}, event: {}}\n"
    driver = comparing(PROVES, kinds, order="{barrier: mark, inner: {per_key: [id]}}")
    driver.feed(LEFT, [event(1), event("mark"), event(2)], [0, 0, 0])
    driver.feed(RIGHT, [event(1), event(2)], [0, 0])
    for side in Side:
        marks = range(70, 100)
        driver.feed(side, [event("mark", price=second) for second in marks], [s * SECOND for s in marks])
    survey(driver)
    driver.comparison.review()
    assert driver.kinds() == ["missing"]
    assert not is_open(driver)


def test_after_a_crash_the_same_scopes_are_passed() -> None:
    driver = comparing(SUSPECTS, known())
    differ(driver, event(7, price=1), event(7, price=2))
    go_on(driver, 62)
    driver.restart()
    survey(driver)
    assert not driver.comparison.in_dispute
    assert driver.comparison.differences.known.counts == {"P-1": 1}


def test_what_may_go_to_a_scope_with_others_is_not_judged_alone() -> None:
    """The left is past its day; of the right an event cannot be answered, and may be the left's, changed."""
    kinds = "kinds: {mark: {where: {id: mark}}, event: {}}\nidentity: [id]\n"
    driver = comparing(PROVES, kinds, order="{barrier: mark, inner: unordered}")
    driver.feed(LEFT, [event(1, price=1), event("mark"), event(2)], [0, 0, 0])
    assert not list(driver.comparison.index.gathered(LEFT))
    driver.feed(RIGHT, [event(1, price=2)], [0])
    assert [one[2] for one in driver.comparison.index.gathered(LEFT)] == [0, 1, 2]
    driver.feed(RIGHT, [event("mark"), event(2)], [0, 0])
    assert not list(driver.comparison.index.gathered(LEFT))
    driver.end()
    assert (driver.kinds(), driver.comparison.matched) == (["changed"], 2)


def test_what_is_passed_in_an_epoch_that_is_not_over_is_named_with_what_waits_there() -> None:
    def timed(name: int | str, ts: int, price: int = 1) -> bytes:
        return record({"id": name, "ts": ts, "price": price})

    clock = "overdue: {clock: event_time, field: ts, unit: s, after: 60s, proves: true}"
    kinds = "kinds: {end: {where: {id: end}}, event: {}}\n"
    rule = known("missing, changed", count=1, fields="[price, ts]")
    driver = comparing(clock, kinds + rule, "{barrier: end, inner: unordered}")
    driver.feed(RIGHT, [timed(7, 95, price=2), timed("y", 100), timed("end", 101)])
    driver.feed(LEFT, [timed(7, 0), timed("y", 100)])
    driver.look()
    driver.comparison.review()
    driver.feed(LEFT, [timed("end", 101)])
    for side in Side:
        driver.feed(side, [timed("z", 102), timed("end", 103)])
    survey(driver)
    assert not driver.comparison.diverged
    assert driver.comparison.differences.known.counts == {"P-1": 1}
    assert [account.explained for account in driver.comparison.accounts] == [1, 1]
