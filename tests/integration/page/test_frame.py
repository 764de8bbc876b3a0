"""The frame of the page: where a person is, what the tab says, and that the views keep apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browser import watched
from tests.support.server import OPERATOR, READER, Served, served
from tests.support.statuses import NAME, diverged, divergence, later, now, status
from tests.support.webpage import at, row, verdict
from twinstream.adapters.credentials import TokenFile
from twinstream.api.state.board import Board

pytestmark = pytest.mark.requires_chromium
OTHER = "b-canary"


def way(page: Page, step: str) -> None:
    """One step back on the way from all comparisons to here."""
    page.get_by_role("navigation", name="Where you are").get_by_role("link", name=step).click()


def test_no_filter_nor_what_stands_in_the_form_gets_from_one_comparison_to_the_next(
    service: Served, page: Page
) -> None:
    service.publish(diverged(OTHER, at=now()), divergence("a"), divergence("b", name=OTHER))
    page.goto(at(service, f"{NAME}?kind=missing"))
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Differs in field").fill("campaign_id")
    way(page, "Comparisons")
    page.get_by_role("link", name=OTHER, exact=True).click()
    expect(row(page, "b")).to_be_visible()
    expect(page).to_have_url(re.compile(f"#/{OTHER}$"))
    page.get_by_text("Filter", exact=True).click()
    expect(page.get_by_label("Differs in field")).to_have_value("")


def test_a_filter_of_the_overview_is_none_of_a_comparison_and_the_way_back_keeps_it(
    service: Served, page: Page
) -> None:
    service.publish(divergence("a"), diverged(at=later(1)), status(OTHER, at=now()))
    page.goto(at(service, "?verdict=DIVERGED&kind=missing"))
    cards = page.locator(".comparison")
    expect(cards).to_have_count(1)
    page.get_by_role("link", name=NAME, exact=True).click()
    expect(row(page, "a")).to_be_visible()
    way(page, "Comparisons")
    expect(page).to_have_url(re.compile(r"#/\?verdict=DIVERGED$"))
    expect(cards).to_have_count(1)
    page.goto(at(service, f"{NAME}?verdict=EQUIVALENT&q=none"))
    expect(row(page, "a")).to_be_visible()
    assert page.get_by_role("link", name="Remove the filter").count() == 0


def test_the_tab_of_a_divergence_names_it_and_its_comparison(service: Served, page: Page) -> None:
    scope: dict[str, Any] = {"ad_id": 17, "ride": "a"}
    service.publish(divergence("a", scope=scope), diverged(at=later(1)))
    page.goto(at(service, f"{NAME}/a"))
    expect(page).to_have_title(f'≠ changed · ad_id 17 · ride "a" · {NAME}')
    service.publish(divergence("a", kind="missing", scope=scope))
    expect(page).to_have_title(f'≠ missing · ad_id 17 · ride "a" · {NAME}')
    way(page, NAME)
    expect(page).to_have_title(f"≠ DIVERGED · {NAME}")


def test_who_signs_in_again_is_where_the_token_was_withdrawn(browser: Browser, tokens: Path) -> None:
    board = Board(stale_after_seconds=60)
    with served(board, keys=TokenFile(str(tokens))) as service, watched(browser) as watch:
        service.publish(status(at=now()))
        watch.page.goto(at(service))
        for token in (READER, OPERATOR):
            watch.page.get_by_label("Token").fill(token)
            watch.page.keyboard.press("Enter")
            expect(verdict(watch.page)).to_have_text("✓EQUIVALENT")
            tokens.write_text(f"operate anna {OPERATOR}\n")
            service.publish(diverged(at=now()), status(at=later(1)))


def test_a_stream_that_a_proxy_keeps_back_is_told(page: Page) -> None:
    page.clock.install()
    page.route("**/v1/events", lambda _: None)
    page.reload()
    expect(page.get_by_text("connecting")).to_be_visible()
    page.clock.run_for(14_000)
    expect(page.get_by_role("alert")).to_contain_text("No events come from the service")


def test_the_page_bears_a_date_that_a_proxy_has_doubled(page: Page) -> None:
    def double(route: Route) -> None:
        answer = route.fetch()
        date = answer.headers["date"]
        route.fulfill(response=answer, headers=answer.headers | {"date": f"{date}, {date}"})

    page.route("**/v1/comparisons**", double)
    page.reload()
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    page.unroute_all(behavior="ignoreErrors")  # An answer may be on its way when the page is closed.
