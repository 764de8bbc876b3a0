"""Very short runs of the benchmarks that need a Redis, so that they keep running."""

import pytest

from loadtest import day
from loadtest.growth import watched
from loadtest.overhead import BATCH, PARTITIONS, stops, throughput

pytestmark = [pytest.mark.requires_redis, pytest.mark.nightly]


def test_a_short_run_finds_what_was_planted_and_takes_samples():
    result = watched(2 * day.BLOCK * day.LIFE_BLOCKS, samples=8)
    assert result["outcome"]["as_planted"], result["outcome"]
    assert result["outcome"]["replayed"] > 0
    assert result["saves"] > 0
    assert min(sample["matcher"] for sample in result["samples"]) > 0
    assert len(result["quarters"]["redis"]) == 4


@pytest.mark.parametrize("pace", [1.0, 1 / 60])
def test_a_short_run_has_the_time_of_an_event(pace):
    found = throughput(held=BATCH, seconds=0.2, pace=pace)
    assert found["events"] % (2 * PARTITIONS * BATCH) == 0
    assert found["cpu_ns"] > 0


def test_a_short_run_has_its_longest_stop():
    found = stops(held=BATCH, seconds=1.5, changes=1000)
    assert found["stop_ms"] == found["stops_ms"][0] > 0
    assert found["changes_a_second"] > 0
    assert found["waiting_at_the_end"] > BATCH // 2
