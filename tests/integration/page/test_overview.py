"""All comparisons on the page: the worst first, and from there in two clicks to the records that differ."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Locator, Page, Route, expect

from tests.support.browser import watched
from tests.support.server import Served, served
from tests.support.statuses import NAME, counts, diverged, divergence, later, now, status
from tests.support.waiting import eventually
from tests.support.webpage import at, part, row, verdict
from twinstream.api.state.board import Board

pytestmark = pytest.mark.requires_chromium


@pytest.fixture
def overview(service: Served, page: Page) -> Page:
    """Three comparisons, the worst of which came last."""
    lacking: Any = {"verdict": "PENDING", "reason": "Not enough yet."}
    service.publish(status("b-pending", at=now(), **lacking), diverged("c-diverged", at=now()))
    page.goto(at(service, ""))
    expect(cards(page)).to_have_count(3)
    return page


def cards(page: Page) -> Locator:
    return page.locator(".comparison")


def names(page: Page) -> Locator:
    return cards(page).get_by_role("heading")


def test_the_worst_comparison_comes_first_with_what_a_person_asks_of_it(overview: Page) -> None:
    expect(names(overview)).to_have_text(["c-diverged", "b-pending", NAME])
    worst = cards(overview).first
    expect(worst).to_contain_text("DIVERGED")
    expect(worst).to_contain_text("ads.candidate 1.9.0 against ads.reference 1.8.2")
    expect(part(worst, "gate")).to_have_text("fail")
    expect(part(worst, "unmatched")).to_have_text("16")
    expect(overview).to_have_title("≠ 1 DIVERGED · Twinstream")


def test_two_clicks_lead_to_the_records_and_back(service: Served, overview: Page) -> None:
    service.publish(divergence("5d1f0c", name="c-diverged"))
    names(overview).get_by_role("link", name="c-diverged").click()
    expect(verdict(overview)).to_have_text("≠DIVERGED")
    expect(verdict(overview)).to_be_focused()
    row(overview, "5d1f0c").get_by_role("link", name="changed").click()
    expect(verdict(overview)).to_have_text("changed same thing, other content")
    expect(overview.locator("mark")).to_have_text(['"c-7"', '"c-8"'])
    expect(overview).to_have_url(re.compile("#/c-diverged/5d1f0c$"))
    overview.go_back()
    expect(verdict(overview)).to_have_text("≠DIVERGED")
    overview.get_by_role("navigation", name="Where you are").get_by_role("link", name="Comparisons").click()
    expect(names(overview)).to_have_count(3)


def test_a_divergence_stays_where_the_list_was_asked_for_twice_before_it_came(
    service: Served, overview: Page
) -> None:
    held: list[tuple[Route, APIResponse]] = []
    overview.route("**/c-diverged/divergences?*", lambda route: held.append((route, route.fetch())))
    for asked in (1, 2):
        overview.goto(at(service))
        overview.goto(at(service, ""))
        what = f"the list is asked for {asked} times"
        eventually(lambda n=asked: overview.wait_for_timeout(20) or len(held) >= n, what=what)  # type: ignore[misc]
    newest = part(cards(overview).first, "newest").get_by_role("link", name="changed")
    service.publish(divergence("came", name="c-diverged"))
    expect(newest).to_have_count(1)
    for route, answer in held:
        with overview.expect_response("**/c-diverged/divergences?*"):
            route.fulfill(response=answer)
    service.publish(divergence("next", name="c-diverged"))
    expect(newest).to_have_count(2)


def test_the_newest_divergences_are_one_click_away_also_those_from_before_the_page_was_opened(
    service: Served, overview: Page
) -> None:
    service.publish(divergence("5d1f0c", name="c-diverged"))
    overview.reload()
    cards(overview).first.get_by_role("link", name="changed").click()
    expect(verdict(overview)).to_have_text("changed same thing, other content")


def test_only_what_is_for_good_is_linked_and_the_rest_is_counted(service: Served, overview: Page) -> None:
    service.publish(diverged("a-new", at=now(), closed_divergences=counts()))
    service.publish(divergence("p", name="a-new", provisional=True))
    worst = cards(overview).first
    expect(worst).to_contain_text("1 divergence, still being explained")
    assert part(worst, "newest").get_by_role("link").count() == 0
    service.publish(divergence("p", name="a-new"))
    expect(part(worst, "newest").get_by_role("link", name="changed")).to_be_visible()


def test_one_verdict_can_be_chosen_and_stays_after_a_reload(overview: Page) -> None:
    chips = overview.get_by_role("navigation", name="Show only one verdict")
    chips.get_by_role("link", name="pending 1").click()
    expect(names(overview)).to_have_text(["b-pending"])
    overview.reload()
    expect(names(overview)).to_have_text(["b-pending"])
    chips.get_by_role("link", name="pending 1").click()
    expect(names(overview)).to_have_count(3)


def test_many_comparisons_can_be_searched_and_the_search_is_in_the_address(
    service: Served, overview: Page
) -> None:
    service.publish(*[status(f"more-{number}", at=now()) for number in range(5)])
    search = overview.get_by_role("searchbox")
    search.fill("more-3")
    expect(names(overview)).to_have_text(["more-3"])
    overview.reload()
    expect(search).to_have_value("more-3")
    expect(names(overview)).to_have_text(["more-3"])
    search.fill("nobody")
    expect(overview.get_by_text("No comparison is as asked for.")).to_be_visible()


def test_a_comparison_that_turns_bad_comes_first(service: Served, overview: Page) -> None:
    service.publish(diverged("b-pending", at=later(1)))
    expect(names(overview)).to_have_text(["b-pending", "c-diverged", NAME])


def test_a_service_without_comparisons_says_so_until_the_first_comes(browser: Browser) -> None:
    with served(Board()) as service, watched(browser) as watch:
        watch.page.goto(service.url)
        expect(watch.page.get_by_text("There is no comparison yet.")).to_be_visible()
        service.publish(status(at=now()))
        expect(names(watch.page)).to_have_text([NAME])
        expect(watch.page.get_by_text("There is no comparison yet.")).to_be_hidden()
        assert watch.errors == []
