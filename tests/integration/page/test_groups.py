"""Groups on the page: ten thousand differences in one look, and their rows on demand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.server import Served
from tests.support.statuses import NAME, counts, coverage, diverged, divergence, later
from tests.support.webpage import row, verdict
from twinstream.status.common import Sides
from twinstream.status.groups import Group, KeyShare, Member, PartitionShare, Pattern

pytestmark = pytest.mark.requires_chromium

WHY = "All are in partition 3, one of 4: look for what differs there only, such as one task or one machine."


def group(kind: Any = "changed", count: int = 7868, **more: Any) -> Group:
    """A group whose sentence begins with its count."""
    values: dict[str, Any] = {
        "fields": ["campaign_id"] if kind == "changed" else [],
        "side": "reference",
        "text": f"{count:,} {kind}; 39 of 100 keys; value + 1 in 100 %.",
    }
    return Group(id=f"{kind}-{more.get('fields')}", kind=kind, count=count, **{**values, **more})


def publish(service: Served, *groups: Group, second: float = 1, **more: Any) -> None:
    total = counts(changed=sum(one.count for one in groups))
    values: dict[str, Any] = {"groups": list(groups), "divergences": total, "closed_divergences": total}
    service.publish(diverged(at=later(second), **{**values, **more}))


def groups(page: Page) -> Locator:
    return page.locator(".group")


def test_provisional_groups_come_after_the_final_ones_and_have_no_drafts(service: Served, page: Page) -> None:
    publish(service, provisional_groups=[group(count=3)], divergences=counts(changed=3))
    region = page.get_by_role("region", name="What differs")
    expect(region).to_contain_text(
        "3 provisional divergences in 1 group: they differ, and may still be explained otherwise"
    )
    expect(groups(page)).to_have_count(1)
    expect(region).to_contain_text("100 % of all divergences")
    expect(page.get_by_text("Draft a rule")).to_be_hidden()
    publish(service, group(), second=2)
    expect(region).to_contain_text("7,868 final divergences in 1 group")
    expect(page.get_by_text("they differ, and may still be explained otherwise")).to_be_hidden()


def test_a_provisional_group_names_the_final_one_of_the_same_fields_and_pattern(
    service: Served, page: Page
) -> None:
    plus_one = [Pattern(field="campaign_id", pattern="shift", by=1, count=3, text="value + 1")]
    final, same, other = group(patterns=plus_one), group(count=3, patterns=plus_one), group(count=2)
    finals = group("missing", 9000), final
    publish(service, *finals, provisional_groups=[same, group("extra", 1)])
    says = groups(page).get_by_text("as final group")
    expect(says).to_have_text(["Same kind and fields, and the same pattern, as final group 2 above."])
    publish(service, *finals, provisional_groups=[other], second=2)
    expect(says).to_have_text(["Same kind and fields as final group 2 above."])


def test_the_largest_group_comes_first_with_its_sentence_its_share_and_the_likely_cause(
    service: Served, page: Page
) -> None:
    publish(service, group(), group("missing", 412, cause=WHY), divergences=counts(changed=8283))
    region = page.get_by_role("region", name="What differs")
    expect(region).to_contain_text("8,280 final divergences in 2 groups")
    largest, other = groups(page).nth(0), groups(page).nth(1)
    expect(largest.get_by_role("heading")).to_have_text("7,868 changed; 39 of 100 keys; value + 1 in 100 %.")
    expect(largest).to_contain_text("95 % of all divergences")
    expect(largest.locator(".cause")).to_be_hidden()
    expect(other.locator(".cause")).to_have_text(f"Likely cause {WHY}")
    order = (
        "document.querySelector('#groups').compareDocumentPosition(document.querySelector('#divergences'))"
    )
    assert page.evaluate(order) == 4  # the list follows


def test_the_shares_of_partitions_keys_kinds_and_values_stand_in_its_fold(
    service: Served, page: Page
) -> None:
    partitions = [
        PartitionShare(partition=0, count=25, first=100, last=2000),
        PartitionShare(partition=3, count=75, first=50, last=900),
    ]
    rounded = Pattern(
        field="price", pattern="rounded", count=80, text="rounded to 1 decimal in the candidate"
    )
    shares: Any = {
        "fields": ["price", "fee"],
        "partitions": partitions,
        "common": [Member(field="carrier", value="UA")],
        "keys": 2,
        "top_keys": [KeyShare(key="<b>taxi</b> 7", count=60), KeyShare(key="taxi 8", count=40)],
        "kinds": {"ride": 90, "end_of_day": 10},
        "patterns": [rounded],
    }
    publish(service, group(count=100, **shares))
    groups(page).get_by_text("Shares and newest rows").click()
    facts = groups(page).locator(".facts dd")
    expect(facts).to_have_text(
        [
            "carrier UA",
            "3: 75 %, offsets 50–900 · 0: 25 %, offsets 100–2,000 (reference)",
            "<b>taxi</b> 7 60 · taxi 8 40",
            "ride 90 · end_of_day 10",
            "price: rounded to 1 decimal in the candidate in 80",
        ]
    )


def test_its_rows_and_an_example_are_one_click_away(service: Served, page: Page) -> None:
    service.publish(divergence("5d1f0c2e1a9b7d44"), divergence("m", kind="missing", fields={}))
    publish(service, group(examples=["5d1f0c2e1a9b7d44"]), group("missing", 4))
    expect(page.locator(".row")).to_have_count(2)
    groups(page).first.get_by_role("link", name="Show its rows").click()
    expect(page).to_have_url(re.compile(rf"#/{NAME}\?kind=changed&field=campaign_id$"))
    expect(page.locator(".row")).to_have_count(1)
    expect(page.get_by_role("heading", name="Divergences")).to_be_focused()
    groups(page).first.get_by_role("link", name="Example 5d1f0c2e").click()
    expect(verdict(page)).to_have_text("changed same record, different values")


def test_the_rows_inside_a_group_are_its_own_and_stay_open_while_it_grows(
    service: Served, page: Page
) -> None:
    both = Sides[Any](reference=1, candidate=2)
    service.publish(*[divergence(f"d-{number}") for number in range(7)])
    service.publish(divergence("two", fields={"campaign_id": both, "price": both}))
    publish(service, group(), group(count=12, fields=["campaign_id", "price"]))
    first = groups(page).first
    first.get_by_text("Shares and newest rows").click()
    expect(first.locator(".row")).to_have_count(5)
    expect(first.locator(".row").first).to_have_attribute("data-id", "d-6")
    first.evaluate("item => (item.same = true)")
    service.publish(divergence("d-7"))
    publish(service, group(count=7900), group(count=12, fields=["campaign_id", "price"]), second=2)
    expect(first.get_by_role("heading").first).to_contain_text("7,900 changed")
    expect(first.locator(".row").first).to_have_attribute("data-id", "d-7")
    assert first.evaluate("item => item.same") is True


def test_a_group_of_which_no_record_is_kept_says_so(service: Served, page: Page) -> None:
    publish(service, group("missing", 3))
    groups(page).get_by_text("Shares and newest rows").click()
    expect(groups(page)).to_contain_text("No record of this group is among the newest 1,000")


def test_smaller_groups_and_those_without_a_group_are_behind_a_click(service: Served, page: Page) -> None:
    others = Group(id="others", kind="others", count=7, text="7 others, which are in no group of their own.")
    publish(service, *[group(count=100 - number, fields=[f"f{number}"]) for number in range(6)], others)
    expect(groups(page).last).to_be_hidden()
    page.get_by_text("3 smaller groups").click()
    expect(groups(page)).to_have_count(7)
    expect(groups(page).last).to_contain_text("7 others, which are in no group of their own.")
    expect(groups(page).last.get_by_role("link")).to_have_count(0)


def test_all_that_is_looked_at_first_is_on_two_screens(service: Served, page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    service.publish(
        *[divergence(f"d-{number:02}") for number in range(30)], divergence("p", provisional=True)
    )
    seen = coverage().model_copy(update={"events": 10_000, "keys": 210, "notes": ["`currency` never varied"]})
    causes: list[dict[str, Any]] = [{}, {"cause": WHY}, {"cause": WHY}, {}, {}]
    publish(
        service,
        *[group(count=9 - place, fields=[f"f{place}"], **more) for place, more in enumerate(causes)],
        coverage=seen,
    )
    page.reload()
    expect(row(page, "d-29")).to_be_visible()
    expect(page.get_by_role("region", name="Coverage")).to_be_visible()
    charts = page.get_by_role("region", name="Charts").bounding_box()
    assert charts is not None
    assert charts["y"] < 1600
