"""One comparison on the page: what a person sees of it, and that it is never an old green."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import watched
from tests.support.server import Served, served
from tests.support.statuses import (
    NAME,
    START,
    Clocks,
    counts,
    coverage,
    diverged,
    divergence,
    expectation,
    histogram,
    later,
    now,
    partition,
    reset,
    status,
    unmatched,
)
from tests.support.webpage import at, part, row, unfold, verdict
from twinstream.api.state.board import Board
from twinstream.status.common import Sides
from twinstream.status.comparison import (
    CheckedSide,
    CheckStatus,
    Frontier,
    Hole,
    KindCoverage,
    Position,
    Undecodable,
    UnmatchedSample,
    Version,
    Violation,
)

pytestmark = pytest.mark.requires_chromium


def test_an_equivalent_comparison_shows_its_verdict_and_figures_short_at_a_glance_and_exact_where_they_count(
    service: Served, page: Page
) -> None:
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    expect(part(page, "answer")).to_have_text("pass")
    expect(part(page, "health")).to_have_text("ok")
    expect(part(page, "matched")).to_have_text("5,000")
    expect(part(page, "reference-note")).to_have_text("lag 7 records · 12 unmatched")
    expect(region(page, "Divergences")).to_contain_text("No difference found.")
    expect(page.locator("#unmatched canvas")).to_be_visible()
    expect(region(page, "What would decide it")).to_be_hidden()
    drill = "twinstream drill FILE --kind drop"
    expect(part(page, "advice")).to_contain_text(f"Test the alarm: {drill}")
    expect(part(page, "advice").locator("code")).to_have_text(drill)
    expect(page).to_have_title(f"✓ EQUIVALENT · {NAME}")
    accounts = status().accounts.reference.model_copy(update={"consumed": 1_934_567, "matched": 1_934_555})
    both = Sides(reference=accounts, candidate=status().accounts.candidate)
    service.publish(status(at=later(1), matched=1_934_555, accounts=both))
    expect(part(page, "matched")).to_have_text("1.93 M")
    expect(region(page, "Event accounting")).to_contain_text("1,934,555")


def region(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name)


def test_a_verdict_changes_without_a_reload(service: Served, page: Page) -> None:
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    page.evaluate("window.sameDocument = true")
    service.publish(divergence("5d1f0c"), diverged(at=later(1)))
    expect(verdict(page)).to_have_text("≠DIVERGED")
    expect(part(page, "answer")).to_have_text("fail")
    expect(row(page, "5d1f0c")).to_contain_text("campaign_id is 'c-7' in the reference")
    expect(page.locator("#announce")).to_contain_text(f"{NAME}: DIVERGED.")
    assert page.evaluate("window.sameDocument") is True


def test_known_differences_are_shown_with_what_they_explain(service: Served, page: Page) -> None:
    known = region(page, "Known differences")
    expect(known).to_be_hidden()
    service.publish(status(at=later(1), explained_by_rule={"PRICE-17": 1200, "LATE": 0}))
    expect(known).to_contain_text("Explained: 1,200 by PRICE-17, nothing by LATE.")
    service.publish(divergence("8a2b", explained="PRICE-17"))
    known.get_by_role("link", name="Show examples").click()
    expect(row(page, "8a2b")).to_contain_text("Explained by the known difference PRICE-17.")
    page.get_by_role("link", name="Remove the filter explained").click()
    expect(row(page, "8a2b")).to_have_count(0)


def test_checks_are_shown_with_the_places_of_their_violations(service: Served, page: Page) -> None:
    checks = region(page, "Checks of each side by itself")
    expect(checks).to_be_hidden()
    first = [Violation(position=Position(topic="ads.candidate", partition=1, offset=7), problem="has no key")]
    violated = CheckedSide(state="violated", checked=1200, violations=3, first=first)
    declared = {"id": "keyed", "property": "key_partition", "text": "rows in the partition of their key"}
    side = CheckedSide(state="holds", checked=1100)
    found = CheckStatus(**declared, gate="fail", reference=side, candidate=violated)
    service.publish(status(at=later(1), checks=[found]))
    expect(checks.get_by_role("listitem")).to_contain_text(
        "keyed: rows in the partition of their key. The reference: holds, 1,100 checked. "
        "The candidate: violated, 3 violated of 1,200."
    )
    expect(checks).to_contain_text("ads.candidate 1 : 7 · the record has no key")
    expect(page.locator("#advice")).to_contain_text("See the violated check below.")


def test_one_that_is_not_decided_shows_what_it_still_needs_or_what_would_decide_it(
    service: Served, page: Page
) -> None:
    lacking = coverage(210, ("210 of 1,000 required pairs",))
    service.publish(status(at=later(1), verdict="PENDING", reason="Incomplete.", coverage=lacking))
    expect(verdict(page)).to_have_text("…PENDING")
    needs = region(page, "What a verdict still needs")
    expect(needs).to_contain_text("210 of 1,000")
    expect(needs.get_by_role("listitem")).to_contain_text("790 more pairs required (210 of 1,000)")
    overdue = UnmatchedSample(comparison=NAME, events=(unmatched(8, overdue=True),))
    service.publish(overdue, status(at=later(2), verdict="INCONCLUSIVE", reason="Overdue.", suspicions=1))
    steps = region(page, "What would decide it").get_by_role("listitem")
    expect(steps).to_have_count(1)
    expect(steps).to_contain_text("1 event is overdue (1 of the reference; the oldest is ads.reference 0:8")
    expect(steps.locator("code").first).to_have_text("overdue.proves")
    service.publish(status(at=later(3)))
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    expect(steps).to_have_count(0)


def test_events_that_wait_for_long_are_listed_and_those_of_a_moment_ago_are_not(
    service: Served, page: Page
) -> None:
    old, overdue, young = unmatched(8), unmatched(9, overdue=True), unmatched(10, seconds=300)
    newest = [partition(0, 5004, at=START + timedelta(seconds=305))]
    service.publish(UnmatchedSample(comparison=NAME, events=(old, overdue, young)))
    service.publish(status(at=later(1), progress=Sides(reference=newest, candidate=newest)))
    page.reload()
    waiting = region(page, "Longest unmatched").get_by_role("row")
    expect(waiting).to_have_count(3)
    expect(waiting.nth(1)).to_contain_text("ads.reference 0 : 8")
    expect(waiting.nth(2)).to_contain_text("5 min, overdue")
    service.publish(UnmatchedSample(comparison=NAME, events=(young,)))
    expect(waiting).to_have_count(0, timeout=15_000)


def test_what_was_seen_and_what_was_not_is_shown(service: Served, page: Page) -> None:
    seen = region(page, "Coverage")
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    expect(seen).to_be_hidden()
    kinds: Any = {"varied": ["ad_id", "price"], "constant": ["currency"], "always_null": ["discount"]}
    fields = KindCoverage(sampled=60, **kinds)
    more = {"events": 10_000, "keys": 210, "kinds": {"event": fields}, "notes": ["`currency` never varied"]}
    service.publish(status(at=later(1), coverage=coverage().model_copy(update=more)))
    expect(seen.get_by_role("listitem")).to_have_text("currency never varied")
    seen.get_by_text("Fields by kind of event").click()
    expect(seen.get_by_role("row").nth(1)).to_have_text("event5,00060ad_id, pricecurrencydiscount")
    expect(seen).to_contain_text("At least 210 keys seen.")


def test_a_trial_is_marked_and_what_it_would_change_stands_on_the_page_of_its_comparison(
    service: Served, page: Page
) -> None:
    trial = f"{NAME}~trial"
    tried = expectation(trial, trial_of=NAME, changes=("equality",))
    service.call(lambda: service.board.expect(tried))
    place = Position(topic="ads", partition=0, offset=17)
    found = divergence("5d1f0c", positions=Sides[Position | None](reference=place, candidate=place))
    service.publish(found, diverged(at=later(1), divergences=counts(changed=1)), status(trial, at=later(1)))
    page.goto(at(service, ""))
    card = page.locator(f'.comparison[data-name="{trial}"]')
    expect(card).to_contain_text(f"trial of {NAME}")
    expect(part(card, "gate")).to_be_hidden()
    expect(page.locator(".comparison").nth(1)).to_have_attribute("data-name", trial)
    page.goto(at(service))
    panel = region(page, "Rules on trial")
    expect(panel).to_contain_text("What it changes: equality")
    expect(panel).to_contain_text("It hides 1 divergence. It alone reports 0 divergences.")
    panel.get_by_role("link", name=trial).click()
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    expect(page.locator("#gate")).to_be_hidden()
    expect(panel).to_contain_text(f"tried beside {NAME}. They have no gate")
    page.goto(at(service))
    panel.get_by_text("Hidden: examples").click()
    panel.get_by_role("link", name="changed").click()
    expect(page.locator("#divergence-kind")).to_contain_text("changed")


def test_the_timeline_tells_each_change_of_verdict_gate_and_health(service: Served, page: Page) -> None:
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    service.publish(diverged(at=later(1)))
    timeline = region(page, "Verdict, gate and health")
    described = re.compile("Verdict DIVERGED for .*, before that EQUIVALENT; Gate fail for .*; Health ok for")
    expect(timeline.get_by_role("img", name=described)).to_be_visible()
    timeline.get_by_text("As a list, with reasons").click()
    newest = timeline.get_by_role("row").nth(1)
    expect(newest).to_contain_text("DIVERGED")
    expect(newest).to_contain_text("has campaign_id 'c-8'")
    page.reload()
    unfold(timeline)
    expect(timeline.get_by_role("img", name=described)).to_be_visible()
    for place, newest in enumerate(("DIVERGED", "fail", "ok")):
        stretches = timeline.locator(".lane").nth(place).locator(".stretches span")
        expect(stretches.last).to_have_text(newest)


def test_what_was_not_checked_is_named(service: Served, page: Page) -> None:
    where = Position(topic="ads.candidate", partition=0, offset=77)
    gone = "Records were deleted before they were read."
    hole = Hole(reason=gone, side="candidate", position=where, seen_at=now())
    bad = Undecodable(side="candidate", position=where, reason="Not JSON.")
    found: Any = {"verdict": "INCONCLUSIVE", "reason": "A hole.", "holes": [hole], "undecodable": [bad]}
    service.publish(status(at=later(1), **found))
    unchecked = region(page, "Not checked")
    expect(unchecked).to_contain_text(f"{gone} candidate · ads.candidate 0 : 77")
    expect(unchecked).to_contain_text("Not JSON.")
    advice = f"then reset: twinstream reset {NAME} --reason …"
    expect(region(page, "What would decide it")).to_contain_text(advice)


def test_what_holds_a_side_back_and_who_began_anew_are_shown_also_beside_the_longest_names_of_topics(
    service: Served, page: Page
) -> None:
    held = "partition 3 is not read to its end"
    slow = Sides(reference=Frontier(at="2026-03-01T12:00:00Z", held_back_by=held), candidate=Frontier())
    topics = {"reference": Version(topic="reference-" * 24), "candidate": Version(topic="c" * 249)}
    service.publish(status(at=later(1), frontier=slow, resets=[reset()], **topics))
    verified = region(page, "Verified up to")
    expect(verified).to_contain_text(f"reference read up to 2026-03-01T12:00:00Z; {held}")
    begun = "by ann: 1.9.1 deployed It was DIVERGED: 5,000 pairs matched, 3 divergences."
    expect(region(page, "Resets")).to_contain_text(begun)
    unfold(verified)
    table = region(page, "Verified up to").locator(".wide")
    expect(table).to_contain_text("c" * 249)
    assert table.evaluate("table => table.scrollWidth - table.clientWidth") == 0


def test_a_comparison_whose_matcher_is_gone_is_not_shown_as_live(service: Served, page: Page) -> None:
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    service.call(lambda: service.board.lost(NAME, "its matcher exited with code 1"))
    expect(verdict(page)).to_have_text("‖NOT LIVE")
    expect(part(page, "since")).to_contain_text(["Last known: EQUIVALENT ("])
    expect(part(page, "answer")).to_have_text("undecided")
    expect(part(page, "gate-reason")).to_contain_text("Its matcher exited with code 1")
    expect(region(page, "What would decide it")).to_contain_text("The matcher must run again")


def test_a_lost_connection_shows_no_old_verdict_and_comes_back(browser: Browser) -> None:
    with watched(browser) as watch:
        page = watch.page
        with served(Board(stale_after_seconds=60)) as service:
            service.publish(status(at=now()))
            page.goto(at(service))
            expect(verdict(page)).to_have_text("✓EQUIVALENT")
        expect(page.get_by_role("alert")).to_contain_text("Connection lost at")
        expect(verdict(page)).to_have_text("‖NOT LIVE")
        expect(part(page, "answer")).to_have_text("unknown")
        with served(Board(stale_after_seconds=60), port=service.port) as again:
            again.publish(diverged(at=now()), divergence("while-away"))
            expect(verdict(page)).to_have_text("≠DIVERGED")
            expect(page.get_by_role("alert")).to_be_hidden()
            expect(row(page, "while-away")).to_be_visible()


def test_the_charts_are_described_for_those_who_do_not_see_them_with_the_past_from_before_the_page(
    browser: Browser,
) -> None:
    clocks = Clocks()
    with served(clocks.board(stale_after_seconds=600)) as service, watched(browser) as watch:

        def waits(reference: int, **more: Any) -> None:
            clocks.advance(1)
            unmatched = Sides[int](reference=reference, candidate=2)
            service.publish(status(at=clocks.now(), unmatched=unmatched, **more))

        for reference in (12, 512, 30):
            waits(reference)
        watch.page.goto(at(service))
        expect(verdict(watch.page)).to_have_text("✓EQUIVALENT")
        waits(31, match_latency=histogram(0, 120, 3800, 1900, 160, 20))
        for described in (
            "Unmatched events in the last minutes: now reference 31, at most 512; candidate 2, at most 2.",
            "Lag in records in the last minutes: now reference 7, at most 7; candidate 1, at most 1.",
        ):
            expect(watch.page.get_by_role("img", name=described)).to_be_visible()
        expect(watch.page.locator('#waits [data-slot="p99"]')).to_have_text("9.8 ms")


def test_a_comparison_that_is_not_there_is_said_to_be_missing_until_it_comes(
    service: Served, page: Page
) -> None:
    page.goto(at(service, "windows-canary"))
    expect(page.get_by_text("No comparison “windows-canary”.")).to_be_visible()
    service.publish(status("windows-canary", at=now() - timedelta(seconds=1)))
    expect(verdict(page)).to_have_text("✓EQUIVALENT")


def test_the_documentation_works_without_another_host(service: Served, page: Page) -> None:
    page.goto(f"{service.url}/docs")
    expect(page.get_by_text("/v1/comparisons/{name}/reset")).to_be_visible()


def test_the_service_is_asked_for_the_past_of_what_is_shown_alone(browser: Browser) -> None:
    with served(Board(stale_after_seconds=60)) as service, watched(browser) as watch:
        for number in range(30):
            service.call(lambda name=f"c-{number}": service.board.expect(expectation(name)))  # type: ignore[misc]
        asked: list[str] = []
        watch.page.on("request", lambda request: asked.append(request.url))
        with watch.page.expect_response("**/timeline"):
            watch.page.goto(at(service, "c-7"))
        past = [url.removeprefix(service.url) for url in asked if url.endswith("/history")]
        assert past == ["/v1/comparisons/c-7/history"]
