"""The metrics are those of the newest statuses, complete from the first scrape on."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from loadtest.memory import ManualClock
from tests.support.statuses import (
    NAME,
    START,
    Clocks,
    counts,
    diverged,
    partition,
    status,
)
from tests.support.workers import SPEC, board_of
from twinstream.api.metrics import MatcherCollector, StatusCollector, exposition
from twinstream.spec.load import loads
from twinstream.status.common import Sides
from twinstream.status.comparison import CheckedSide, CheckpointInfo, CheckStatus, Health
from twinstream.status.groups import Group

LABELS = {
    "comparison", "side", "topic", "partition", "kind", "fields", "reason", "verdict", "state", "le",
    "version",
}  # fmt: skip


class Scene:
    """A board and its clocks, and what a scrape of its metrics gives."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self.board = self.clocks.board()
        registry = CollectorRegistry()
        registry.register(MatcherCollector(self.board.views))
        registry.register(StatusCollector(self.board.views, self.clocks.now))
        self._metrics = exposition(registry)

    def series(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self._metrics()[0].decode())
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        return self.series()[f"twinstream_{name}", frozenset({"comparison": NAME, **labels}.items())]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_every_series_but_those_of_partitions_is_there_before_the_first_status(scene: Scene) -> None:
    before = scene.series()
    scene.board.accept(status())
    after = scene.series()
    new = after.keys() - before.keys()
    assert all("partition" in dict(labels) for _, labels in new)
    assert before.keys() <= after.keys()


def test_checks_and_known_differences_are_there_before_the_first_status() -> None:
    rule = "{id: r, when: {divergences: [missing]}, owner: me, expires: 2999-01-01, ceiling: {count: 1}}"
    file = f"{SPEC}checks: [{{id: c, not_null: [k], side: candidate}}]\nknown_differences: [{rule}]\n"
    clock, registry = ManualClock(), CollectorRegistry()
    registry.register(StatusCollector(board_of(loads(file), clock).views, clock.now))
    told = exposition(registry)()[0].decode()
    assert 'twinstream_check_violations_total{check="c",comparison="test",side="candidate"} 0.0' in told
    assert 'twinstream_explained_differences{comparison="test",rule="r"} 0.0' in told


FOUND = diverged(
    divergences=counts(changed=2, missing=1),
    closed_divergences=counts(changed=2),
    counted_divergences=counts(changed=1, extra=1),
    suspicions=4,
    reset_count=2,
    explained_by_rule={"PRICE-17": 1200, "LATE": 0},
    checks=[
        CheckStatus(
            id="keyed",
            property="key_partition",
            text="",
            gate="fail",
            candidate=CheckedSide(state="violated", checked=9, violations=3),
        ),
        CheckStatus(
            id="counted",
            property="once",
            text="",
            gate="ignore",
            reference=CheckedSide(state="undecided", checked=9, violations=1),
            candidate=CheckedSide(state="violated", checked=9, violations=1),
        ),
    ],
    health=Health(status="degraded", unreachable=["redis"], stalled=["candidate"]),
    progress=Sides(
        reference=[partition(0, 100, 7, first=40), partition(1, 10, None, first=None)], candidate=[]
    ),
)


@pytest.mark.parametrize(
    ("name", "label", "values"),
    [
        ("verdict", "verdict", {"PENDING": 0, "EQUIVALENT": 0, "DIVERGED": 1, "INCONCLUSIVE": 0}),
        ("gate", "state", {"pass": 0, "fail": 1, "undecided": 0}),
        ("unreachable", "kind", {"kafka": 0, "redis": 1}),
        ("side_stalled", "side", {"reference": 0, "candidate": 1}),
        ("events_total", "side", {"reference": 5012}),
        ("unmatched", "side", {"candidate": 4}),
        ("divergences_total", "kind", {"changed": 1, "extra": 1, "missing": 0}),
        ("provisional_divergences", "kind", {"changed": 0, "extra": 0, "missing": 1}),
        ("explained_differences", "rule", {"PRICE-17": 1200, "LATE": 0}),
        ("check_violations_total", "check", {"keyed": 3, "counted": 1}),
        ("check_violated", "check", {"keyed": 1, "counted": 0}),
        ("consumer_lag", "partition", {"0": 7, "1": math.nan}),
        ("log_start_offset", "partition", {"0": 40, "1": math.nan}),
        ("retention_headroom_records", "partition", {"0": 60, "1": math.nan}),
        ("verified_up_to_offset", "partition", {"1": 2500}),
    ],
)
def test_a_metric_is_what_the_status_says(
    scene: Scene, name: str, label: str, values: dict[str, float]
) -> None:
    scene.board.accept(FOUND)
    place = {"side": "reference", "topic": "ads.reference"} if label == "partition" else {}
    place |= {"side": "candidate"} if label == "check" else {}
    found = {value: scene.value(name, **{label: value}, **place) for value in values}
    assert found == pytest.approx(values, nan_ok=True)


def test_the_largest_groups_are_series_by_kind_and_fields(scene: Scene) -> None:
    def group(count: int, kind: Any = "changed", *fields: str, more: int = 0) -> Group:
        return Group(kind=kind, fields=list(fields), more_fields=more, count=count)

    masked = "fares.‹name, 3 characters, #505bd68a›"
    found = [
        group(7868, "changed", "campaign_id"),
        group(500, "changed", "a", "b", "c", "d", more=2),
        group(400, "changed", "a", "b", "c", "e", more=2),
        group(30, "changed", masked),
        group(12, "missing"),
        Group(kind="changed", fields=None, count=5),
        group(1, "extra"),
        Group(kind="others", count=9),
    ]
    scene.board.accept(diverged(groups=found))
    told = {
        (dict(labels)["kind"], dict(labels)["fields"]): value
        for (name, labels), value in scene.series().items()
        if name == "twinstream_divergence_group"
    }
    assert told == {
        ("changed", "campaign_id"): 7868,
        ("changed", "a, b, c and 3 more"): 900,
        ("changed", masked): 30,
        ("missing", ""): 12,
        ("others", ""): 9,
    }


def test_metrics_without_more_labels_are_those_of_the_status_too(scene: Scene) -> None:
    names = ("evidence_matches", "evidence_required_matches", "evidence_seconds", "evidence_required_seconds")
    assert [scene.value(name) for name in names] == [0, 1000, 0, 300]
    assert scene.value("resets_total") == 0
    scene.board.accept(FOUND)
    names = ("matched_total", "suspicions", "resets_total", "standby", "healthy", "status_fresh")
    assert [scene.value(name) for name in names] == [5000, 4, 2, 0, 0, 1]
    assert scene.value("account_events", side="reference", state="divergent") == 1


def test_counters_and_histograms_start_at_zero(scene: Scene) -> None:
    found = {key: it for key, it in scene.series().items() if key[0].endswith(("_total", "_bucket", "_sum"))}
    assert len(found) > 20
    assert set(found.values()) == {0.0}


def test_histograms_are_cumulative_with_decades_as_edges(scene: Scene) -> None:
    scene.board.accept(status())
    assert scene.value("match_latency_seconds_bucket", le="0.0001") == 120
    assert scene.value("match_latency_seconds_bucket", le="0.001") == 3920
    assert scene.value("match_latency_seconds_bucket", le="+Inf") == 5000
    assert scene.value("match_latency_seconds_count") == 5000
    assert scene.value("match_latency_seconds_sum") == 52.5
    assert scene.value("event_processing_seconds_bucket", le="1e-05") == 9000


def test_a_silent_matcher_is_unhealthy_and_its_status_ages(scene: Scene) -> None:
    scene.board.accept(status())
    assert (scene.value("healthy"), scene.value("status_fresh")) == (1, 1)
    scene.clocks.advance(30)
    assert (scene.value("healthy"), scene.value("status_fresh")) == (0, 0)
    assert scene.value("status_age_seconds") == 30


def test_falls_of_a_matcher_are_counted_and_a_crash_loop_shows(scene: Scene) -> None:
    scene.board.accept(status())
    assert (scene.value("matcher_falls_total"), scene.value("matcher_crash_loop")) == (0, 0)
    for _ in range(3):
        scene.board.lost(status().name, "its matcher failed")
    assert (scene.value("matcher_falls_total"), scene.value("matcher_crash_loop")) == (3, 1)


def test_the_age_of_the_checkpoint_counts_from_the_start_before_the_first(scene: Scene) -> None:
    scene.board.accept(status(checkpoint=CheckpointInfo(), started_at=START - timedelta(seconds=40)))
    assert scene.value("checkpoint_age_seconds") == 40
    assert scene.value("checkpoint_timestamp_seconds") == 0
    scene.clocks.advance(1)
    scene.board.accept(status(at=scene.clocks.now()))
    assert scene.value("checkpoint_age_seconds") == 1


def test_the_memory_in_the_store_is_0_before_it_is_known(scene: Scene) -> None:
    scene.board.accept(status(checkpoint=CheckpointInfo()))
    assert scene.value("store_memory_bytes") == 0
    scene.clocks.advance(1)
    scene.board.accept(status(at=scene.clocks.now(), checkpoint=CheckpointInfo(store_bytes=4096)))
    assert scene.value("store_memory_bytes") == 4096


def test_names_have_the_prefix_and_labels_are_the_few_that_are_declared(scene: Scene) -> None:
    scene.board.accept(status())
    for name, labels in scene.series():
        assert name.startswith("twinstream_")
        assert {label for label, _ in labels} <= LABELS
