"""The metrics are those of the newest statuses, complete from the first scrape on."""

from __future__ import annotations

import math
from collections.abc import Callable
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


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def board(clocks: Clocks) -> Board:
    return Board(monotonic=clocks.monotonic, now=clocks.now)


@pytest.fixture
def scrape(board: Board, clocks: Clocks) -> Callable[[], str]:
    registry = CollectorRegistry()
    for collector in (
        MatcherCollector(board.views),
        StatusCollector(board.views, clocks.now),
    ):
        registry.register(collector)
    metrics = exposition(registry)

    def text() -> str:
        return metrics()[0].decode()

    return text


def series(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(text)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(text: str, name: str, **labels: str) -> float:
    return series(text)[f"twinstream_{name}", frozenset({"comparison": NAME, **labels}.items())]


def test_every_series_but_those_of_partitions_is_there_before_the_first_status(
    board: Board, scrape: Callable[[], str]
) -> None:
    board.expect(expectation())
    before = series(scrape())
    board.accept(status())
    after = series(scrape())
    new = after.keys() - before.keys()
    assert all("partition" in dict(labels) for _, labels in new)
    assert before.keys() <= after.keys()


def test_what_known_differences_explain_is_told_by_rule_also_where_it_is_nothing(
    board: Board, scrape: Callable[[], str]
) -> None:
    board.accept(status(explained_by_rule={"PRICE-17": 1200, "LATE": 0}))
    text = scrape()
    assert value(text, "explained_differences", rule="PRICE-17") == 1200
    assert value(text, "explained_differences", rule="LATE") == 0


def test_counters_and_histograms_start_at_zero(board: Board, scrape: Callable[[], str]) -> None:
    board.expect(expectation())
    found = {
        key: it for key, it in series(scrape()).items() if key[0].endswith(("_total", "_bucket", "_sum"))
    }
    assert len(found) > 20
    assert set(found.values()) == {0.0}


def test_the_verdict_is_a_state_set(board: Board, scrape: Callable[[], str]) -> None:
    board.accept(diverged())
    text = scrape()
    states = ("PENDING", "EQUIVALENT", "DIVERGED", "INCONCLUSIVE")
    assert [value(text, "verdict", verdict=state) for state in states] == [0, 0, 1, 0]
    assert [value(text, "gate", state=state) for state in ("pass", "fail", "undecided")] == [0, 1, 0]


def test_counts_are_those_of_the_status(board: Board, scrape: Callable[[], str]) -> None:
    found, closed = counts(changed=2, missing=1), counts(changed=2)
    board.accept(diverged(divergences=found, closed_divergences=closed, suspicions=4))
    text = scrape()
    assert value(text, "events_total", side="reference") == 5012
    assert value(text, "matched_total") == 5000
    assert value(text, "unmatched", side="candidate") == 4
    assert value(text, "divergences_total", kind="changed") == 2
    assert value(text, "divergences_total", kind="missing") == 0, "it is provisional"
    assert value(text, "account_events", side="reference", state="divergent") == 1
    assert value(text, "suspicions") == 4


def test_lag_is_per_partition_and_not_a_number_while_unknown(board: Board, scrape: Callable[[], str]) -> None:
    progress = Sides(reference=[partition(0, 10, 7), partition(1, 10, None)], candidate=[])
    board.accept(status(progress=progress))
    text = scrape()
    assert value(text, "consumer_lag", side="reference", topic="ads.reference", partition="0") == 7
    assert math.isnan(value(text, "consumer_lag", side="reference", topic="ads.reference", partition="1"))


def test_the_way_to_the_beginning_of_the_log_is_known_once_kafka_was_asked(
    board: Board, scrape: Callable[[], str]
) -> None:
    progress = Sides(reference=[partition(0, 100, first=40), partition(1, 10, first=None)], candidate=[])
    board.accept(status(progress=progress))
    text = scrape()
    labels = {"side": "reference", "topic": "ads.reference"}
    assert value(text, "log_start_offset", partition="0", **labels) == 40
    assert value(text, "retention_headroom_records", partition="0", **labels) == 60
    assert math.isnan(value(text, "log_start_offset", partition="1", **labels))
    assert math.isnan(value(text, "retention_headroom_records", partition="1", **labels))
    assert value(text, "verified_up_to_offset", partition="1", **labels) == 2500


def test_resets_are_counted(board: Board, scrape: Callable[[], str]) -> None:
    board.expect(expectation())
    assert value(scrape(), "resets_total") == 0
    board.accept(status(reset_count=2))
    assert value(scrape(), "resets_total") == 2


def test_a_side_that_is_stalled_and_a_store_that_is_away_are_named(
    board: Board, scrape: Callable[[], str]
) -> None:
    board.accept(status(health=Health(status="degraded", unreachable=["redis"], stalled=["candidate"])))
    text = scrape()
    assert [value(text, "unreachable", kind=kind) for kind in ("kafka", "redis")] == [0, 1]
    assert [value(text, "side_stalled", side=side) for side in ("reference", "candidate")] == [0, 1]
    assert value(text, "standby") == 0


def test_provisional_divergences_are_those_that_are_not_counted_for_good(
    board: Board, scrape: Callable[[], str]
) -> None:
    board.accept(diverged(divergences=counts(changed=2, missing=1), closed_divergences=counts(changed=2)))
    text = scrape()
    assert value(text, "provisional_divergences", kind="missing") == 1
    assert value(text, "provisional_divergences", kind="changed") == 0


def test_evidence_stands_beside_what_is_asked_for(board: Board, scrape: Callable[[], str]) -> None:
    board.expect(expectation())
    text = scrape()
    assert (value(text, "evidence_matches"), value(text, "evidence_required_matches")) == (0, 1000)
    assert (value(text, "evidence_seconds"), value(text, "evidence_required_seconds")) == (0, 300)


def test_histograms_are_cumulative_with_decades_as_edges(board: Board, scrape: Callable[[], str]) -> None:
    board.accept(status())
    text = scrape()
    assert value(text, "match_latency_seconds_bucket", le="0.0001") == 120
    assert value(text, "match_latency_seconds_bucket", le="0.001") == 3920
    assert value(text, "match_latency_seconds_bucket", le="+Inf") == 5000
    assert value(text, "match_latency_seconds_count") == 5000
    assert value(text, "match_latency_seconds_sum") == 52.5
    assert value(text, "event_processing_seconds_bucket", le="1e-05") == 9000


def test_a_silent_matcher_is_unhealthy_and_its_status_ages(
    board: Board, clocks: Clocks, scrape: Callable[[], str]
) -> None:
    board.accept(status())
    assert (value(scrape(), "healthy"), value(scrape(), "status_fresh")) == (1, 1)
    clocks.advance(30)
    text = scrape()
    assert (value(text, "healthy"), value(text, "status_fresh")) == (0, 0)
    assert value(text, "status_age_seconds") == 30


def test_degraded_health_shows_although_the_status_is_fresh(board: Board, scrape: Callable[[], str]) -> None:
    board.accept(status(health=Health(status="degraded", reasons=["One side is silent."])))
    assert (value(scrape(), "healthy"), value(scrape(), "status_fresh")) == (0, 1)


def test_falls_of_a_matcher_are_counted_and_a_crash_loop_shows(
    board: Board, scrape: Callable[[], str]
) -> None:
    board.accept(status())
    assert (value(scrape(), "matcher_falls_total"), value(scrape(), "matcher_crash_loop")) == (0, 0)
    for _ in range(3):
        board.lost(status().name, "its matcher failed")
    assert (value(scrape(), "matcher_falls_total"), value(scrape(), "matcher_crash_loop")) == (3, 1)


def test_the_age_of_the_checkpoint_counts_from_the_start_before_the_first(
    board: Board, clocks: Clocks, scrape: Callable[[], str]
) -> None:
    board.accept(status(checkpoint=CheckpointInfo(), started_at=START - timedelta(seconds=40)))
    assert value(scrape(), "checkpoint_age_seconds") == 40
    assert value(scrape(), "checkpoint_timestamp_seconds") == 0
    clocks.advance(1)
    board.accept(status(at=clocks.now()))
    assert value(scrape(), "checkpoint_age_seconds") == 1


def test_the_memory_in_the_store_is_0_before_it_is_known(
    board: Board, clocks: Clocks, scrape: Callable[[], str]
) -> None:
    board.accept(status(checkpoint=CheckpointInfo()))
    assert value(scrape(), "store_memory_bytes") == 0
    clocks.advance(1)
    board.accept(status(at=clocks.now(), checkpoint=CheckpointInfo(store_bytes=4096)))
    assert value(scrape(), "store_memory_bytes") == 4096


def test_names_have_the_prefix_and_labels_are_the_few_that_are_declared(
    board: Board, scrape: Callable[[], str]
) -> None:
    board.accept(status())
    for name, labels in series(scrape()):
        assert name.startswith("twinstream_")
        assert {label for label, _ in labels} <= LABELS
