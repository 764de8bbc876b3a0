"""The partner of an event that was proven to be missing comes after all."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from tests.support.timelines import Timeline, timeline
from twinstream.core.state.merge import merged
from twinstream.core.state.snapshot import delta, snapshot

PROVES = "overdue: {after: 60s, proves: true}"


def missing(more: str = "", order: str = "unordered") -> Timeline:
    """The left's event `a` is proven to be missing."""
    seen = timeline("L:a@0 both@0-100 ?", f"{PROVES}\n{more}", order)
    assert seen.kinds == ["missing"]
    return seen


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            "R:a@100 both@100-200 ?", [("missing", 100.0)], id="with its delay, no second difference"
        ),
        pytest.param("R:a@100 ?", [("missing", None)], id="only once it has no partner itself for sure"),
        pytest.param("R:a@100 end", [("missing", 100.0)], id="at the end of both sides"),
        pytest.param("R:a@100 R:a@110 end", [("missing", 100.0), ("extra", None)], id="each partner once"),
        pytest.param(
            "restart R:a@100 restart both@100-200 ?", [("missing", 100.0)], id="after a restart too"
        ),
    ],
)
def test_a_late_partner_marks_the_divergence(text: str, found: list[tuple[str, float | None]]) -> None:
    assert missing().go_on(text).found == found


def test_what_came_late_is_one_difference_of_both_sides_and_waits_no_more() -> None:
    seen = missing().go_on("R:a@100 both@100-200 ?")
    comparison = seen.driver.comparison
    assert (comparison.diverged, comparison.differences.closed_by_kind) == (True, {"missing": 1})
    assert [account.divergent for account in comparison.accounts] == [1, 1]
    assert seen.held == [[], []]
    assert missing().go_on("R:a@100 ?").held == [[], [100]]


def test_a_fresh_partner_goes_before_an_overdue_one() -> None:
    seen = missing().go_on("R:a@100 L:a@101 both@102-200 ?")
    assert (seen.found, seen.driver.comparison.matched) == ([("missing", None)], 198 + 1)


@pytest.mark.parametrize("keep", ["records", "hashes"])
def test_events_that_lack_all_fields_of_the_identity_are_not_about_one_thing(keep: str) -> None:
    driver = Driver(spec("unordered", f"identity: [id, region]\nkeep: {keep}"))
    driver.feed(LEFT, [record({"k": "lost"}), record({"id": 1, "v": 0})])
    driver.feed(RIGHT, [record({"k": "surplus"}), record({"id": 1, "v": 1})])
    driver.end()
    assert driver.kinds() == ["changed", "extra", "missing"]


def test_the_left_can_be_late_as_well() -> None:
    assert timeline("R:a@0 both@0-100 ? L:a@130 end", PROVES).found == [("extra", 130.0)]


def test_what_may_come_late_is_saved_when_it_changes() -> None:
    seen = missing()
    comparison = seen.driver.comparison
    whole, unchanged = snapshot(comparison), delta(comparison)
    assert (unchanged["lone"], unchanged["strays"]) == (None, None)
    assert merged(whole, [unchanged])["lone"] == whole["lone"]
    seen.go_on("R:a@100 end")
    claimed = delta(comparison)
    assert merged(whole, [unchanged, claimed, delta(comparison)])["lone"] == claimed["lone"]


def test_an_event_whose_order_counts_has_changed_places_and_is_not_late() -> None:
    seen = missing(order="{per_key: [k]}").go_on("R:a@100 both@100-200 ?")
    assert seen.found == [("reordered", None)]


def test_a_late_event_of_another_value_is_no_partner() -> None:
    seen = missing("identity: [k]\nequality: {tolerance: {v: {abs: 1}}}").go_on("R:a=5@100 end")
    assert sorted(seen.found) == [("extra", None), ("missing", None)]
