"""A very short run of the load test of the sink, so that it keeps running."""

import pytest

from loadtest.spark.sink import WAYS, Bench, Size, measure
from tests.integration.spark.conftest import Pipelines
from tests.support.spark import SOCKETS

pytestmark = [SOCKETS, pytest.mark.requires_kafka, pytest.mark.requires_spark, pytest.mark.timeout(300)]


@pytest.mark.nightly
def test_every_way_to_write_is_measured(pipelines: Pipelines) -> None:
    bench = Bench(pipelines.spark, pipelines.kafka, pipelines.folder)
    ways = measure(bench, "json", "tiny", Size(1, 20), rounds=1)["ways"]
    assert list(ways) == list(WAYS)
    assert all(found["batch_seconds"] > 0 and found["cpu_us"] > 0 for found in ways.values())
    assert ways["kafka"]["lost"] == {"median": 0, "range": [0, 0], "rounds": [0]}
