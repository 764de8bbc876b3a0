"""The page over the real server and a board that the test feeds, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.support.browser import Watched, chromium, watched
from tests.support.server import Served
from tests.support.statuses import NAME, START, divergence
from twinstream.status.common import Sides
from twinstream.status.comparison import DivergenceReport, Position, Witness


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one module: while it is open no other event loop can run in this thread."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def watch(browser: Browser, service: Served) -> Iterator[Watched]:
    """The page of this comparison; fails afterwards if it had an error or asked a host but the service."""
    with watched(browser, viewport={"width": 1280, "height": 900}) as watch:
        watch.page.goto(at(service))
        yield watch
        assert watch.errors == []
        assert watch.hosts == {f"127.0.0.1:{service.port}"}


@pytest.fixture
def page(watch: Watched) -> Page:
    """The same without what it notices."""
    return watch.page


def at(service: Served, rest: str = NAME) -> str:
    """The address of a part of the page."""
    return f"{service.url}/#/{rest}"


def verdict(page: Page) -> Locator:
    return page.get_by_role("heading", level=1)


def part(page: Page | Locator, name: str) -> Locator:
    return page.locator(f'[data-slot="{name}"]')


def show_keys(page: Page) -> None:
    """Open the list of keys by a key: under a mouse the foot of the page may move while it still loads."""
    page.get_by_role("button", name="Keyboard shortcuts").press("Enter")


def unfold(region: Locator) -> None:
    """Open the fold of a region by a key: under a mouse it may move while the page still loads."""
    region.locator("summary").first.press("Enter")


def row(page: Page, identifier: str) -> Locator:
    """A divergence in a list."""
    return page.locator(f'.row[data-id="{identifier}"]')


def reordered(identifier: str = "r", **changes: Any) -> DivergenceReport:
    """Two events that changed places: the first of the reference is the last of the candidate."""
    one, other = {"ad_id": 17, "ride": "a"}, {"ad_id": 17, "ride": "b"}

    def at_offset(side: str, offset: int) -> Position:
        return Position(topic=f"ads.{side}", partition=0, offset=offset)

    witness = [
        Witness(side="reference", position=at_offset("reference", 12), value=other),
        Witness(side="candidate", position=at_offset("candidate", 31), value=other),
    ]
    values: dict[str, Any] = {
        "kind": "reordered",
        "reference": one,
        "candidate": one,
        "fields": {},
        "positions": Sides[Position | None](
            reference=at_offset("reference", 11), candidate=at_offset("candidate", 32)
        ),
        "witness": witness,
        "text": "Both sides wrote the ride a, but not in the same order.",
        "first_seen": START,
    }
    return divergence(identifier, **{**values, **changes})


def violations(page: Page) -> list[str]:
    """What axe-core finds wrong with the page as it is now: rule, place and why, a line each."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_axe())
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then((answer) => answer.violations)")
    return [
        f"{rule['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


@cache
def _axe() -> str:
    """By evaluation, which the content policy of the page does not concern, as it would a script."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text()
