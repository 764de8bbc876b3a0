"""The test library runs outputs of PySpark and compares them; on real Spark, without Kafka."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tests.support.spark import SOCKETS
from twinstream.errors import OutputError
from twinstream.spark import check, self_check, strategies
from twinstream.spark.outputs import Input, written_by

pytestmark = [
    SOCKETS,
    pytest.mark.requires_spark,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("session"),
]

SCHEMA = "taxi STRING NOT NULL, fare INT, at TIMESTAMP NOT NULL"
ORDER = {"order": {"per_key": ["taxi"]}}
RIDES = [{"taxi": f"t{n % 3}", "fare": n} for n in range(20)]
RIDE = "taxi STRING, fare INT"


def doubled(rides: DataFrame) -> DataFrame:
    return rides.select("taxi", (fn.col("fare") * 2).alias("fare"))


def added(rides: DataFrame) -> DataFrame:
    return rides.select("taxi", fn.expr("fare + fare AS fare"))


def wrong(rides: DataFrame) -> DataFrame:
    return rides.select("taxi", fn.expr("IF(fare = 7, 0, fare * 2) AS fare"))


def shuffled(rides: DataFrame) -> DataFrame:
    """Loses the order of a taxi: rows go from task to task by what is in them."""
    return rides.repartition(fn.col("fare") % 2)


def test_two_versions_are_compared_on_one_input_in_micro_batches() -> None:
    assert check(ORDER, doubled, added, input=RIDES, schema=RIDE, batches=4).equivalent
    answer = check(ORDER, doubled, wrong, input=RIDES, schema=RIDE, batches=[3, 17])
    assert (answer.verdict, answer.matched, answer.divergences.total) == ("DIVERGED", 19, 2)
    assert answer.examples[0].reference == {"taxi": "t1", "fare": 14}


def test_batch_and_streaming_outputs_are_compared_with_each_other(session: SparkSession) -> None:
    rides = session.createDataFrame([tuple(ride.values()) for ride in RIDES], RIDE).coalesce(1)
    assert check(ORDER, doubled(rides), added, input=rides, batches=2).equivalent
    records = rides.selectExpr("taxi AS key", "to_json(struct(taxi, fare)) AS value")
    assert check(ORDER, records, rides).equivalent, "records of Kafka are compared by their value"


def test_a_record_without_a_value_is_left_out_where_the_comparison_says_so(session: SparkSession) -> None:
    rows = session.sql("""SELECT * FROM VALUES ('a', '{"taxi": 1}'), ('a', NULL) AS t(key, value)""")
    assert check({**ORDER, "decode": {"format": "json", "tombstones": "ignore"}}, rows, rows).matched == 1
    with pytest.raises(OutputError, match="row 2 of the reference has no value: a tombstone is no event; "):
        check(ORDER, rows, rows)


def test_the_input_comes_in_the_batches_that_were_asked_for() -> None:
    def counting(rides: DataFrame) -> DataFrame:
        return rides.groupBy().agg(fn.count(fn.lit(1)).alias("rides"))

    counts = written_by(counting, Input(RIDES, RIDE, [5, 5, 10]), "complete")
    assert [json.loads(value or b"")["rides"] for value in counts] == [5, 10, 20]


@pytest.mark.nightly
def test_a_version_that_loses_its_order_is_found_without_another_one() -> None:
    assert self_check(ORDER, doubled, RIDES, schema=RIDE).equivalent
    found = self_check(ORDER, shuffled, RIDES, schema=RIDE)
    assert not found.equivalent
    assert "micro-batches, " in str(found)
    assert "reordered" in str(found)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (7, "an output is a DataFrame or a function of the input, not int"),
        (doubled, "a function of the input needs `input=`"),
    ],
)
def test_what_is_no_output_is_refused(output: Any, said: str) -> None:
    with pytest.raises(OutputError, match=said):
        check(ORDER, output, output)


def test_a_cut_that_does_not_fit_is_refused() -> None:
    with pytest.raises(OutputError, match="`batches` adds up to 19 rows, and the input has 20"):
        check(ORDER, doubled, doubled, input=RIDES, schema=RIDE, batches=[9, 10])
    with pytest.raises(OutputError, match="the function returned NoneType"):
        check(ORDER, lambda _: None, doubled, input=RIDES, schema=RIDE)  # type: ignore[arg-type,return-value]


MADE = strategies.rows(SCHEMA, keys=["taxi"], time="at", disorder=10, markers=[{"taxi": "end"}])


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MADE)
def test_rows_of_a_strategy_are_out_of_order_by_no_more_than_was_allowed(rows: list[dict[str, Any]]) -> None:
    newest = None
    for row in rows:
        assert newest is None or (newest - row["at"]).total_seconds() <= 10
        newest = row["at"] if newest is None else max(newest, row["at"])


def test_keys_repeat_nulls_come_and_barriers_stand_between() -> None:
    def is_rich(rows: list[dict[str, Any]]) -> bool:
        by_taxi = defaultdict(list)
        for row in rows:
            by_taxi[row["taxi"]].append(row)
        late = any(later["at"] < row["at"] for row, later in pairwise(rows))
        return len(by_taxi) > 2 and None in {row["fare"] for row in rows} and "end" in by_taxi and late

    assert find(MADE, is_rich, settings=settings(phases=[Phase.generate]))


def test_rows_of_a_strategy_shrink() -> None:
    # From one seed: Hypothesis gives a small example, and not always the smallest.
    assert len(find(MADE, lambda rows: any(row["taxi"] == "end" for row in rows), random=Random(0))) == 1


def test_rows_of_a_strategy_are_rows_of_the_schema(session: SparkSession) -> None:
    kinds = (
        "a BOOLEAN, b TINYINT, c BIGINT, d DOUBLE, e DECIMAL(9,2), f STRING, g BINARY, h DATE, "
        "i TIMESTAMP_NTZ, j ARRAY<INT>, k MAP<STRING,INT>, l STRUCT<x: INT, y: STRING>"
    )
    rows = find(strategies.rows(kinds), lambda rows: len(rows) >= 2)
    assert session.createDataFrame(rows, kinds).count() == len(rows)


def test_a_field_that_is_not_there_or_cannot_be_made_is_refused() -> None:
    with pytest.raises(OutputError, match="the schema has no field 'taxo'; it has taxi, fare, at"):
        strategies.rows(SCHEMA, keys=["taxo"]).validate()
    with pytest.raises(OutputError, match="a key is a text or a whole number"):
        strategies.rows("a DOUBLE", keys=["a"]).validate()
