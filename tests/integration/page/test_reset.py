"""To reset a comparison from the page: for those who may, with a reason, and never by accident."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Watched, watched
from tests.support.server import OPERATOR, READER, Matcher, served
from tests.support.statuses import NAME, diverged, now
from tests.support.webpage import at, verdict
from twinstream.adapters.credentials import TokenFile
from twinstream.api.state.board import Board
from twinstream.status.comparison import ResetRefused

pytestmark = pytest.mark.requires_chromium


@contextmanager
def diverging(browser: Browser, matcher: Matcher, **more: Any) -> Iterator[Watched]:
    """The page of a comparison that has diverged, as a link leads there; `more` as in `create_app`."""
    with served(Board(stale_after_seconds=60), reset=matcher, **more) as service, watched(browser) as watch:
        service.publish(diverged(at=now()))
        watch.page.goto(at(service))
        yield watch


@pytest.fixture
def dialog(browser: Browser, matcher: Matcher) -> Iterator[Page]:
    with diverging(browser, matcher) as watch:
        # The last of the page to come: what a click is aimed at does not move any more.
        expect(watch.page.get_by_text("No records of these are kept")).to_be_visible()
        watch.page.get_by_role("button", name="Reset …").click()
        expect(watch.page.get_by_role("dialog", name=f"Reset {NAME}?")).to_be_visible()
        yield watch.page
        assert [error for error in watch.errors if "409" not in error] == []


def fill(page: Page, confirmation: str = NAME) -> None:
    page.get_by_label("Why").fill("1.9.1 deployed")
    page.get_by_label("Who you are").fill("ann")
    page.get_by_label("Start", exact=True).select_option("now")
    page.get_by_label(f"Type {NAME} to confirm").fill(confirmation)
    page.get_by_role("button", name="Reset", exact=True).click()


def test_it_says_what_is_forgotten_and_asks_the_matcher(dialog: Page, matcher: Matcher) -> None:
    expect(dialog.get_by_role("dialog")).to_contain_text("It is DIVERGED: 5,000 pairs matched, 1 divergence.")
    fill(dialog)
    expect(dialog.get_by_role("dialog")).to_be_hidden()
    (asked,) = matcher.asked
    assert (asked.by, asked.reason, asked.start) == ("ann", "1.9.1 deployed", "now")


def test_without_a_reason_or_the_right_name_or_with_escape_nothing_happens(
    dialog: Page, matcher: Matcher
) -> None:
    dialog.get_by_role("button", name="Reset", exact=True).click()
    expect(dialog.get_by_label("Why")).to_be_focused()
    fill(dialog, "ads")
    told = f"Nothing has changed. Type {NAME} to confirm."
    expect(dialog.get_by_role("alert").last).to_have_text(told)
    expect(dialog.get_by_label(f"Type {NAME} to confirm")).to_be_focused()
    dialog.keyboard.press("Escape")
    expect(dialog.get_by_role("dialog")).to_be_hidden()
    assert matcher.asked == []


def test_a_refusal_is_shown_and_what_was_written_stays(dialog: Page, matcher: Matcher) -> None:
    matcher.refuses = ResetRefused(id="", reason="Redis cannot be reached")
    fill(dialog)
    expect(dialog.get_by_role("alert").last).to_contain_text("nothing has changed: Redis cannot be reached.")
    expect(dialog.get_by_label("Why")).to_have_value("1.9.1 deployed")


@pytest.fixture
def signing(browser: Browser, tokens: Path, matcher: Matcher) -> Iterator[Watched]:
    """The page on which a token is given."""
    with diverging(browser, matcher, keys=TokenFile(str(tokens))) as watch:
        yield watch
        assert watch.errors == []


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    expect(verdict(page)).to_have_text("≠DIVERGED")
    expect(page.locator("#session")).to_be_visible()


def test_who_may_only_look_has_no_button_at_all(signing: Watched) -> None:
    sign_in(signing.page, READER)
    expect(signing.page.locator("#session")).to_contain_text("viewer, who may only look")
    assert signing.page.locator("dialog, .danger").count() == 0


def test_who_may_operate_is_not_asked_for_a_name_which_the_token_has(
    signing: Watched, matcher: Matcher
) -> None:
    page = signing.page
    sign_in(page, OPERATOR)
    page.get_by_role("button", name="Reset …").click()
    assert page.get_by_label("Who you are").count() == 0
    page.get_by_label("Why").fill("gap")
    page.get_by_label(f"Type {NAME} to confirm").fill(NAME)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_hidden()
    (asked,) = matcher.asked
    assert (asked.by, asked.start) == ("anna", None)
