from __future__ import annotations

from typing import Any

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.events import Side
from twinstream.spec.load import digest

DAY_MS = 86_400_000
RULE = "when: {{divergences: {kinds}{more}}}, owner: me, expires: {expires}, ceiling: {ceiling}"


def known(
    kinds: str = "[changed]", more: str = "", ceiling: str = "{count: 1}", expires: str = "2100-01-01"
) -> Driver:
    rule = RULE.format(kinds=kinds, more=more, ceiling=ceiling, expires=expires)
    return Driver(spec("{per_key: [k]}", f"identity: [k, n]\nknown_differences: [{{id: K-1, {rule}}}]\n"))


def event(key: int, number: int, **fields: Any) -> bytes:
    return record({"k": key, "n": number, "price": 1, **fields})


def run(driver: Driver, key: int, **changed: Any) -> None:
    """Events of one key of which the first differs, and enough equal ones to meet again."""
    driver.feed(LEFT, [event(key, number) for number in range(20)])
    driver.feed(RIGHT, [event(key, number, **(changed if number == 0 else {})) for number in range(20)])


def test_a_covered_difference_is_explained_and_counted() -> None:
    driver = known()
    run(driver, 1, price=2)
    assert driver.comparison.in_dispute
    driver.comparison.review()
    assert not driver.comparison.in_dispute
    assert not driver.comparison.diverged
    assert [driver.comparison.accounts[side].explained for side in Side] == [1, 1]
    assert driver.comparison.differences.known.hits == {"K-1": 1}
    assert driver.findings() == []


def test_what_is_not_covered_diverges_as_of_the_moment_it_was_proven() -> None:
    driver = known(kinds="[missing]")
    driver.comparison.certainty.moment = 7
    run(driver, 1, price=2)
    driver.comparison.certainty.moment = 99
    driver.comparison.review()
    assert driver.comparison.proven.at == 7
    assert driver.kinds() == ["changed"]


def test_past_its_ceiling_a_rule_covers_nothing() -> None:
    driver = known()
    for key in (1, 2):
        run(driver, key, price=2)
        driver.comparison.review()
    assert driver.comparison.diverged
    assert driver.kinds() == ["changed"]
    assert driver.comparison.accounts[LEFT].explained == 1


def test_a_share_is_of_the_pairs_and_allows_at_least_one() -> None:
    driver = known(ceiling="{share: 0.01}")
    for key in (1, 2):
        run(driver, key, price=2)
        driver.comparison.review()
    assert driver.comparison.accounts[LEFT].explained == 1
    assert (driver.comparison.in_dispute, driver.comparison.diverged) == (True, False), "more pairs may come"
    driver.end()
    assert driver.comparison.accounts[LEFT].explained == 1
    assert driver.comparison.diverged


@pytest.mark.parametrize(
    ("more", "covered"),
    [
        (", fields: [price]", True),
        (", fields: [tax]", False),
        (", where: {k: 1}", True),
        (", where: {k: [2, 3]}", False),
        (", where: {country: FR}", False),
    ],
)
def test_a_rule_covers_only_the_events_and_fields_that_it_names(more: str, covered: bool) -> None:
    driver = known(more=more)
    run(driver, 1, price=2)
    driver.comparison.review()
    assert driver.comparison.diverged != covered


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("wanted", ["null", "[FR, null]", "FR"])
def test_an_absent_field_is_the_null_that_a_rule_wants_where_both_are_equal(
    wanted: str, *, equal: bool
) -> None:
    where = f", where: {{country: {wanted}}}"
    rule = RULE.format(kinds="[missing]", more=where, ceiling="{count: 1}", expires="2100-01-01")
    more = f"equality: {{absent_is_null: {str(equal).lower()}}}\nknown_differences: [{{id: K-1, {rule}}}]\n"
    driver = Driver(spec("{per_key: [k]}", more))
    driver.feed(LEFT, [event(1, number) for number in range(20)])
    driver.feed(RIGHT, [event(1, number) for number in range(1, 20)])
    driver.comparison.review()
    assert driver.comparison.diverged != (equal and "null" in wanted)


def test_a_rule_covers_records_before_its_day_of_expiry_only() -> None:
    driver = known(expires="1970-01-02", ceiling="{count: 9}")
    for key, at in ((1, DAY_MS - 1), (2, DAY_MS)):
        for side, price in ((LEFT, 1), (RIGHT, 2)):
            driver.feed(side, [event(key, 0, price=price)], [at])
    driver.end()
    assert driver.comparison.accounts[LEFT].explained == 1
    assert driver.kinds() == ["changed"]


def test_nothing_is_in_dispute_for_a_rule_that_has_expired() -> None:
    driver = known("[missing]", expires="1970-01-02")
    driver.feed(LEFT, [event(1, 1), event(1, 2)], [DAY_MS - 1, DAY_MS])
    driver.feed(RIGHT, [event(1, 2)], [DAY_MS])
    driver.comparison.review()
    assert (driver.comparison.in_dispute, driver.comparison.diverged) == (True, False)
    driver.feed(LEFT, [event(2, 1), event(2, 2)], [DAY_MS, DAY_MS])
    driver.feed(RIGHT, [event(2, 2)], [DAY_MS])
    moment = driver.comparison.certainty.moment
    driver.comparison.review()
    assert driver.comparison.proven.at == moment


def test_what_faces_an_end_is_in_dispute_until_both_have_ended() -> None:
    driver = known(kinds="[missing]")
    driver.feed(LEFT, [event(1, 0)])
    driver.comparison.end(RIGHT)
    assert driver.comparison.in_dispute
    driver.comparison.end(LEFT)
    assert not driver.comparison.in_dispute
    assert not driver.comparison.diverged
    assert driver.comparison.accounts[LEFT].explained == 1


def test_only_a_rule_that_names_copies_has_them_told_and_its_horizon_counts() -> None:
    rule = RULE.format(kinds="[duplicate]", more="", expires="2100-01-01", ceiling="{count: 1}")
    ruled = f"known_differences: [{{id: K-1, {rule}}}]\n"
    horizon = "limits: {duplicate_horizon: 7}\n"
    told = [Driver(spec("total", more)).comparison.ledger.repeats for more in ("", horizon, ruled)]
    assert [repeats is None for repeats in told] == [True, True, False]
    assert digest(spec("total", horizon)) == digest(spec("total"))
    assert digest(spec("total", horizon + ruled)) != digest(spec("total", ruled))
