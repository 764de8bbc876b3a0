"""The page under load: it draws seldom, and nothing on it jumps."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import watched
from tests.support.server import Served
from tests.support.statuses import divergence, later, partition, status
from tests.support.webpage import part
from twinstream.status.common import Sides

pytestmark = pytest.mark.requires_chromium

PAINTER = """async () => {
  const { Painter } = await import("/static/js/painter.js");
  window.draws = 0;
  window.painter = new Painter(() => (window.draws += 1));
}"""


def test_however_much_comes_in_it_draws_a_few_times_a_second(browser: Browser, service: Served) -> None:
    with watched(browser) as watch:
        page = watch.page
        page.clock.install()
        page.goto(f"{service.url}/docs")
        page.clock.pause_at(later(3600))
        page.evaluate(PAINTER)
        page.evaluate("window.flood = setInterval(() => painter.soon(), 1)")
        page.clock.run_for(2000)
        assert page.evaluate("draws") == 5  # after 40 ms, and then every 400
        page.evaluate("clearInterval(flood)")
        page.clock.run_for(1000)
        drawn = page.evaluate("draws")
        page.clock.run_for(5000)
        assert page.evaluate("draws") == drawn
        page.evaluate("painter.now()")
        assert page.evaluate("draws") == drawn + 1


SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      shifts.push(...entry.sources.map(({ node }) => `${entry.value} ${node?.outerHTML?.slice(0, 80)}`));
  }).observe({ type: "layout-shift" });
}"""


def test_numbers_that_grow_move_nothing(service: Served, page: Page) -> None:
    service.publish(*[divergence(f"d-{number}") for number in range(20)])
    expect(page.locator(".row")).to_have_count(20)
    expect(page.locator("#waits canvas")).to_be_visible()
    page.evaluate(SHIFTS)
    for second in range(1, 8):
        count = 5000 * 7**second
        sides = Sides[int](reference=count, candidate=count)
        read = [partition(0, count, count)]
        service.publish(
            status(
                at=later(second),
                matched=count,
                events=sides,
                unmatched=sides,
                max_unmatched=count,
                progress=Sides(reference=read, candidate=read),
            )
        )
        expect(part(page, "candidate-note")).to_contain_text("unmatched")
    expect(part(page, "matched")).to_have_text("4.12 G")
    assert page.evaluate("shifts") == []
