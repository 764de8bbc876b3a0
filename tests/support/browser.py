"""A real headless Chromium, and a page of it that notices what a person would not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

expect.set_options(timeout=20_000)  # More than by default: other tests run at the same time.
CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; the flags keep it from looking for hosts of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page with all that went wrong in it, and all hosts that it asked."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        page.set_default_timeout(15_000)
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.errors.append(text)


@contextmanager
def watched(browser: Browser, **context: Any) -> Iterator[Watched]:
    """A new page in a context of its own (`viewport`, `color_scheme`, …)."""
    opened = browser.new_context(**context)
    try:
        yield Watched(opened.new_page())
    finally:
        opened.close()
