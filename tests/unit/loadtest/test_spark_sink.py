"""What the load test of the sink makes of Spark's progress reports."""

from typing import Any

import pytest

from loadtest.spark.sink import Size, compared, timed


def batches(*milliseconds: int, rows: int = 100) -> list[tuple[int, dict[str, int]]]:
    return [(rows, {"triggerExecution": each, "addBatch": each // 2}) for each in milliseconds]


def test_the_first_batch_is_apart() -> None:
    found = timed(batches(5000, 100, 300, 100), Size(3, 100))
    assert (found["first_seconds"], found["batch_seconds"], found["rows_per_second"]) == (5.0, 0.1, 600)
    assert found["parts"]["addBatch"] == 0.05


def test_a_query_that_ran_in_too_few_batches_is_not_measured() -> None:
    with pytest.raises(AssertionError, match="a query ran in 3 batches"):
        timed(batches(1, 1, 1), Size(3, 100))


def test_rows_that_spark_left_for_one_more_batch_do_not_count() -> None:
    assert timed(batches(0, 100, 7), Size(1, 100)) == timed(batches(0, 100), Size(1, 100))


def run(milliseconds: int, cpu_us: float = 1.0) -> dict[str, Any]:
    return {**timed(batches(0, milliseconds), Size(1, 100)), "cpu_us": cpu_us}


def test_a_way_is_compared_with_the_same_round() -> None:
    baseline = [run(100), run(200), run(400, 2.0)]
    ours = [run(125), run(200), run(400, 3.0)]
    found = compared(ours, baseline)
    assert found["lost"] == {"median": 0.0, "range": [0.0, 0.2], "rounds": [0.2, 0.0, 0.0]}
    assert found["more"]["range"] == [0.0, 0.025]
    assert found["cpu"]["range"] == [0.0, 0.5]
    assert found["meets"] == {"lost": True, "more": True}
    assert compared(baseline, baseline)["lost"]["range"] == [0.0, 0.0]


def test_a_target_that_is_missed_is_told() -> None:
    assert compared([run(1101)], [run(1000)])["meets"] == {"lost": False, "more": False}
