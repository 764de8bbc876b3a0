"""The page in a real browser, over the real server: what a person sees, and that it is never an old green."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import Watched, chromium, watched
from tests.support.server import Served, served
from tests.support.statuses import NAME, counts, coverage, diverged, divergence, expectation, status
from twinstream.api.board import Board
from twinstream.status import Hole, Position, Sides, Undecodable

pytestmark = pytest.mark.requires_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def service() -> Iterator[Served]:
    with served(Board(stale_after_seconds=60)) as service:
        service.call(lambda: service.board.expect(expectation()))
        service.publish(status(at=now()))
        yield service


@pytest.fixture
def watch(browser: Browser, service: Served) -> Iterator[Watched]:
    """The page, opened; fails afterwards if it had an error or asked another host than the service."""
    with watched(browser, viewport={"width": 1280, "height": 900}) as watch:
        watch.page.goto(service.url)
        yield watch
        assert watch.errors == []
        assert watch.hosts == {f"127.0.0.1:{service.port}"}


@pytest.fixture
def page(watch: Watched) -> Page:
    return watch.page


def now() -> datetime:
    return datetime.now(UTC)


def later(seconds: float) -> datetime:
    return now() + timedelta(seconds=seconds)


def verdict(page: Page) -> Locator:
    return page.get_by_role("heading", level=1)


def part(page: Page, name: str) -> Locator:
    return page.locator(f'[data-slot="{name}"]')


def test_an_equivalent_comparison_shows_its_verdict_and_figures(page: Page) -> None:
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    expect(part(page, "answer")).to_have_text("pass")
    expect(part(page, "health")).to_have_text("ok")
    expect(part(page, "matched")).to_have_text("5,000")
    expect(part(page, "reference-note")).to_have_text("lag 7 records · 12 unmatched")
    expect(page.get_by_role("region", name="Divergences")).to_contain_text("No difference has been found.")
    expect(page.locator("#unmatched-chart canvas")).to_be_visible()
    expect(page).to_have_title(f"✓ EQUIVALENT · {NAME}")


def test_a_divergence_appears_with_its_records_without_a_reload(service: Served, page: Page) -> None:
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    page.evaluate("window.sameDocument = true")
    service.publish(divergence("5d1f0c"), diverged(at=later(1)))
    expect(verdict(page)).to_have_text("≠DIVERGED")
    expect(part(page, "answer")).to_have_text("fail")
    card = page.locator('.card[data-id="5d1f0c"]')
    expect(card.locator("mark")).to_have_text(['"c-7"', '"c-8"'])
    expect(card).to_contain_text("ads.candidate 0 : 5003")
    expect(card).to_contain_text("campaign_id is 'c-7' in the reference")
    assert page.evaluate("window.sameDocument") is True


def test_divergences_from_before_the_page_was_opened_are_listed(service: Served, page: Page) -> None:
    service.publish(divergence("old"), diverged(at=later(1)))
    page.reload()
    expect(page.locator('.card[data-id="old"]')).to_be_visible()


def test_a_missing_event_says_that_the_other_side_has_none(service: Served, page: Page) -> None:
    positions = Sides[Position | None](
        reference=Position(topic="ads.reference", partition=0, offset=8), candidate=None
    )
    service.publish(divergence("m", kind="missing", candidate=None, fields={}, positions=positions))
    head = page.locator(".card thead")
    expect(head).to_contain_text("Candidate no such event")
    expect(head).to_contain_text("ads.reference 0 : 8")


def test_values_are_shown_as_written_and_never_as_markup(service: Served, page: Page) -> None:
    reference = {"id": 9007199254740993, "name": "<img src=x onerror=alert(1)>", "price": 1.0}
    candidate = {**reference, "id": 9007199254740992}
    fields = {"id": Sides[Any](reference=reference["id"], candidate=candidate["id"])}
    service.publish(
        divergence("v", reference=reference, candidate=candidate, fields=fields, scope={"id": "<b>"})
    )
    card = page.locator(".card")
    expect(card.locator("mark")).to_have_text(["9007199254740993", "9007199254740992"])
    expect(card.locator("tbody")).to_contain_text('"<img src=x onerror=alert(1)>"')
    expect(card.locator("tbody")).to_contain_text("1.0")
    assert card.locator("img, b").count() == 0


def test_a_field_that_differs_but_is_not_compared_is_told_apart(service: Served, page: Page) -> None:
    report = divergence("u")
    reference = {**report.reference, "processed_at": 1}
    candidate = {**report.candidate, "processed_at": 2}
    service.publish(divergence("u", reference=reference, candidate=candidate))
    expect(page.locator(".uncompared")).to_contain_text("processed_at differs, and is not compared")
    expect(page.locator(".card mark")).to_have_count(2)


def test_what_a_person_has_unfolded_stays_while_statuses_come(service: Served, page: Page) -> None:
    service.publish(divergence("w"))
    page.locator(".witness summary").click()
    service.publish(diverged(at=later(1)), divergence("another", kind="missing"))
    expect(verdict(page)).to_have_text("≠DIVERGED")
    expect(page.locator('.card[data-id="w"] .witness code').first).to_be_visible()


def test_one_kind_of_divergence_can_be_chosen(service: Served, page: Page) -> None:
    service.publish(divergence("c"), divergence("m", kind="missing"))
    service.publish(diverged(at=later(1), divergences=counts(changed=1, missing=1)))
    page.get_by_role("button", name="missing 1").click()
    expect(page.locator(".card")).to_have_count(1)
    expect(page.locator(".card .kind")).to_have_text("missing")
    page.get_by_role("button", name="missing 1").click()
    expect(page.locator(".card")).to_have_count(2)


def test_more_divergences_than_fit_are_shown_on_demand(service: Served, page: Page) -> None:
    service.publish(*[divergence(f"d-{number}") for number in range(25)])
    page.reload()
    expect(page.locator(".card")).to_have_count(20)
    page.get_by_role("button", name="Show older ones").click()
    expect(page.locator(".card")).to_have_count(25)
    expect(page.get_by_role("button", name="Show older ones")).to_be_hidden()


def test_a_pending_comparison_shows_what_it_lacks(service: Served, page: Page) -> None:
    lacking = coverage(210, ("790 more matched pairs are needed.",))
    service.publish(
        status(at=later(1), verdict="PENDING", reason="Evidence is incomplete.", coverage=lacking)
    )
    expect(verdict(page)).to_have_text("…PENDING")
    evidence = page.get_by_role("region", name="What is missing for a verdict")
    expect(evidence).to_contain_text("210 of 1,000")
    expect(evidence).to_contain_text("790 more matched pairs are needed.")


def test_what_was_not_checked_is_named(service: Served, page: Page) -> None:
    at = Position(topic="ads.candidate", partition=0, offset=77)
    hole = Hole(
        reason="Records were deleted before they were read.", side="candidate", position=at, seen_at=now()
    )
    bad = Undecodable(side="candidate", position=at, reason="Not JSON.")
    service.publish(
        status(at=later(1), verdict="INCONCLUSIVE", reason="A hole.", holes=[hole], undecodable=[bad])
    )
    unchecked = page.get_by_role("region", name="Not checked")
    expect(unchecked).to_contain_text(
        "Records were deleted before they were read. candidate · ads.candidate 0 : 77"
    )
    expect(unchecked).to_contain_text("Not JSON.")


def test_a_comparison_whose_matcher_is_gone_is_not_shown_as_live(service: Served, page: Page) -> None:
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    service.call(lambda: service.board.lost(NAME, "its matcher exited with code 1"))
    expect(verdict(page)).to_have_text("‖NOT LIVE")
    expect(part(page, "since")).to_contain_text("The last verdict, EQUIVALENT, is from")
    expect(part(page, "answer")).to_have_text("undecided")
    expect(part(page, "gate-reason")).to_contain_text("Its matcher exited with code 1")


def test_a_lost_connection_shows_no_old_verdict_and_comes_back(browser: Browser) -> None:
    with watched(browser) as watch:
        page = watch.page
        with served(Board(stale_after_seconds=60)) as service:
            service.publish(status(at=now()))
            page.goto(service.url)
            expect(verdict(page)).to_have_text("✓EQUIVALENT")
        expect(page.get_by_role("alert")).to_contain_text("Connection lost at")
        expect(verdict(page)).to_have_text("‖NOT LIVE")
        expect(part(page, "answer")).to_have_text("unknown")
        with served(Board(stale_after_seconds=60), port=service.port) as again:
            again.publish(diverged(at=now()), divergence("while-away"))
            expect(verdict(page)).to_have_text("≠DIVERGED")
            expect(page.get_by_role("alert")).to_be_hidden()
            expect(page.locator('.card[data-id="while-away"]')).to_be_visible()


def test_several_comparisons_can_be_switched_between(service: Served, page: Page) -> None:
    expect(page.get_by_role("navigation", name="Comparisons")).to_be_hidden()
    service.publish(diverged("windows-canary", at=now()))
    page.get_by_role("link", name="windows-canary : DIVERGED").click()
    expect(verdict(page)).to_have_text("≠DIVERGED")
    page.get_by_role("link", name=f"{NAME} : EQUIVALENT").click()
    expect(verdict(page)).to_have_text("✓EQUIVALENT")


def test_the_charts_are_described_for_those_who_do_not_see_them(service: Served, page: Page) -> None:
    service.publish(status(at=later(1), unmatched=Sides[int](reference=31, candidate=2)))
    expect(page.get_by_role("img", name="now 31 in the reference, 2 in the candidate")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 820, 1600])
def test_the_page_fits_every_width_in_light_and_dark(
    browser: Browser, service: Served, scheme: Any, width: int
) -> None:
    service.publish(divergence("d"), diverged(at=later(1)))
    with watched(browser, viewport={"width": width, "height": 800}, color_scheme=scheme) as watch:
        watch.page.goto(service.url)
        expect(watch.page.locator(".card mark").first).to_be_visible()
        expect(watch.page.locator("#unmatched-chart canvas")).to_be_visible()
        assert watch.overflow() <= 0
        assert watch.errors == []


def test_the_documentation_works_without_another_host(service: Served, watch: Watched) -> None:
    watch.page.goto(f"{service.url}/docs")
    expect(watch.page.get_by_text("/v1/comparisons/{name}/reset")).to_be_visible()


def test_a_service_without_comparisons_says_so_until_the_first_comes(browser: Browser) -> None:
    with served(Board()) as service, watched(browser) as watch:
        watch.page.goto(service.url)
        expect(watch.page.get_by_text("There is no comparison yet.")).to_be_visible()
        service.publish(status(at=now()))
        expect(verdict(watch.page)).to_have_text("✓EQUIVALENT")
        expect(watch.page.get_by_text("There is no comparison yet.")).to_be_hidden()
