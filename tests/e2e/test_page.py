"""The page of the running service, on real Kafka and Redis: two clicks from the first page to the records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import chromium, watched
from tests.support.cases import Case, Serve
from tests.support.marks import whole_product

pytestmark = whole_product(pytest.mark.requires_chromium, seconds=180)


@pytest.fixture
def case(serve: Serve) -> Case:
    return serve()


@pytest.fixture
def page(case: Case) -> Iterator[Page]:
    """The first page, when the comparison is EQUIVALENT."""
    case.passes(range(1000))
    with chromium() as browser, watched(browser, viewport={"width": 1280, "height": 900}) as watch:
        watch.page.goto(f"{case.service.address}/")
        expect(watch.page.locator(".comparison")).to_contain_text("EQUIVALENT")
        yield watch.page
        assert watch.errors == []
        assert watch.hosts == {case.service.address.removeprefix("http://")}


def follow(page: Page, kind: str) -> None:
    """Two clicks: the comparison, then a final divergence."""
    expect(page.locator(".comparison")).to_contain_text("DIVERGED", timeout=30_000)
    page.locator(".comparison").get_by_role("heading").get_by_role("link").click()
    found = page.get_by_role("list", name="Final divergences, newest first")
    found.get_by_role("link", name=kind).click()


def test_a_lost_record_is_two_clicks_from_the_first_page_which_was_never_loaded_again(
    case: Case, page: Page
) -> None:
    service, write, _ = case
    page.evaluate("window.sameDocument = true")
    write.reference(3, -1)
    write.both(range(1000, 2000))
    follow(page, "missing")
    records = page.get_by_role("region", name="The records side by side")
    expect(records.get_by_role("row", name="n -1")).to_be_visible()
    (divergence,) = service.divergences()
    offset = divergence["positions"]["reference"]["offset"]
    expect(page.locator(".picture .reference .named")).to_contain_text(f"offset {offset}")
    assert page.evaluate("window.sameDocument") is True


def test_events_that_changed_places_are_seen_to_cross_and_the_comparison_is_reset(
    case: Case, page: Page
) -> None:
    service, write, _ = case
    for number in (-1, -2):
        write.reference(3, number)
    for number in (-2, -1):
        write.candidate(3, number)
    write.both(range(1000, 2000))
    follow(page, "reordered")
    expect(page.locator(".picture path.reordered")).to_have_count(1)
    expect(page.locator(".picture path.witness")).to_have_count(1)
    page.go_back()
    page.get_by_role("button", name="Reset …").click()
    page.get_by_label("Why").fill("seen enough")
    page.get_by_label("Who you are").fill("ann")
    page.get_by_label("Start", exact=True).select_option("now")
    page.get_by_label(f"Type {service.spec.stem} to confirm").fill(service.spec.stem)
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(page.get_by_role("region", name="Resets")).to_contain_text("by ann: seen enough It was DIVERGED")
    expect(page.get_by_role("heading", level=1)).not_to_have_text("≠DIVERGED")
    expect(page.locator(".row")).to_have_count(0)
