"""`python -m tests.support.screenshots`: the pictures of the README, taken of the demo as it runs.

Two runs of the demo, with a candidate that drops events and with one that reorders them; in each the page is
gone through as a person does. What is written is small: 256 colours are enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from deploy.demo.folder import RunFolder
from deploy.demo.parts import SPECS, Parts
from deploy.demo.service import Service, UnreachableError
from tests.support.browser import chromium, watched
from tests.support.waiting import eventually

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MOST_BYTES = 150_000
PATIENCE_MILLISECONDS = 600_000
"""Spark needs a minute to write its first events, and a scope some time to meet again: minutes on a machine
that has much else to do."""
WATCHED_SECONDS = 90
"""So much of the charts is to be seen."""

COMPARISON = "ads-views"
DESK, PHONE = {"width": 1180, "height": 800}, {"width": 390, "height": 844}


@contextmanager
def demo(fault: str) -> Iterator[str]:
    """The demo with a bug in the candidate; gives the address of its page."""
    with RunFolder() as run:
        parts = Parts(run.path, rate=500, fault=fault, tell=print)
        try:
            parts.start()
            with Service(parts.address) as service:
                eventually(lambda: _answers(service), seconds=60, what="the service answers")
            yield f"{parts.address}/"
        finally:
            parts.stop()


def _answers(service: Service) -> bool:
    try:
        return len(service.look()) == len(SPECS)
    except UnreachableError:
        return False


def keep(page: Page, name: str, *, most: int = 1600) -> None:
    """Write what is to be seen now, from the top of the page down to `most` pixels."""
    page.evaluate("scrollTo(0, 0)")
    height = min(most, int(page.evaluate("document.documentElement.scrollHeight")))
    width = page.viewport_size["width"] if page.viewport_size else DESK["width"]
    taken = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
    picture = (
        Image.open(BytesIO(taken))
        .convert("RGB")
        .quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    file = IMAGES / f"{name}.png"
    picture.save(file, optimize=True)
    print(f"{file.relative_to(IMAGES.parents[1])}: {file.stat().st_size:,} bytes")
    assert file.stat().st_size < MOST_BYTES, f"{file} is too large for a README"


def settled(page: Page, kind: str) -> None:
    """Wait in a comparison until a divergence of this kind is for good."""
    rows = page.get_by_role("list", name="Divergences for good, newest first")
    expect(rows.get_by_role("link", name=kind, exact=True).first).to_be_visible(timeout=PATIENCE_MILLISECONDS)


def drop(browser: Browser) -> None:
    """From the overview to a lost record, light and dark, at a desk and on a phone."""
    with demo("drop") as address, watched(browser, viewport=DESK, device_scale_factor=1) as watch:
        page = watch.page
        page.goto(address)
        card = page.get_by_role("link", name=COMPARISON, exact=True)
        expect(card).to_be_visible(timeout=PATIENCE_MILLISECONDS)
        card.click()
        settled(page, "missing")
        time.sleep(WATCHED_SECONDS)
        keep(page, "comparison", most=1500)
        page.get_by_role("link", name="missing", exact=True).first.click()
        expect(page.locator(".record").first).to_be_visible()
        keep(page, "divergence", most=900)
        page.get_by_role("link", name="Comparisons", exact=True).click()
        expect(page.locator(".comparison")).to_have_count(2)
        keep(page, "overview", most=620)
        elsewhere(browser, f"{address}#/{COMPARISON}", "comparison-phone", viewport=PHONE)
        assert watch.errors == []


def elsewhere(browser: Browser, address: str, name: str, **context: object) -> None:
    """The same page in another window."""
    with watched(browser, color_scheme="dark", **context) as watch:
        watch.page.goto(address)
        expect(watch.page.locator("#waits canvas")).to_be_visible()
        keep(watch.page, name, most=844)


def reorder(browser: Browser) -> None:
    """Two events that changed places, in the dark."""
    with (
        demo("reorder") as address,
        watched(browser, viewport=DESK, device_scale_factor=1, color_scheme="dark") as watch,
    ):
        page = watch.page
        page.goto(f"{address}#/{COMPARISON}")
        settled(page, "reordered")
        page.get_by_role("link", name="reordered", exact=True).first.click()
        expect(page.locator(".picture path.reordered")).to_be_attached()
        keep(page, "reordered", most=760)
        assert watch.errors == []


def main(*takes: Callable[[Browser], None]) -> None:
    """Take all of them."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for take in takes:
            take(browser)


if __name__ == "__main__":
    main(drop, reorder)
