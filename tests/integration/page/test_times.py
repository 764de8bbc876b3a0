"""Times on the page: absolute or relative, in UTC or as the clock of the machine, and always both."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import watched
from tests.support.server import Served
from tests.support.statuses import NAME, diverged, divergence, later, now
from tests.support.webpage import at, part, row, verdict

pytestmark = pytest.mark.requires_chromium
BEFORE = timedelta(days=2, hours=3)


@pytest.fixture
def india(browser: Browser, service: Served) -> Iterator[Page]:
    """The page of a comparison with an old divergence, where clocks are 5 h 30 min ahead of UTC."""
    service.publish(divergence("d", first_seen=now() - BEFORE), diverged(at=later(1)))
    with watched(browser, timezone_id="Asia/Kolkata") as watch:
        watch.page.goto(at(service))
        expect(verdict(watch.page)).to_have_text("≠DIVERGED")
        yield watch.page
        assert watch.errors == []


def seen(page: Page) -> Locator:
    """When the divergence was first seen."""
    return row(page, "d").get_by_role("time")


def moment(page: Page) -> datetime:
    """The same as the service tells it, in UTC."""
    text = seen(page).get_attribute("datetime")
    assert text is not None
    return datetime.fromisoformat(text)


def test_a_time_is_absolute_in_utc_until_relative_ones_and_the_local_zone_are_chosen_once_for_every_view(
    india: Page, service: Served
) -> None:
    expect(seen(india)).to_have_text(f"{moment(india):%Y-%m-%d %H:%M:%S} UTC")
    expect(seen(india)).to_have_attribute("title", "2 d 3 h ago")
    india.get_by_label("Times").select_option("relative")
    expect(seen(india)).to_have_text("2 d 3 h ago")
    india.get_by_label("Zone").select_option("local")
    local = f"{moment(india) + timedelta(hours=5, minutes=30):%Y-%m-%d %H:%M:%S} GMT+5:30"
    expect(seen(india)).to_have_attribute("title", local)
    expect(part(india, "since").first).to_contain_text("GMT+5:30, for")
    india.reload()
    expect(seen(india)).to_have_text("2 d 3 h ago")
    india.goto(at(service, ""))
    newest = part(india.locator(".comparison"), "newest").get_by_role("time")
    expect(newest).to_have_text("2 d 3 h ago")
    india.get_by_label("Times").select_option("absolute")
    expect(newest).to_have_text(local)
    expect(newest).to_have_attribute("title", "2 d 3 h ago")


def test_a_chart_has_the_hours_of_the_zone_that_is_chosen(india: Page) -> None:
    chart = india.locator("#unmatched")
    expect(india.locator("#timeline")).to_be_visible()
    india.keyboard.press("g")
    india.keyboard.press("r")
    chart.locator(".u-over").hover()
    expect(part(chart, "moment")).to_contain_text(" UTC, paused")
    india.mouse.move(1, 1)
    india.get_by_label("Zone").select_option("local")
    chart.locator(".u-over").hover()
    expect(part(chart, "moment")).to_contain_text(" GMT+5:30, paused")


def test_a_browser_that_keeps_nothing_keeps_the_choice_as_long_as_the_page(
    browser: Browser, service: Served
) -> None:
    service.publish(divergence("d", first_seen=now() - BEFORE))
    with watched(browser) as watch:
        watch.page.add_init_script(
            "Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }})"
        )
        watch.page.goto(at(service))
        watch.page.get_by_label("Times").select_option("relative")
        expect(seen(watch.page)).to_have_text("2 d 3 h ago")
        watch.page.goto(at(service, f"{NAME}?kind=changed"))
        expect(seen(watch.page)).to_have_text("2 d 3 h ago")
        assert watch.errors == []
