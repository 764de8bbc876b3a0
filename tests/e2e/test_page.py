"""The page of the running service, on real Kafka and Redis: two clicks from the first page to the records."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.support.browser import chromium, watched
from tests.support.cases import Serve
from tests.support.marks import whole_product

pytestmark = whole_product(pytest.mark.requires_chromium, seconds=180)


def test_a_lost_record_is_two_clicks_from_the_first_page_which_was_never_loaded_again(serve: Serve) -> None:
    case = serve()
    case.passes(range(1000))
    service, write = case
    with chromium() as browser, watched(browser, viewport={"width": 1280, "height": 900}) as watch:
        page = watch.page
        page.goto(f"{service.address}/")
        expect(page.locator(".comparison")).to_contain_text("EQUIVALENT")
        page.evaluate("window.sameDocument = true")
        write.reference(3, -1)
        write.both(range(1000, 2000))
        expect(page.locator(".comparison")).to_contain_text("DIVERGED", timeout=30_000)
        page.locator(".comparison").get_by_role("heading").get_by_role("link").click()
        found = page.get_by_role("list", name="Final divergences, newest first")
        found.get_by_role("link", name="missing").click()
        records = page.get_by_role("region", name="The records side by side")
        expect(records.get_by_role("row", name="n -1")).to_be_visible()
        (divergence,) = service.divergences()
        offset = divergence["positions"]["reference"]["offset"]
        expect(page.locator(".picture .reference .named")).to_contain_text(f"offset {offset}")
        assert page.evaluate("window.sameDocument") is True
        assert watch.errors == []
        assert watch.hosts == {service.address.removeprefix("http://")}
