"""`python -m tests.support.screenshots`: the pictures of the README, taken of a real service as it runs.

Kafka, Redis and the service are real, and compare what the demo compares, by its comparison files, and
besides 20,000 flights with three bugs at once. The records are written here and not by Spark: so it takes
two minutes on any machine. The page is gone through as a person does.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, expect

from deploy.demo.parts import SPECS
from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support import flights
from tests.support.browser import chromium, watched
from tests.support.service import ServiceProcess

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MOST_BYTES = 150_000
PATIENCE_MILLISECONDS = 120_000
WATCHED_SECONDS = 60
"""So much of the charts is to be seen."""

DESK, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
TICK_SECONDS = 0.1
ADS = 30
FLIGHTS = 20_000


class Feed(threading.Thread):
    """Both versions of the job: each ad is viewed once a tick, campaigns are counted once in two seconds."""

    def __init__(self, brokers: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": brokers})
        self._ended = threading.Event()

    def run(self) -> None:
        """Write until it is told to end."""
        tick = 0
        while not self._ended.wait(TICK_SECONDS):
            now = time.time_ns() // 1_000_000
            views = [
                (f"campaign-{ad // 3:02}", f"ad-{ad:03}", now + part) for ad in range(ADS) for part in (0, 1)
            ]
            for view in views:
                self._view("reference", view)
            for view in _wrong(views, tick):
                self._view("candidate", view)
            if tick % 20 == 0:
                self._count(now - now % 2000, tick)
            tick += 1
            self._producer.poll(0)
        self._producer.flush(10)

    def end(self) -> None:
        """Stop writing."""
        self._ended.set()
        self.join()

    def _view(self, side: str, view: tuple[str, str, int]) -> None:
        event = dict(zip(("campaign_id", "ad_id", "event_time"), view, strict=True))
        self._write(f"ads.views.{side}", view[1], event)

    def _count(self, window: int, tick: int) -> None:
        for campaign in range(ADS // 3):
            event = {
                "campaign_id": f"campaign-{campaign:02}",
                "window": window,
                "views": 120 + (tick + campaign) % 7,
            }
            for side in ("reference", "candidate"):
                self._write(f"ads.counts.{side}", event["campaign_id"], event)

    def _write(self, topic: str, key: str, event: dict[str, Any]) -> None:
        self._producer.produce(topic, orjson.dumps(event), key)


def write_flights(brokers: str) -> None:
    """Write the flights of both versions, each plane in its partition, as if they had left a moment ago."""
    producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True})
    right = flights.flights(FLIGHTS)
    begin = time.time_ns() // 1_000_000 - 3600_000
    for topic, written in (("flights.v1", right), ("flights.v2", flights.with_three_bugs(right))):
        for number, flight in enumerate(written):
            moment = begin + 3600_000 * number // FLIGHTS
            producer.produce(topic, orjson.dumps(flight), flight["plane"], timestamp=moment)
            if number % 1000 == 0:
                producer.poll(0)
    producer.flush(30)


def _wrong(views: list[tuple[str, str, int]], tick: int) -> list[tuple[str, str, int]]:
    """What the candidate makes of them: it loses a campaign for a moment, and swaps two views of an ad."""
    if tick % 100 == 90:
        return [view for view in views if view[0] != "campaign-00"]
    if tick == 150:
        return [*views[:8], views[9], views[8], *views[10:]]
    return views


@contextmanager
def running() -> Iterator[str]:
    """The service on all of it; gives the address of its page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        specs = [Path(shutil.copy(spec, folder)) for spec in SPECS]
        specs.append(folder / "flights.yaml")
        specs[-1].write_text(flights.FILE)
        with Kafka(folder / "kafka") as kafka, RedisServer(folder / "redis") as redis:
            for topic in ("views", "counts"):
                for side in ("reference", "candidate"):
                    kafka.create_topic(f"ads.{topic}.{side}", partitions=2)
            kafka.create_topic("ads.control", partitions=1)
            for topic in ("flights.v1", "flights.v2"):
                kafka.create_topic(topic, partitions=4)
            write_flights(kafka.brokers)
            service = ServiceProcess(specs[0], kafka.brokers, redis.url, *map(str, specs[1:]))
            feed = Feed(kafka.brokers)
            service.start()
            feed.start()
            try:
                yield f"{service.address}/"
            finally:
                feed.end()
                service.stop()


def keep(page: Page, name: str, *, most: int) -> None:
    """Write what is to be seen now, from the top of the page down to `most` pixels."""
    page.evaluate("scrollTo(0, 0)")
    height = min(most, int(page.evaluate("document.documentElement.scrollHeight")))
    assert page.viewport_size is not None
    taken = page.screenshot(
        full_page=True, clip={"x": 0, "y": 0, "width": page.viewport_size["width"], "height": height}
    )
    whole = Image.open(BytesIO(taken)).convert("RGB")
    # By coverage, or the few pixels of a lamp would not have a colour of their own.
    picture = whole.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    file = IMAGES / f"{name}.png"
    picture.save(file, optimize=True)
    print(f"{file.relative_to(IMAGES.parents[1])}: {file.stat().st_size:,} bytes")
    assert file.stat().st_size < MOST_BYTES, f"{file} is too large for a README"


def go_through(browser: Browser, address: str) -> None:
    """From the first page to a lost record in two clicks, and to events that changed places."""
    with watched(browser, viewport=DESK) as watch:
        page = watch.page
        page.goto(address)
        page.get_by_role("link", name="ads-views", exact=True).click()
        found = page.get_by_role("list", name="Final divergences, newest first")
        for kind in ("missing", "reordered"):
            expect(found.get_by_role("link", name=kind).first).to_be_visible(timeout=PATIENCE_MILLISECONDS)
        time.sleep(WATCHED_SECONDS)
        keep(page, "comparison", most=1350)
        found.get_by_role("link", name="missing").first.click()
        expect(page.locator(".picture path.loose").first).to_be_attached()
        keep(page, "divergence", most=900)
        page.get_by_role("link", name="Comparisons", exact=True).click()
        expect(page.locator(".comparison")).to_have_count(3)
        keep(page, "overview", most=820)
        assert watch.errors == []


def in_the_dark(browser: Browser, address: str) -> None:
    """The same on a phone, and two events that changed places."""
    with watched(browser, viewport=PHONE, color_scheme="dark") as watch:
        watch.page.goto(f"{address}#/ads-views")
        expect(watch.page.locator(".row").first).to_be_visible()
        keep(watch.page, "phone", most=844)
    with watched(browser, viewport=DESK, color_scheme="dark") as watch:
        watch.page.goto(f"{address}#/ads-views?kind=reordered")
        watch.page.get_by_role("list", name="Final divergences, newest first").get_by_role(
            "link"
        ).first.click()
        expect(watch.page.locator(".picture path.reordered")).to_be_attached()
        keep(watch.page, "reordered", most=760)
        assert watch.errors == []


def three_bugs(browser: Browser, address: str) -> None:
    """The page of the flights, for a desk and a phone, light and dark."""
    for view, size, most in (("groups", DESK, 1600), ("groups-phone", PHONE, 2200)):
        for scheme, suffix in (("light", ""), ("dark", "-dark")):
            with watched(browser, viewport=size, color_scheme=scheme) as watch:
                watch.page.goto(f"{address}#/flights")
                expect(watch.page.locator(".row").first).to_be_visible(timeout=PATIENCE_MILLISECONDS)
                expect(watch.page.locator("#groups li.group")).to_have_count(4)
                keep(watch.page, f"{view}{suffix}", most=most)
                assert watch.errors == []


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    with running() as place, chromium() as chrome:
        go_through(chrome, place)
        in_the_dark(chrome, place)
        three_bugs(chrome, place)
