"""The page under load: it draws seldom, and nothing on it jumps."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from loadtest.memory import ManualClock
from tests.support.browser import watched
from tests.support.marks import one_a_change
from tests.support.server import Served, served
from tests.support.statuses import counts, diverged, divergence, later, partition, status
from tests.support.waiting import eventually
from tests.support.webpage import at, part
from twinstream.api.state.board import Board
from twinstream.status.common import Sides
from twinstream.status.comparison import FoundOverTime
from twinstream.status.groups import Group

pytestmark = pytest.mark.requires_chromium

PAINTER = """async () => {
  const { Painter } = await import("/static/js/base/painter.js");
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


def listed(service: Served, page: Page) -> None:
    """A list of divergences that is as long as it is shown, so that the next one moves nothing."""
    service.publish(*[divergence(f"d-{number}") for number in range(20)])
    expect(page.locator("#divergences .row")).to_have_count(5)
    expect(part(page, "settled-older")).to_be_visible()


def test_numbers_that_grow_move_nothing(service: Served, page: Page) -> None:
    listed(service, page)
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


def test_statuses_that_come_move_nothing_in_the_overview(service: Served, page: Page) -> None:
    names = [f"c-{number}" for number in range(30)]
    service.publish(*[status(name, at=later(0)) for name in names])
    page.goto(at(service, ""))
    expect(page.locator(".comparison")).to_have_count(31)
    page.evaluate(SHIFTS)
    for second, shown in enumerate(("81", "6,561", "531 k", "43.0 M", "3.49 G"), 1):
        sides = Sides[int](reference=9 ** (2 * second), candidate=0)
        service.publish(*[status(name, at=later(second), unmatched=sides) for name in names])
        expect(part(page.locator('[data-name="c-29"]'), "unmatched")).to_have_text(shown)
    assert page.evaluate("shifts") == []


LOADING = """() => new Promise((told) => {
  const sum = (list) => list.getEntries().reduce((all, { value }) => all + value, 0);
  new PerformanceObserver((list) => told(sum(list))).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => told(0), 500);
})"""


@pytest.mark.parametrize("width", one_a_change([390, 1280]))
def test_a_page_that_is_opened_comes_to_its_place_at_once(
    service: Served, page: Page, browser: Browser, width: int
) -> None:
    listed(service, page)
    total = counts(changed=20)
    service.publish(diverged(at=later(1), divergences=total, closed_divergences=total))
    with watched(browser) as watch:
        watch.page.set_viewport_size({"width": width, "height": 900})
        watch.page.goto(at(service))
        expect(watch.page.locator("#divergences .row")).to_have_count(5)
        assert watch.page.evaluate(LOADING) < 0.02  # 0.1 is good by the Web Vitals


CUT = """() => [...document.querySelectorAll(".stretches span")].filter((stretch) => {
  const word = stretch.firstElementChild.getBoundingClientRect();
  const { right, bottom } = stretch.getBoundingClientRect();
  return word.top < bottom - 1 && word.right > right + 1;
}).map((stretch) => stretch.title)"""


def test_a_state_that_lasted_too_shortly_for_its_word_has_none_and_no_word_is_cut(browser: Browser) -> None:
    clocks = ManualClock(time.time() - 118)
    board = Board(stale_after_seconds=600, monotonic=clocks.monotonic, now=clocks.now)
    with served(board) as service, watched(browser) as watch:
        for seconds, verdict in ((5, "PENDING"), (9, "INCONCLUSIVE"), (14, "PENDING"), (90, "EQUIVALENT")):
            service.publish(status(at=clocks.now(), verdict=verdict))
            clocks.advance(seconds)
            service.publish(status(at=clocks.now(), verdict=verdict))
        watch.page.goto(at(service))
        first = watch.page.locator(".lane").first
        expect(first.locator(".stretches span")).to_have_count(4)
        for width in (320, 390, 700, 1280, 2000):
            watch.page.set_viewport_size({"width": width, "height": 800})
            assert watch.page.evaluate(CUT) == [], width
        titles = first.locator(".stretches span").evaluate_all("all => all.map((one) => one.title)")
        assert titles == ["PENDING", "INCONCLUSIVE", "PENDING", "EQUIVALENT"]
        assert watch.errors == []


def test_a_chart_stands_still_while_it_is_pointed_at_and_goes_on_afterwards(
    service: Served, page: Page
) -> None:
    matched = page.locator("#unmatched").get_by_role("img")

    def charted(number: int, second: int) -> bool:
        """Whether the chart has what comes; samples are some time apart."""
        service.publish(status(at=later(second), unmatched=Sides[int](reference=number, candidate=4)))
        return f"now reference {number}, " in (matched.get_attribute("aria-label") or "")

    eventually(lambda: charted(40, 1), what="the chart shows what comes")
    expect(page.locator("#timeline .stretches span").first).to_be_visible()
    page.locator("#rate .u-over").hover()
    expect(part(page, "moment").first).to_contain_text(re.compile(r"UTC, paused$"))
    before = page.locator("#unmatched canvas").evaluate("canvas => canvas.toDataURL()")
    for second in range(2, 6):
        service.publish(status(at=later(second), unmatched=Sides[int](reference=900, candidate=4)))
        expect(part(page, "reference-note")).to_contain_text("900 unmatched")
    page.wait_for_timeout(600)  # It draws every 0.4 s.
    assert page.locator("#unmatched canvas").evaluate("canvas => canvas.toDataURL()") == before
    expect(matched).to_have_accessible_name(re.compile("now reference 40, "))
    page.mouse.move(2, 2)
    eventually(lambda: charted(900, 6), what="the chart goes on")
    expect(part(page, "moment").first).to_have_text("")


def test_differences_that_grow_move_nothing(service: Served, page: Page) -> None:
    def grown(second: int) -> None:
        total = counts(changed=3 * 7**second)
        both = [
            Group(
                id=name,
                kind="changed",
                fields=[name],
                count=part,
                text=f"{part:,} changed, all in `{name}`; x.",
            )
            for name, part in (("fee", 2 * 7**second), ("fare", 7**second))
        ]
        found = FoundOverTime(begins=list(range(second)), counts=[7] * second)
        told = {"divergences": total, "closed_divergences": total}
        service.publish(diverged(at=later(second), **told, groups=both, found=found))
        expect(page.locator("#divergences-title")).to_contain_text(f"{3 * 7**second:,} final")

    listed(service, page)
    grown(1)
    expect(page.locator("#found")).to_be_visible()
    page.evaluate(SHIFTS)
    for second in range(2, 8):
        grown(second)
    expect(page.locator(".group").first).to_contain_text("1,647,086 changed")
    assert page.evaluate("shifts") == []
