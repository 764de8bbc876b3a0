"""What the load test of the sink makes of Spark's progress reports."""

import pytest

from loadtest.spark.sink import Size, compared, timed


def batches(*milliseconds: int, rows: int = 100) -> list[tuple[int, dict[str, int]]]:
    return [(rows, {"triggerExecution": each, "addBatch": each // 2}) for each in milliseconds]


def test_the_first_batch_is_apart() -> None:
    found = timed(batches(5000, 100, 300, 100), Size(3, 100))
    assert (found["first_seconds"], found["batch_seconds"], found["rows_per_second"]) == (5.0, 0.1, 600)
    assert found["parts"]["addBatch"] == 0.05


def test_a_query_that_ran_in_other_batches_is_not_measured() -> None:
    with pytest.raises(AssertionError, match="a query ran in 3 batches"):
        timed(batches(1, 1, 1), Size(3, 100))


def test_a_way_is_compared_with_the_same_round() -> None:
    baseline = [timed(batches(0, each), Size(1, 100)) for each in (100, 200, 400)]
    ours = [timed(batches(0, each), Size(1, 100)) for each in (125, 200, 400)]
    found = compared(ours, baseline)
    assert found["lost"] == {"median": 0.0, "range": [0.0, 0.2], "rounds": [0.2, 0.0, 0.0]}
    assert found["more"]["range"] == [0.0, 0.025]
    assert found["meets"] == {"lost": True, "more": True}
    assert compared(baseline, baseline)["lost"]["range"] == [0.0, 0.0]


def test_a_target_that_is_missed_is_told() -> None:
    baseline, ours = ([timed(batches(0, each), Size(1, 100))] for each in (1000, 1101))
    assert compared(ours, baseline)["meets"] == {"lost": False, "more": False}
