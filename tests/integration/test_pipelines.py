"""The two versions of the advertising job agree on real Spark and Kafka, and each bug differs as it claims.

One Spark session runs everything that needs no process of its own; a second part submits both jobs as a user
does, stops them and lets them go on.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from threading import Event as Flag
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from deploy.embedded.kafka import Kafka
from deploy.embedded.processes import Process
from deploy.embedded.spark import submit
from loadtest.ad_events import ADS, AdEvents, ad_name
from loadtest.generator import producer
from loadtest.schedule import Schedule
from tests.support.spark import SOCKETS
from tests.support.waiting import eventually

pytestmark = [SOCKETS, pytest.mark.requires_kafka, pytest.mark.requires_spark, pytest.mark.timeout(600)]

PIPELINES = Path(__file__).parents[2] / "deploy" / "pipelines"
PARTITIONS = 3
EVENTS = 20_000
RATE = 500
START_MS = 1_700_000_000_000
CLOSED_BEFORE_MS = START_MS + EVENTS * 1000 // RATE - 10_000
"""Windows that end before the newest event less the watermark are written."""

Row = dict[str, Any]


def new_topic(kafka: Kafka) -> str:
    return kafka.create_topic(f"ads-{uuid.uuid4().hex[:12]}", partitions=PARTITIONS)


@dataclass(frozen=True)
class Bench:
    """One session, the modules of the two versions, and a topic with the events of a run."""

    spark: SparkSession
    kafka: Kafka
    events: str
    folder: Path
    reference: ModuleType
    candidate: ModuleType

    def topic(self) -> str:
        return new_topic(self.kafka)

    def options(self, *arguments: str) -> argparse.Namespace:
        checkpoint = self.folder / uuid.uuid4().hex
        fixed = ["--brokers", self.kafka.brokers, "--checkpoint", str(checkpoint), "--input", self.events]
        parsed: argparse.Namespace = self.candidate.arguments().parse_args([*fixed, *arguments])
        return parsed

    def run(self, version: str, query: str, *arguments: str) -> list[Row]:
        """Run one query of one version over all events in three batches; what it wrote, topic order."""
        topic = self.topic()
        batches = ["--available-now", "--max-offsets", str(EVENTS // 3 + 1)]
        options = self.options(f"--{query}-topic", topic, *batches, *arguments)
        stopping = () if version == "reference" else (Flag(),)
        for running in getattr(self, version).start(self.spark, options, *stopping):
            running.awaitTermination()
        return read(self.kafka, topic)


@pytest.fixture(scope="module")
def bench(session: SparkSession, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The session is that of all tests of a process: Spark has only one, and whoever ends it ends all."""
    folder = tmp_path_factory.mktemp("pipelines")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PIPELINES))
        job, reference, candidate = map(importlib.import_module, ("ads_job", "reference", "candidate"))
        assert job.session("ads-tests").sparkContext is session.sparkContext
        events = new_topic(kafka)
        produce(kafka, events, 0, EVENTS)
        yield Bench(session, kafka, events, folder, reference, candidate)


def produce(kafka: Kafka, topic: str, first: int, last: int) -> None:
    """Write events as the generator does; the producer must be idempotent, or a retry changes their order."""
    failed: list[object] = []
    writer = producer(kafka.brokers, lambda error, _message: failed.append(error))
    for key, value in AdEvents(1, START_MS, Schedule(RATE)).between(first, last):
        writer.produce(topic, value, key)
    assert writer.flush(60) == 0
    assert not failed


def read(kafka: Kafka, topic: str) -> list[Row]:
    """All records of a topic as values, partition by partition."""
    settings = {"bootstrap.servers": kafka.brokers, "group.id": "tests", "isolation.level": "read_committed"}
    rows = []
    with closing(Consumer(settings)) as consumer:
        for partition in range(PARTITIONS):
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([place])
            while place.offset < end:
                for message in consumer.consume(1000, timeout=0.2):
                    rows.append(json.loads(message.value()))
                    assert message.key().decode() == rows[-1].get("ad_id", rows[-1].get("campaign_id"))
                    place.offset = message.offset() + 1
    return rows


def size(kafka: Kafka, topic: str) -> int:
    """How many records a topic has (the sinks write no transactions, so offsets have no gaps)."""
    with closing(Consumer({"bootstrap.servers": kafka.brokers, "group.id": "tests"})) as consumer:
        places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        return sum(consumer.get_watermark_offsets(place, timeout=10)[1] for place in places)


def bag(rows: list[Row]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def by_ad(rows: list[Row], *fields: str) -> dict[str, list[tuple[Any, ...]]]:
    sequences = defaultdict(list)
    for row in rows:
        sequences[row["ad_id"]].append(tuple(row[field] for field in fields or ("campaign_id", "event_time")))
    return sequences


@cache
def expected_views(count: int = EVENTS) -> tuple[tuple[str, str, int], ...]:
    """Campaign, ad and time of each view, straight from the generator."""
    values = (json.loads(value) for _, value in AdEvents(1, START_MS, Schedule(RATE)).between(0, count))
    campaigns = {ad_name(ad): f"campaign-{ad // 10:02d}" for ad in range(ADS)}
    return tuple(
        (campaigns[value["ad_id"]], value["ad_id"], value["event_time"])
        for value in values
        if value["event_type"] == "view"
    )


def as_rows(views: tuple[tuple[str, str, int], ...]) -> list[Row]:
    return [dict(zip(("campaign_id", "ad_id", "event_time"), view, strict=True)) for view in views]


@pytest.fixture(scope="module")
def reference_views(bench: Bench) -> list[Row]:
    return bench.run("reference", "views")


def test_the_input_has_the_events_of_an_ad_in_order(bench: Bench) -> None:
    views = [row for row in read(bench.kafka, bench.events) if row["event_type"] == "view"]
    assert by_ad(views, "event_time") == by_ad(as_rows(expected_views()), "event_time")


def test_the_reference_writes_every_view_once_and_an_ad_in_order(reference_views: list[Row]) -> None:
    wanted = as_rows(expected_views())
    assert bag(reference_views) == bag(wanted)
    assert by_ad(reference_views) == by_ad(wanted)


def test_the_candidate_writes_the_same_views_in_another_order_except_within_an_ad(
    bench: Bench, reference_views: list[Row]
) -> None:
    views = bench.run("candidate", "views")
    assert bag(views) == bag(reference_views)
    assert by_ad(views) == by_ad(reference_views)
    assert views != reference_views


def test_both_count_the_views_of_every_closed_window(bench: Bench) -> None:
    windows = Counter((campaign, at - at % 10_000) for campaign, _, at in expected_views())
    wanted = {(*key, key[1] + 10_000): n for key, n in windows.items() if key[1] + 10_000 < CLOSED_BEFORE_MS}
    for version in ("reference", "candidate"):
        rows = bench.run(version, "counts")
        named = itemgetter("campaign_id", "window_start", "window_end")
        counted = {named(row): row["views"] for row in rows}
        assert len(counted) == len(rows)
        assert counted == wanted


@pytest.mark.nightly
def test_drop_loses_views_of_one_campaign_now_and_then(bench: Bench, reference_views: list[Row]) -> None:
    views = bench.run("candidate", "views", "--fault", "drop", "--fault-seed", "7")
    lost = bag(reference_views) - bag(views)
    assert not bag(views) - bag(reference_views)
    assert {dict(row)["campaign_id"] for row in lost} == {"campaign-07"}
    assert any(row["campaign_id"] == "campaign-07" for row in views)
    assert min(dict(row)["event_time"] for row in lost) < START_MS + 10_000


@pytest.mark.nightly
def test_duplicate_writes_some_views_twice_side_by_side(bench: Bench, reference_views: list[Row]) -> None:
    views = bench.run("candidate", "views", "--fault", "duplicate")
    doubled = bag(views) - bag(reference_views)
    assert not bag(reference_views) - bag(views)
    assert len(reference_views) / 100 < doubled.total() < len(reference_views) / 25
    for ad, sequence in by_ad(views).items():
        assert list(dict.fromkeys(sequence)) == list(dict.fromkeys(by_ad(reference_views)[ad]))


@pytest.mark.nightly
def test_field_gives_some_views_a_wrong_campaign_in_their_place(
    bench: Bench, reference_views: list[Row]
) -> None:
    views = bench.run("candidate", "views", "--fault", "field")
    assert by_ad(views, "event_time") == by_ad(reference_views, "event_time")
    wrong = bag(views) - bag(reference_views)
    assert len(reference_views) / 100 < wrong.total() < len(reference_views) / 25


@pytest.mark.nightly
def test_reorder_swaps_views_within_some_ads_only(bench: Bench, reference_views: list[Row]) -> None:
    views = bench.run("candidate", "views", "--fault", "reorder")
    assert bag(views) == bag(reference_views)
    right, wrong = by_ad(reference_views), by_ad(views)
    swapped = [ad for ad, sequence in wrong.items() if sequence != right[ad]]
    assert 0 < len(swapped) < len(right)


@pytest.mark.nightly
def test_stall_stops_both_outputs_while_the_queries_live(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.candidate.ads_faults, "STALL_AFTER_SECONDS", 0.5)
    views, stopping = bench.topic(), Flag()
    options = bench.options("--views-topic", views, "--fault", "stall", "--max-offsets", "1000")
    (query,) = bench.candidate.start(bench.spark, options, stopping)
    eventually(lambda: size(bench.kafka, views), seconds=120, what="a first output comes")
    still = partial(_stands_still, bench.kafka, views, seconds=3)
    assert eventually(still, seconds=60, what="the output stops") < len(expected_views())
    assert query.isActive
    stopping.set()
    eventually(lambda: not query.isActive, seconds=30, what="the stalled query ends")


def _stands_still(kafka: Kafka, topic: str, *, seconds: float) -> int:
    """How much stands in a topic, if nothing was added for so long."""
    written = size(kafka, topic)
    time.sleep(seconds)
    return written if size(kafka, topic) == written else 0


@pytest.mark.nightly
def test_another_campaign_table_can_be_given(bench: Bench, tmp_path: Path) -> None:
    table = tmp_path / "campaigns.csv"
    table.write_text("ad_id,campaign_id\nad-001,it's one\nad-002,two\n")
    views = bench.run("candidate", "views", "--campaigns", str(table))
    campaigns = {row["ad_id"]: row["campaign_id"] for row in views}
    assert campaigns == {"ad-001": "it's one", "ad-002": "two"}


def test_a_campaign_table_without_its_columns_is_refused(bench: Bench, tmp_path: Path) -> None:
    table = tmp_path / "campaigns.csv"
    table.write_text("ad,campaign\n")
    options = bench.options("--views-topic", "v", "--campaigns", str(table))
    with pytest.raises(SystemExit, match="the first line must name the columns ad_id and campaign_id"):
        bench.reference.start(bench.spark, options)


def submitted(
    kafka: Kafka, events: str, folder: Path, version: str, *arguments: str
) -> Callable[[], Process]:
    """A way to start the same application, with its checkpoint, more than once."""
    own = ["--brokers", kafka.brokers, "--input", events, "--checkpoint", str(folder / f"{version}-state")]
    script, given = PIPELINES / f"{version}.py", [*own, *arguments]
    conf = PIPELINES / "conf"
    return lambda: submit(version, script, given, folder=folder, conf_folder=conf, grace_seconds=45)


@pytest.mark.nightly
def test_submitted_jobs_that_are_stopped_and_go_on_write_every_view_once(
    kafka: Kafka, tmp_path: Path
) -> None:
    events, *outputs = (new_topic(kafka) for _ in range(3))
    topics = dict(zip(("reference", "candidate"), outputs, strict=True))
    jobs = {
        version: submitted(kafka, events, tmp_path, version, "--views-topic", topic)
        for version, topic in topics.items()
    }
    half = len(expected_views(EVENTS // 2))
    for first, count in ((0, half), (EVENTS // 2, len(expected_views()))):
        produce(kafka, events, first, first + EVENTS // 2)
        with ExitStack() as running:
            processes = [running.enter_context(job()) for job in jobs.values()]
            for version, topic in topics.items():
                what = f"{version} writes {count} views"
                eventually(
                    lambda t=topic, n=count: size(kafka, t) >= n, seconds=240, what=what, every_seconds=0.5
                )
            for process in processes:
                process.ask_to_stop()
            for process in processes:
                assert process.wait(60) in (0, 143)
    wanted = as_rows(expected_views())
    for topic in topics.values():
        rows = read(kafka, topic)
        assert bag(rows) == bag(wanted)
        assert by_ad(rows) == by_ad(wanted)
