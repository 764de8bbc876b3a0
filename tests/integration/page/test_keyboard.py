"""The keys of the page: each leads where the list of them says, and none is taken from who types."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import watched
from tests.support.server import Served
from tests.support.statuses import NAME, diverged, divergence, later, now, status
from tests.support.webpage import at, part, row, show_keys, verdict

pytestmark = pytest.mark.requires_chromium
FOCUS = "getComputedStyle(document.activeElement).outlineStyle"


@pytest.fixture
def overview(service: Served, page: Page) -> Page:
    """Eight comparisons, the first of which has three divergences."""
    service.publish(diverged(at=later(1)), *[divergence(f"d-{number}") for number in range(3)])
    service.publish(*[status(f"c-{number}", at=now()) for number in range(7)])
    page.goto(at(service, ""))
    expect(page.locator(".comparison")).to_have_count(8)
    return page


def link(page: Page, name: str) -> Locator:
    return page.get_by_role("link", name=name, exact=True)


def test_j_and_k_go_through_the_rows_enter_opens_one_and_u_leads_up_again(overview: Page) -> None:
    keys = overview.keyboard
    keys.press("j")
    expect(link(overview, NAME)).to_be_focused()
    assert overview.evaluate(FOCUS) == "solid"
    keys.press("j")
    expect(link(overview, "c-0")).to_be_focused()
    keys.press("k")
    keys.press("k")  # There is none before the first.
    expect(link(overview, NAME)).to_be_focused()
    keys.press("Enter")
    expect(verdict(overview)).to_have_text("≠DIVERGED")
    expect(row(overview, "d-0")).to_be_visible()  # The stream may bring the newest before the list has come.
    for identifier in ("d-2", "d-1"):
        keys.press("j")
        expect(row(overview, identifier).get_by_role("link").first).to_be_focused()
    for key, identifier in (("Enter", "d-1"), ("j", "d-0"), ("k", "d-1")):
        keys.press(key)
        expect(part(overview, "id")).to_have_text(identifier)
    keys.press("u")
    expect(verdict(overview)).to_have_text("≠DIVERGED")  # The address changes before the page does.
    expect(overview).to_have_url(re.compile(f"#/{NAME}$"))
    keys.press("u")
    expect(overview).to_have_url(re.compile("#/$"))


def test_a_row_keeps_the_focus_where_another_comes_before_it_and_where_more_is_known_of_it(
    service: Served, overview: Page
) -> None:
    overview.goto(at(service))
    expect(row(overview, "d-0")).to_be_visible()
    focused = row(overview, "d-2").get_by_role("link").first
    overview.keyboard.press("j")
    expect(focused).to_be_focused()
    service.publish(divergence("d-3"))
    expect(row(overview, "d-3")).to_be_visible()
    expect(focused).to_be_focused()
    service.publish(divergence("d-2", late=4.0))
    expect(row(overview, "d-2")).to_contain_text("Late:")
    expect(focused).to_be_focused()
    overview.keyboard.press("j")
    expect(row(overview, "d-1").get_by_role("link").first).to_be_focused()


def test_a_slash_searches_and_letters_that_are_typed_are_no_keys(overview: Page) -> None:
    overview.keyboard.press("/")
    search = overview.get_by_role("searchbox")
    expect(search).to_be_focused()
    overview.keyboard.type("c-ugj?")
    expect(search).to_have_value("c-ugj?")
    expect(overview.get_by_role("dialog")).to_be_hidden()
    search.fill("c-6")
    overview.keyboard.press("Enter")
    expect(link(overview, "c-6")).to_be_focused()
    overview.keyboard.press("Control+u")
    overview.keyboard.press("Enter")
    expect(verdict(overview)).to_have_text("✓EQUIVALENT")
    overview.keyboard.press("/")
    expect(overview.get_by_label("Scope, field")).to_be_focused()
    overview.keyboard.press("u")
    expect(overview.get_by_label("Scope, field")).to_have_value("u")


def test_g_and_a_letter_lead_to_a_part(service: Served, overview: Page) -> None:
    overview.goto(at(service))
    expect(verdict(overview)).to_have_text("≠DIVERGED")
    expect(overview.locator("#timeline")).to_be_visible()
    for letter, name in (("t", "#timeline"), ("d", "#divergences"), ("r", "#rate")):
        overview.keyboard.press("g")
        overview.keyboard.press(letter)
        expect(overview.locator(name)).to_be_focused()
        expect(overview.locator(name)).to_be_in_viewport()
    overview.keyboard.press("g")
    overview.keyboard.press("o")
    expect(overview).to_have_url(re.compile("#/$"))


def test_a_question_mark_lists_the_keys_which_can_be_switched_off_for_good(
    browser: Browser, service: Served
) -> None:
    with watched(browser) as watch:
        page = watch.page
        page.goto(at(service))
        expect(verdict(page)).to_have_text("✓EQUIVALENT")
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
        expect(dialog.get_by_role("term")).to_contain_text(["j", "k", "Enter", "u", "/", "go", "gg", "?"])
        page.get_by_label("Use these shortcuts").uncheck()
        page.keyboard.press("Escape")
        page.reload()
        expect(verdict(page)).to_have_text("✓EQUIVALENT")
        page.keyboard.press("u")
        page.keyboard.press("?")
        expect(dialog).to_be_hidden()
        expect(verdict(page)).to_have_text("✓EQUIVALENT")
        show_keys(page)
        page.get_by_label("Use these shortcuts").check()
        page.get_by_role("button", name="Close").click()
        page.keyboard.press("u")
        expect(page).to_have_url(re.compile("#/$"))
        assert watch.errors == []
