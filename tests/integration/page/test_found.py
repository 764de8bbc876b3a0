"""Divergences over time on the page: a range chosen by pointer or keyboard filters the list."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.server import Served
from tests.support.statuses import START, counts, diverged, divergence, later
from twinstream.status.comparison import FoundOverTime

pytestmark = pytest.mark.requires_chromium

WIDTH = 64
BEGIN = int(START.timestamp()) // WIDTH * WIDTH
FOUND = (3, 0, 40, 7)
"""Divergences in each bin; one of each bin is published."""


def found(*each: int) -> FoundOverTime:
    return FoundOverTime(
        width_seconds=WIDTH, begins=[BEGIN + WIDTH * place for place in range(len(each))], counts=list(each)
    )


@pytest.fixture(autouse=True)
def published(service: Served, page: Page) -> None:
    """A divergence in each bin that has some, named by the bin."""
    for place in (0, 2, 3):
        seen = START + timedelta(seconds=BEGIN - START.timestamp() + WIDTH * place + 1)
        service.publish(divergence(f"bin-{place}", first_seen=seen))
    publish(service, *FOUND)
    expect(page.locator(".row")).to_have_count(3)
    expect(columns(page)).to_have_attribute("viewBox", f"0 0 {len(FOUND)} 100")


def publish(service: Served, *each: int, second: float = 1) -> None:
    total = counts(changed=sum(each) + 5)
    service.publish(
        diverged(at=later(second), divergences=total, closed_divergences=total, found=found(*each))
    )


def columns(page: Page) -> Locator:
    return page.get_by_role("region", name="Divergences over time").get_by_role("img")


def middle(page: Page, place: int) -> tuple[float, float]:
    """The middle of a bar, as a pointer finds it."""
    columns(page).scroll_into_view_if_needed()
    box = columns(page).bounding_box()
    assert box is not None
    return box["x"] + box["width"] * (place + 0.5) / len(FOUND), box["y"] + box["height"] / 2


def drag(page: Page, first: int, last: int) -> None:
    page.mouse.move(*middle(page, first))
    page.mouse.down()
    page.mouse.move(*middle(page, last), steps=3)


def ids(page: Page) -> list[str]:
    found: list[str] = page.locator(".row").evaluate_all("rows => rows.map((row) => row.dataset.id)")
    return found


def test_the_bars_are_as_high_as_what_was_found_and_are_described(page: Page) -> None:
    shape = columns(page).locator(".in").get_attribute("d") or ""
    assert re.findall(r"M(\d) 100V(\d+)h", shape) == [("0", "92"), ("2", "0"), ("3", "82")]
    described = columns(page).get_attribute("aria-label") or ""
    assert re.match(
        r"50 final divergences from 2026-03-01 .* UTC on, and 5 before that; most from", described
    )
    assert described.endswith(": 40.")


def test_a_pointer_drawn_over_the_bars_chooses_a_range_which_filters_the_list(page: Page) -> None:
    drag(page, 2, 1)
    page.mouse.up()
    expect(page.locator(".row")).to_have_count(1)
    assert ids(page) == ["bin-2"]
    expect(page).to_have_url(re.compile(r"from=2026-03-01T1\d%3A\d\d%3A\d\dZ&to=2026"))
    page.reload()
    expect(page.locator(".row")).to_have_count(1)
    expect(page.get_by_label("Found before")).to_have_value("3")
    page.get_by_role("link", name="All times").click()
    expect(page.locator(".row")).to_have_count(3)
    expect(page.get_by_label("Found before")).to_have_value("4")


def test_a_range_that_ends_with_what_is_known_goes_on(service: Served, page: Page) -> None:
    drag(page, 3, 2)
    page.mouse.up()
    expect(page.locator(".row")).to_have_count(2)
    assert "to=" not in page.url
    publish(service, *FOUND, 9, second=2)
    expect(page.get_by_label("Found before")).to_have_value("5")
    expect(page.get_by_label("Found from")).to_have_value("2")


def test_the_keys_choose_a_range_and_say_it(page: Page) -> None:
    begin = page.get_by_label("Found from")
    begin.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".row")).to_have_count(1)
    assert ids(page) == ["bin-3"]
    expect(begin).to_be_focused()
    page.keyboard.press("End")
    expect(begin).to_have_value("3")
    expect(begin).to_have_attribute("aria-valuetext", re.compile(r"^2026-03-01 1\d:\d\d:\d\d UTC$"))


def test_nothing_moves_under_the_hand_that_chooses(service: Served, page: Page) -> None:
    drag(page, 1, 2)
    publish(service, *FOUND, 900, second=2)
    expect(page.locator("#divergences-title")).to_contain_text("955 final")
    expect(columns(page)).to_have_attribute("viewBox", "0 0 4 100")
    page.mouse.up()
    expect(columns(page)).to_have_attribute("viewBox", "0 0 5 100")
    expect(page.locator(".row")).to_have_count(1)
    assert ids(page) == ["bin-2"]
