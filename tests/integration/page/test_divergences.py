"""Divergences on the page: lists that stay where they are, filters in the address, and the records of one."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Locator, Page, Route, expect

from tests.support.server import Served
from tests.support.statuses import NAME, START, counts, diverged, divergence, later, status
from tests.support.waiting import eventually
from tests.support.webpage import at, part, reordered, row, verdict
from twinstream.status.common import Sides
from twinstream.status.comparison import DivergenceReport, Position, Withdrawn

pytestmark = pytest.mark.requires_chromium


def rows(page: Page) -> Locator:
    return page.locator(".row")


def see(page: Page, service: Served, one: DivergenceReport) -> None:
    """Publish a divergence, and open it."""
    service.publish(one)
    page.goto(at(service, f"{NAME}/{one.id}"))
    expect(part(page, "body").first).to_be_visible()


# -- lists --------------------------------------------------------------------------------------------------


def test_provisional_divergences_stand_apart_until_they_are_final_or_go(service: Served, page: Page) -> None:
    service.publish(divergence("d", kind="reordered", provisional=True), diverged(at=later(1)))
    apart = page.get_by_role("list", name="Provisional divergences, newest first")
    good = page.get_by_role("list", name="Final divergences, newest first")
    expect(apart.get_by_role("heading")).to_contain_text("reordered, provisional")
    expect(page.get_by_text("their kind may change")).to_be_visible()
    expect(page.get_by_text("None is final yet.")).to_be_visible()
    service.publish(divergence("d", kind="missing"))
    expect(good.get_by_role("heading")).to_contain_text("missing")
    expect(good.get_by_role("listitem")).to_contain_text("not in the candidate")
    expect(apart).to_be_hidden()
    service.publish(divergence("e", provisional=True))
    expect(page.locator(".row")).to_have_count(2)
    service.publish(Withdrawn(id="e", comparison=NAME))
    expect(page.locator(".row")).to_have_count(1)


def test_a_flood_moves_nothing_until_it_is_asked_for(service: Served, page: Page) -> None:
    service.publish(*[divergence(f"d-{number}") for number in range(20)])
    page.get_by_role("button", name="Show older ones").click()
    expect(rows(page)).to_have_count(20)
    before = rows(page).evaluate_all("rows => rows.map(row => row.dataset.id)")
    service.publish(*[divergence(f"flood-{number:03}") for number in range(150)])
    newer = page.get_by_role("button", name="Show 150 newer")
    expect(newer).to_be_visible()
    assert rows(page).evaluate_all("rows => rows.map(row => row.dataset.id)") == before
    newer.click()
    expect(rows(page).first).to_contain_text("changed")
    expect(row(page, "flood-149")).to_be_visible()
    expect(newer).to_be_hidden()


def test_more_divergences_than_fit_are_shown_on_demand(service: Served, page: Page) -> None:
    service.publish(*[divergence(f"d-{number}") for number in range(25)])
    page.reload()
    older = page.get_by_role("button", name="Show older ones")
    for shown in (5, 20, 25):
        expect(rows(page)).to_have_count(shown)
        if shown < 25:
            older.click()
    expect(older).to_be_hidden()


def test_a_reset_ends_more_divergences_than_the_page_is_told(service: Served, page: Page) -> None:
    kept = [divergence(str(number)) for number in range(300)]
    service.publish(*kept, diverged(at=later(1)))
    expect(rows(page)).not_to_have_count(0)

    def reset() -> None:
        for one in reversed(kept):
            service.board.accept(Withdrawn(id=one.id, comparison=NAME))
        service.board.accept(status(at=later(2), reset_count=1))

    service.call(reset)
    expect(rows(page)).to_have_count(0)


# -- filters ------------------------------------------------------------------------------------------------


def test_one_kind_can_be_chosen_and_stays_after_a_reload(service: Served, page: Page) -> None:
    service.publish(divergence("c"), divergence("m", kind="missing"))
    both = counts(changed=1, missing=3)
    service.publish(diverged(at=later(1), divergences=both, closed_divergences=counts(changed=1, missing=1)))
    page.get_by_role("link", name="missing 1 final, 2 provisional").click()
    expect(rows(page)).to_have_count(1)
    expect(page).to_have_url(re.compile(rf"#/{NAME}\?kind=missing$"))
    page.reload()
    expect(rows(page).get_by_role("heading")).to_contain_text(["missing"])
    service.publish(divergence("c2"), divergence("m2", kind="missing"))
    expect(row(page, "m2")).to_be_visible()
    expect(rows(page)).to_have_count(2)
    page.get_by_role("link", name="missing 1 final, 2 provisional").click()
    expect(rows(page)).to_have_count(4)


def test_the_scope_of_a_divergence_leads_to_all_that_differs_in_it(service: Served, page: Page) -> None:
    service.publish(divergence("a"), divergence("b", scope={"ad_id": 18}))
    service.publish(divergence("c", scope={"ad_id": "x=1\x1b"}))
    row(page, "b").get_by_role("link", name="ad_id 18").click()
    expect(rows(page)).to_have_count(1)
    expect(row(page, "b")).to_be_visible()
    service.publish(divergence("later", scope={"ad_id": 18}))
    expect(rows(page)).to_have_count(2)
    page.get_by_role("link", name="Remove the filter ad_id = 18").click()
    expect(rows(page)).to_have_count(4)
    row(page, "c").get_by_role("link", name="Only ad_id").click()
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_role("link", name="Remove the filter")).to_contain_text(r"ad_id = x=1\u001b")


def test_filters_are_given_in_a_form_and_taken_away_one_by_one(service: Served, page: Page) -> None:
    service.publish(
        divergence("a", first_seen=START),
        divergence("b", first_seen=START + timedelta(minutes=5), late=3.0),
        divergence("c", first_seen=START + timedelta(minutes=6), fields={}),
    )
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Differs in field").fill("campaign_id")
    page.get_by_label("First seen from (UTC)").fill("2026-03-01T12:04:00")
    page.get_by_role("button", name="Apply").click()
    expect(rows(page)).to_have_count(1)
    expect(row(page, "b")).to_contain_text("Late: its partner came after all, 3 s later.")
    page.reload()
    expect(rows(page)).to_have_count(1)
    page.get_by_role("link", name="Remove the filter campaign_id differs").click()
    expect(rows(page)).to_have_count(2)
    page.get_by_text("Filter", exact=True).click()
    page.get_by_role("link", name="late", exact=True).click()
    expect(rows(page)).to_have_count(1)
    page.get_by_role("link", name="Clear all").click()
    expect(rows(page)).to_have_count(3)


def test_a_filter_that_fits_nothing_says_so_and_one_without_a_meaning_what_it_must_be(
    service: Served, watch: Any
) -> None:
    page = watch.page
    service.publish(divergence("a"), diverged(at=later(1)))
    page.goto(at(service, f"{NAME}?scope=ad_id%3D99"))
    expect(page.get_by_text("No divergence matches these filters.")).to_be_visible()
    page.get_by_role("link", name="Clear", exact=True).click()
    expect(row(page, "a")).to_be_visible()
    page.goto(at(service, f"{NAME}?from=yesterday"))
    expect(
        page.get_by_text("The request is not valid: from: must be a time with a zone, like")
    ).to_be_visible()
    page.get_by_role("link", name="Remove the filter from yesterday").click()
    expect(row(page, "a")).to_be_visible()
    watch.errors.clear()  # Chromium reports each 422


def test_who_filters_before_the_page_knows_everything_gets_what_was_asked_for(
    service: Served, page: Page
) -> None:
    service.publish(divergence("a"), divergence("b", kind="missing"))
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route("**/v1/comparisons", hold)
    page.goto("about:blank")
    page.goto(at(service))
    expect(verdict(page)).to_have_text("✓EQUIVALENT")
    page.evaluate("location.hash += '?kind=missing'")
    held[0].continue_()
    expect(rows(page)).to_have_count(1)
    expect(row(page, "b")).to_be_visible()


# -- one of them --------------------------------------------------------------------------------------------


def test_a_link_to_a_divergence_shows_its_records(service: Served, page: Page) -> None:
    see(page, service, divergence("5d1f0c"))
    expect(verdict(page)).to_have_text("changed same record, different values")
    expect(page.locator("mark")).to_have_text(['"c-7"', '"c-8"'])
    records = page.get_by_role("region", name="The records side by side")
    expect(records).to_contain_text("ads.candidate 0 : 5003")
    terminal = page.get_by_role("region", name="In the terminal")
    expect(terminal).to_contain_text("twinstream explain 5d1f0c")
    expect(terminal).to_contain_text("--topic ads.reference --partition 1 --offset 2504 --max-messages 1")


def test_events_that_changed_places_are_drawn_with_lines_that_cross(service: Served, page: Page) -> None:
    see(page, service, reordered("r"))
    picture = page.locator(".picture")
    told = picture.get_by_role("listitem")
    events = ((11, "a"), (12, "b"), (31, "b"), (32, "a"))
    expect(told).to_have_text([f'offset {offset}ad_id 17ride "{ride}"' for offset, ride in events])
    lines = picture.locator("path").evaluate_all(ENDS)
    (moved,) = (line for line in lines if line["kind"] == "reordered")
    (witness,) = (line for line in lines if line["kind"] == "witness")
    assert moved["from"] < witness["from"]
    assert moved["to"] > witness["to"]


ENDS = """paths => paths.map(path => {
  const [start, end] = [path.getPointAtLength(0), path.getPointAtLength(path.getTotalLength())];
  return { kind: path.getAttribute("class"), from: start.y, to: end.y };
})"""


FITS = """width => {
  const svg = document.querySelector(".picture svg"), box = svg.getBoundingClientRect();
  return svg.getAttribute("viewBox") === `0 0 ${box.width} ${box.height}`;
}"""


def test_the_lines_follow_when_the_window_changes_and_the_picture_is_as_high_as_its_events(
    service: Served, page: Page
) -> None:
    see(page, service, reordered("r"))
    height = "picture => picture.getBoundingClientRect().height"
    before = page.locator(".picture").evaluate(height)
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        expect(page.locator(".picture svg")).to_be_visible()
        page.wait_for_function(FITS)
    assert page.locator(".picture").evaluate(height) == before


def test_a_missing_event_says_that_the_other_side_has_none(service: Served, page: Page) -> None:
    positions = Sides[Position | None](
        reference=Position(topic="ads.reference", partition=0, offset=8), candidate=None
    )
    lost: Any = {"kind": "missing", "candidate": None, "fields": {}, "witness": []}
    see(page, service, divergence("m", positions=positions, **lost))
    head = page.locator(".record thead").first
    expect(head).to_contain_text("Candidate no such event")
    expect(head).to_contain_text("ads.reference 0 : 8")
    picture = page.locator(".picture")
    expect(picture).to_contain_text("No such event in the candidate")
    expect(picture.locator("path.cross")).to_have_count(1)


def test_values_are_shown_as_written_and_never_as_markup_nor_as_what_every_object_of_the_page_has(
    service: Served, page: Page
) -> None:
    reference = {"id": 9007199254740993, "name": "<img src=x onerror=alert(1)>", "price": 1.0}
    candidate = {**reference, "id": 9007199254740992}
    fields = {"id": Sides[Any](reference=reference["id"], candidate=candidate["id"])}
    values = {"reference": reference, "candidate": candidate, "fields": fields}
    see(page, service, divergence("v", scope={"id": "<b>"}, **values))
    expect(page.locator("mark")).to_have_text(["9007199254740993", "9007199254740992"])
    expect(page.locator("mark b")).to_have_text(["3", "2"])
    body = page.locator(".record tbody").first
    expect(body).to_contain_text('"<img src=x onerror=alert(1)>"')
    expect(body).to_contain_text("1.0")
    assert page.locator("#divergence img, .scope b").count() == 0
    base, both = divergence("c"), ({"ad_id": 17, "constructor": "x"}, {"ad_id": 17})
    witness = [one.model_copy(update={"value": value}) for one, value in zip(base.witness, both, strict=True)]
    see(page, service, divergence("c", reference=both[0], candidate=both[1], fields={}, witness=witness))
    records = page.get_by_role("region", name="The records side by side")
    expect(records).to_contain_text("constructor")
    expect(page.locator(".picture")).to_contain_text("constructor")


UNSEEN = [
    ("two words", "two\u00a0words", ['"two words"', '"two\\u00a0words"']),
    ("evil", "\u202elive\u202c", ['"evil"', '"\\u202elive\\u202c"']),
    ("caf\u00e9", "cafe\u0301", ['"caf\\u00e9"', '"cafe\\u0301"']),
]


def test_characters_that_nobody_sees_are_written_out(service: Served, page: Page) -> None:
    for place, (one, other, shown) in enumerate(UNSEEN):
        values = {"reference": {"name": one}, "candidate": {"name": other}, "scope": {"name": other}}
        fields = {"name": Sides[Any](reference=one, candidate=other)}
        text = f'The reference wrote "{one}", and the candidate "{other}" instead.'
        see(page, service, divergence(f"i{place}", fields=fields, text=text, **values))
        expect(page.locator("mark")).to_have_text(shown)
        expect(part(page, "body").first).not_to_contain_text(re.compile("[\u202e\u202c]"))
        page.goto(at(service))
        listed = row(page, f"i{place}").locator(".answer")
        expect(listed).to_be_visible()
        expect(listed).not_to_contain_text(re.compile("[\u00a0\u202e\u202c]"))


def test_without_a_witness_there_is_no_empty_panel(service: Served, page: Page) -> None:
    see(page, service, divergence("n", witness=[]))
    expect(page.get_by_role("heading", name="In the terminal")).to_be_visible()
    expect(part(page, "witness")).to_be_hidden()


def test_a_field_that_differs_as_the_file_allows_is_told_apart(service: Served, page: Page) -> None:
    report = divergence("u")
    reference = {**report.reference, "processed_at": 1}
    candidate = {**report.candidate, "processed_at": 2}
    see(page, service, divergence("u", reference=reference, candidate=candidate))
    allowed = page.locator(".record .allowed")
    expect(allowed).to_contain_text("processed_at differs, as the comparison file allows")
    expect(page.locator("mark")).to_have_count(2)


def test_the_fold_of_other_fields_counts_those_that_differ(service: Served, page: Page) -> None:
    report = divergence("u")
    many = {f"n{number}": number for number in range(9)}
    reference = {**report.reference, **many, "processed_at": 1}
    candidate = {**report.candidate, **many, "processed_at": 2}
    see(page, service, divergence("u", reference=reference, candidate=candidate))
    fold = page.locator(".records summary")
    expect(fold).to_have_text("10 fields that do not differ, 1 that differs as the comparison file allows")


def test_the_picture_shows_what_names_and_changed_an_event_before_what_may_differ(
    service: Served, page: Page
) -> None:
    report = divergence("u")
    noise = {f"noise{number}": number for number in range(5)}
    reference = {**noise, "id": 7, **report.reference}
    candidate = {**dict.fromkeys(noise, -1), "id": 7, **report.candidate}
    see(page, service, divergence("u", reference=reference, candidate=candidate, identity=["id"]))
    shown = page.locator(".picture .reference li.named code i").all_inner_texts()
    assert {"id", "ad_id", "campaign_id"} <= {name.strip() for name in shown}


def test_values_that_are_not_shown_differ_although_they_look_the_same(service: Served, page: Page) -> None:
    hidden = "‹text, 3 characters›"
    both = {"ad_id": 17, "campaign_id": hidden}
    fields = {"campaign_id": Sides[Any](reference=hidden, candidate=hidden)}
    see(page, service, divergence("h", reference=both, candidate=both, fields=fields))
    expect(page.locator(".differs")).to_contain_text("campaign_id differs, and is not shown")


def test_fields_that_are_not_shown_are_left_out_and_counted(service: Served, page: Page) -> None:
    hidden = {"name": "‹text, 3 characters, #3fa9c21e›", "fee": "‹number, #1c9e44a0›"}
    report = divergence("h")
    reference, candidate = {**hidden, **report.reference}, {**hidden, **report.candidate}
    see(page, service, divergence("h", reference=reference, candidate=candidate, identity=["event_time"]))
    records = page.get_by_role("region", name="The records side by side")
    expect(records).to_contain_text("2 hidden fields left out: the comparison file does not show them.")
    order = ["campaign_id", "ad_id", "event_time"]
    expect(records.locator("tbody th")).to_have_text(order)
    expect(page.locator(".picture")).not_to_contain_text("‹")


def test_a_row_is_titled_by_its_answer(service: Served, page: Page) -> None:
    service.publish(divergence("t", title="campaign_id c-7 → c-8 · ad_id 17 · 2 hidden fields"))
    expect(row(page, "t").get_by_role("heading")).to_have_text(
        "changed campaign_id c-7 → c-8 · ad_id 17 · 2 hidden fields"
    )
    expect(row(page, "t")).to_contain_text("same record, different values")


def test_what_is_known_of_it_changes_while_it_is_looked_at(service: Served, page: Page) -> None:
    see(page, service, divergence("d", kind="reordered", provisional=True))
    expect(verdict(page)).to_contain_text("reordered, provisional")
    service.publish(divergence("d", kind="missing"))
    expect(verdict(page)).to_have_text("missing not in the candidate")


def test_an_answer_that_is_older_than_what_the_stream_told_is_not_shown(service: Served, page: Page) -> None:
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/divergences/d", lambda route: held.append((route, route.fetch())))
    service.publish(divergence("d", kind="reordered", provisional=True))
    page.goto("about:blank")
    page.goto(at(service, f"{NAME}/d"))
    eventually(
        lambda: page.wait_for_timeout(20) or held, what="the service has answered, and the page not heard it"
    )
    service.publish(divergence("d", kind="missing"))
    expect(verdict(page)).to_have_text("missing not in the candidate")
    for route, answer in held:
        with page.expect_request_finished(lambda request: request.url.endswith("/divergences/d")):
            route.fulfill(response=answer)
    service.publish(divergence("e"))
    expect(page.get_by_role("link", name="Newer")).to_be_visible()
    expect(verdict(page)).to_have_text("missing not in the candidate")


def test_one_that_no_longer_stands_says_so_and_keeps_its_records(
    service: Served, page: Page, watch: Any
) -> None:
    see(page, service, divergence("d", provisional=True))
    service.publish(Withdrawn(id="d", comparison=NAME))
    expect(page.get_by_text("This divergence no longer stands")).to_be_visible()
    expect(page.locator("mark").first).to_be_visible()
    # The page may have asked for it just when it went: Chromium reports each 404.
    watch.errors[:] = [error for error in watch.errors if "404" not in error]


def test_one_that_is_not_there_says_why(service: Served, page: Page, watch: Any) -> None:
    page.goto(at(service, f"{NAME}/nothing"))
    expect(page.get_by_text("There is no such divergence any more")).to_be_visible()
    watch.errors.clear()  # Chromium reports each 404


def test_the_next_of_the_same_list_is_one_click_away(service: Served, page: Page) -> None:
    service.publish(divergence("a"), divergence("b", kind="missing"), divergence("c"))
    expect(rows(page)).to_have_count(3)
    page.goto(at(service, f"{NAME}/c?kind=changed"))
    page.get_by_role("link", name="Older").click()
    expect(page).to_have_url(re.compile(r"/a\?kind=changed$"))
    expect(page.get_by_role("link", name="Older")).to_be_hidden()
    page.get_by_role("link", name="Newer").click()
    expect(page).to_have_url(re.compile(r"/c\?kind=changed$"))
    page.get_by_role("navigation", name="Where you are").get_by_role("link", name=NAME).click()
    expect(rows(page)).to_have_count(2)


def test_back_leads_to_where_a_person_was_in_the_list(service: Served, page: Page) -> None:
    service.publish(*[divergence(f"d-{number:02}") for number in range(20)])
    page.get_by_role("button", name="Show older ones").click()
    expect(rows(page)).to_have_count(20)
    row(page, "d-02").scroll_into_view_if_needed()
    there = page.evaluate("scrollY")
    assert there > 0
    row(page, "d-02").get_by_role("link", name="changed").click()
    expect(verdict(page)).to_have_text("changed same record, different values")
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(row(page, "d-02")).to_be_in_viewport()
