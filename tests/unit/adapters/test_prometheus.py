"""The metrics are those of the newest statuses, complete from the first scrape on."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from tests.support.statuses import (
    NAME,
    START,
    Clocks,
    counts,
    diverged,
    expectation,
    partition,
    status,
)
from twinstream.adapters.metrics.exposition import MatcherCollector, StatusCollector, exposition
from twinstream.api.state.board import Board
from twinstream.status.common import Sides
from twinstream.status.comparison import CheckpointInfo, Health

LABELS = {
    "comparison", "side", "topic", "partition", "kind", "reason", "verdict", "state", "le", "version",
}  # fmt: skip


class Scene:
    """A board and its clocks, and what a scrape of its metrics gives."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self.board = Board(monotonic=self.clocks.monotonic, now=self.clocks.now)
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

    def values(self, name: str, label: str, *states: str) -> list[float]:
        return [self.value(name, **{label: state}) for state in states]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_every_series_but_those_of_partitions_is_there_before_the_first_status(scene: Scene) -> None:
    scene.board.expect(expectation())
    before = scene.series()
    scene.board.accept(status())
    after = scene.series()
    new = after.keys() - before.keys()
    assert all("partition" in dict(labels) for _, labels in new)
    assert before.keys() <= after.keys()


def test_what_known_differences_explain_is_told_by_rule_also_where_it_is_nothing(scene: Scene) -> None:
    scene.board.accept(status(explained_by_rule={"PRICE-17": 1200, "LATE": 0}))
    assert scene.value("explained_differences", rule="PRICE-17") == 1200
    assert scene.value("explained_differences", rule="LATE") == 0


def test_counters_and_histograms_start_at_zero(scene: Scene) -> None:
    scene.board.expect(expectation())
    found = {key: it for key, it in scene.series().items() if key[0].endswith(("_total", "_bucket", "_sum"))}
    assert len(found) > 20
    assert set(found.values()) == {0.0}


def test_the_verdict_is_a_state_set(scene: Scene) -> None:
    scene.board.accept(diverged())
    states = ("PENDING", "EQUIVALENT", "DIVERGED", "INCONCLUSIVE")
    assert [scene.value("verdict", verdict=state) for state in states] == [0, 0, 1, 0]
    assert [scene.value("gate", state=state) for state in ("pass", "fail", "undecided")] == [0, 1, 0]


def test_counts_are_those_of_the_status(scene: Scene) -> None:
    found, closed = counts(changed=2, missing=1), counts(changed=2)
    scene.board.accept(diverged(divergences=found, closed_divergences=closed, suspicions=4))
    assert scene.value("events_total", side="reference") == 5012
    assert scene.value("matched_total") == 5000
    assert scene.value("unmatched", side="candidate") == 4
    assert scene.value("divergences_total", kind="changed") == 2
    assert scene.value("divergences_total", kind="missing") == 0, "it is provisional"
    assert scene.value("account_events", side="reference", state="divergent") == 1
    assert scene.value("suspicions") == 4


def test_lag_is_per_partition_and_not_a_number_while_unknown(scene: Scene) -> None:
    progress = Sides(reference=[partition(0, 10, 7), partition(1, 10, None)], candidate=[])
    scene.board.accept(status(progress=progress))
    assert scene.value("consumer_lag", side="reference", topic="ads.reference", partition="0") == 7
    assert math.isnan(scene.value("consumer_lag", side="reference", topic="ads.reference", partition="1"))


def test_the_way_to_the_beginning_of_the_log_is_known_once_kafka_was_asked(scene: Scene) -> None:
    progress = Sides(reference=[partition(0, 100, first=40), partition(1, 10, first=None)], candidate=[])
    scene.board.accept(status(progress=progress))
    labels = {"side": "reference", "topic": "ads.reference"}
    assert scene.value("log_start_offset", partition="0", **labels) == 40
    assert scene.value("retention_headroom_records", partition="0", **labels) == 60
    assert math.isnan(scene.value("log_start_offset", partition="1", **labels))
    assert math.isnan(scene.value("retention_headroom_records", partition="1", **labels))
    assert scene.value("verified_up_to_offset", partition="1", **labels) == 2500


def test_resets_are_counted(scene: Scene) -> None:
    scene.board.expect(expectation())
    assert scene.value("resets_total") == 0
    scene.board.accept(status(reset_count=2))
    assert scene.value("resets_total") == 2


def test_a_side_that_is_stalled_and_a_store_that_is_away_are_named(scene: Scene) -> None:
    scene.board.accept(status(health=Health(status="degraded", unreachable=["redis"], stalled=["candidate"])))
    assert [scene.value("unreachable", kind=kind) for kind in ("kafka", "redis")] == [0, 1]
    assert [scene.value("side_stalled", side=side) for side in ("reference", "candidate")] == [0, 1]
    assert scene.value("standby") == 0


def test_provisional_divergences_are_those_that_are_not_counted_for_good(scene: Scene) -> None:
    scene.board.accept(
        diverged(divergences=counts(changed=2, missing=1), closed_divergences=counts(changed=2))
    )
    assert scene.value("provisional_divergences", kind="missing") == 1
    assert scene.value("provisional_divergences", kind="changed") == 0


def test_evidence_stands_beside_what_is_asked_for(scene: Scene) -> None:
    scene.board.expect(expectation())
    assert (scene.value("evidence_matches"), scene.value("evidence_required_matches")) == (0, 1000)
    assert (scene.value("evidence_seconds"), scene.value("evidence_required_seconds")) == (0, 300)


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


def test_degraded_health_shows_although_the_status_is_fresh(scene: Scene) -> None:
    scene.board.accept(status(health=Health(status="degraded", reasons=["One side is silent."])))
    assert (scene.value("healthy"), scene.value("status_fresh")) == (0, 1)


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
