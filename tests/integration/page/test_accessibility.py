"""The page for everybody: by keyboard alone, for a screen reader, light and dark, on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Watched, watched
from tests.support.marks import one_a_change
from tests.support.server import Served, served
from tests.support.statuses import NAME, coverage, diverged, divergence, later, now, status, unmatched
from tests.support.webpage import at, reordered, show_keys, verdict, violations
from twinstream.adapters.credentials import TokenFile
from twinstream.api.state.board import Board
from twinstream.status.comparison import KindCoverage, UnmatchedSample

pytestmark = pytest.mark.requires_chromium

WIDTHS = {320: None, 390: "phone", 820: None, 1280: "desk", 1600: None}
"""Of windows; those with a name are looked at more closely."""
Theme = Literal["light", "dark"]
Themes = dict[str, Theme]
THEMES: list[Themes] = [{"phone": "light", "desk": "dark"}, {"phone": "dark", "desk": "light"}]
in_themes = pytest.mark.parametrize("themes", one_a_change(THEMES), ids=["light-phone", "dark-phone"])


OPEN = "folds => folds.forEach((fold) => (fold.open = true))"


@pytest.fixture
def seen(browser: Browser, service: Served) -> Iterator[Watched]:
    """The page with all that it can show."""
    fields = KindCoverage(sampled=60, varied=["ad_id"], constant=["currency"])
    seen = {"events": 10_000, "keys": 210, "kinds": {"event": fields}, "notes": ["`currency` never varied"]}
    lacking = coverage(210, ("210 of 1,000 required pairs",)).model_copy(update=seen)
    known = {"explained_by_rule": {"PRICE-17": 1200}}
    service.publish(
        divergence("c"),
        reordered("r"),
        divergence("p", provisional=True),
        diverged(at=later(1)),
        status("b-pending", at=now(), verdict="PENDING", reason="Not enough.", coverage=lacking),
        status("c-unsure", at=now(), verdict="INCONCLUSIVE", reason="Overdue.", suspicions=1, **known),
        UnmatchedSample(comparison="c-unsure", events=(unmatched(8, overdue=True),)),
    )
    with watched(browser, reduced_motion="reduce") as watch:
        yield watch
        assert watch.errors == []


def sound(watch: Watched, where: str, themes: Themes, least: int = 0) -> None:
    """From `least` on nothing is wider than the window, and in these themes axe finds nothing wrong."""
    for width, device in WIDTHS.items():
        if width < least:
            continue
        watch.page.set_viewport_size({"width": width, "height": 800})
        if device:
            watch.page.emulate_media(color_scheme=themes[device])
            watch.page.evaluate("new Promise(requestAnimationFrame)")  # By then the page has heard of it.
            assert violations(watch.page) == [], (where, device, themes[device])
        watch.page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.timeout(180)
@in_themes
def test_overview_comparisons_divergences_and_the_form_that_begins_anew_are_for_everybody(
    seen: Watched, service: Served, themes: Themes
) -> None:
    page = seen.page
    page.goto(at(service, ""))
    expect(page.locator(".comparison")).to_have_count(3)
    sound(seen, "overview", themes)
    for name in (NAME, "b-pending", "c-unsure"):
        page.goto(at(service, name))
        expect(page.locator("#comparison")).to_be_visible()
        page.locator("section:not(#declared) details").evaluate_all(OPEN)
        expect(page.locator("#waits canvas")).to_be_visible()
        sound(seen, name, themes)
    for identifier in ("c", "r", "p"):
        page.goto(at(service, f"{NAME}/{identifier}"))
        expect(page.locator(".picture path").first).to_be_attached()
        sound(seen, identifier, themes)
    page.goto(at(service))
    page.get_by_role("button", name="Reset …").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    sound(seen, "form", themes)


@in_themes
def test_the_rows_of_many_comparisons_and_the_list_of_keys_are_for_everybody(
    seen: Watched, service: Served, themes: Themes
) -> None:
    service.publish(*[status(f"more-{number}", at=now()) for number in range(12)])
    seen.page.goto(at(service, ""))
    expect(seen.page.locator(".dense .comparison")).to_have_count(15)
    sound(seen, "rows", themes)
    show_keys(seen.page)
    expect(seen.page.get_by_role("dialog")).to_be_visible()
    sound(seen, "keys", themes)


@in_themes
def test_the_page_that_asks_for_a_token_is_for_everybody(
    browser: Browser, tokens: Path, themes: Themes
) -> None:
    with (
        served(Board(), keys=TokenFile(str(tokens))) as service,
        watched(browser, reduced_motion="reduce") as watch,
    ):
        watch.page.goto(service.url)
        expect(watch.page.get_by_label("Token")).to_be_focused()
        sound(watch, "login", themes)
        assert watch.errors == []


@pytest.mark.nightly
@in_themes
def test_the_description_of_the_api_is_for_everybody(seen: Watched, service: Served, themes: Themes) -> None:
    seen.page.goto(f"{service.url}/docs")
    seen.page.get_by_text("/v1/comparisons/{name}/reset").click()
    expect(seen.page.get_by_text("Request body")).to_be_visible()
    sound(seen, "docs", themes, least=390)  # The viewer asks for 346 pixels.


def test_a_lost_connection_is_told_to_everybody(browser: Browser, service: Served) -> None:
    with watched(browser) as watch:
        watch.page.goto(at(service))
        expect(verdict(watch.page)).to_have_text("✓EQUIVALENT")
        service.stop()
        expect(watch.page.get_by_role("alert")).to_contain_text("Connection lost")
        assert violations(watch.page) == []


def test_the_keyboard_alone_leads_past_the_heading_to_the_records_and_back(
    service: Served, page: Page
) -> None:
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    expect(page).to_have_url(re.compile(f"#/{NAME}$"))
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    service.publish(divergence("c"), diverged(at=later(1)))
    page.goto(at(service, ""))
    expect(page.locator(".comparison")).to_have_count(1)
    press_until(page, NAME)
    expect(verdict(page)).to_have_text("≠DIVERGED")
    press_until(page, "changed campaign_id")
    expect(verdict(page)).to_have_text("changed same record, different values")
    expect(verdict(page)).to_be_focused()
    press_until(page, NAME)
    expect(verdict(page)).to_have_text("≠DIVERGED")


def press_until(page: Page, text: str, presses: int = 40) -> None:
    """Tab until a link that begins with this text has the focus, then Enter."""
    expect(page.get_by_role("link", name=re.compile(f"^{text}")).last).to_be_visible()
    for _ in range(presses):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()").startswith(text):
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"{text!r} is not reached within {presses} presses of Tab")
