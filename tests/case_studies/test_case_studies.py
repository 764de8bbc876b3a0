"""The case studies of the DiffStream paper: each bug is found, and nothing harmless is called one."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.case_studies import pipelines as p
from tests.case_studies.reducers import KEYS, REDUCERS, WELL_FORMED, Reducer, arbitrary, frame, reduced
from tests.support.spark import SOCKETS
from twinstream.answers import Answer
from twinstream.spark import check

pytestmark = [SOCKETS, pytest.mark.requires_spark, pytest.mark.timeout(300)]

Spec = dict[str, Any]
PAGE = Path(__file__).parents[2] / "docs/case-studies.md"

# -- reducers ----------------------------------------------------------------------------------------------

RESULTS: Spec = {
    "order": {"per_key": ["key"]},
    "equality": {"compare_only": ["key", "result"]},
    "identity": ["key"],
}
"""The results of a key, in their order; the input for them is beside them, and not compared."""
ANY = {
    "MaxRow": "tests.case_studies.right:is_a_largest_row",
    "FirstN": "tests.case_studies.right:is_n_of_the_rows",
}
"""The reducers of which any right result will do, and which are right."""


def any_right(name: str) -> Spec:
    """Of the results for one input all right ones are equal."""
    return {**RESULTS, "equality": {"unordered": ["group"], "any_of": {"result": ANY[name]}}}


def of_reducer(session: SparkSession, spec: Spec, reducer: Reducer, rows: Any) -> Answer:
    """A reducer behind one worker, and behind two."""
    given = frame(session, rows)
    return check(spec, reduced(given, reducer, 1), reduced(given, reducer, 2))


@pytest.mark.parametrize("name", REDUCERS)
def test_the_bug_of_a_reducer_on_arbitrary_input_is_found(session: SparkSession, name: str) -> None:
    answer = of_reducer(session, RESULTS, REDUCERS[name], arbitrary())
    assert answer.verdict == "DIVERGED"
    is_told(answer)


@pytest.mark.parametrize("name", REDUCERS)
def test_a_reducer_whose_input_makes_up_for_the_order_is_not_called_wrong(
    session: SparkSession, name: str
) -> None:
    bag = {"compare_only": ["key", "result"], "unordered": ["result"]}
    spec = {**RESULTS, "equality": bag} if name == "FirstN" else RESULTS
    answer = of_reducer(session, spec, REDUCERS[name], WELL_FORMED[name]())
    assert answer.verdict == "EQUIVALENT"
    assert answer.matched >= KEYS


@pytest.mark.parametrize("name", ANY)
def test_a_reducer_of_which_any_right_result_will_do_is_not_called_wrong(
    session: SparkSession, name: str
) -> None:
    answer = of_reducer(session, any_right(name), REDUCERS[name], arbitrary())
    assert (answer.verdict, answer.matched) == ("EQUIVALENT", KEYS)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("MaxRow", Reducer("aggregate(rows, rows[0], (best, row) -> IF(row.x > best.x, row, best))")),
        ("FirstN", Reducer("array_repeat(rows[0], 2)")),
    ],
)
def test_a_wrong_result_is_found_where_any_right_one_will_do(
    session: SparkSession, name: str, wrong: Reducer
) -> None:
    given = frame(session, arbitrary())
    answer = check(any_right(name), reduced(given, REDUCERS[name], 1), reduced(given, wrong, 1))
    assert answer.verdict == "DIVERGED"
    is_told(answer)


# -- pipelines ---------------------------------------------------------------------------------------------

Version = Callable[[DataFrame], DataFrame]
SUMS: Spec = {"order": "total", "identity": ["barrier"]}
STEPS: Spec = {
    "kinds": {kind: {"where": {"kind": kind}} for kind in ("inc", "dec", "barrier")},
    "order": {"dependent": [["inc", "dec"], ["barrier", "*"]]},
}
TAXI: Spec = {"order": {"per_key": ["taxi"]}}
TIPS: Spec = {"order": "unordered", "identity": ["hour", "driver"]}
TOPIC: Spec = {"order": "total", "identity": ["text"]}
STREAMS = [(p.hourly_tips, "EQUIVALENT"), (p.hourly_tips_by_driver, "DIVERGED")]
CASES: list[tuple[Spec, list[Any], str, Version, Version, str]] = [
    (SUMS, p.NUMBERS, p.SUMS, p.sums, p.sums_in_parallel, "EQUIVALENT"),
    (SUMS, p.NUMBERS, p.SUMS, p.sums, p.sums_in_naive_parallel, "DIVERGED"),
    (STEPS, p.CHANGES, p.STEPS, p.steps, p.steps_in_parallel, "EQUIVALENT"),
    (STEPS, p.CHANGES, p.STEPS, p.steps, p.steps_in_naive_parallel, "DIVERGED"),
    (TAXI, p.DRIVEN, p.POSITIONS, p.positions, p.key_then_project, "EQUIVALENT"),
    (TAXI, p.DRIVEN, p.POSITIONS, p.positions, p.project_then_key, "DIVERGED"),
    (TOPIC, p.TEXTS, p.WORDS, p.topics, p.topics_in_parallel, "EQUIVALENT"),
    (TOPIC, p.TEXTS, p.WORDS, p.topics, p.topics_in_naive_parallel, "DIVERGED"),
]


@pytest.mark.parametrize(
    ("spec", "rows", "schema", "first", "other", "verdict"), CASES, ids=[case[4].__name__ for case in CASES]
)
def test_a_pipeline_in_parallel_is_told_from_one_that_is_not_the_same(
    session: SparkSession,
    spec: Spec,
    rows: list[Any],
    schema: str,
    first: Version,
    other: Version,
    verdict: str,
) -> None:
    given = session.createDataFrame(rows, schema)
    answer = check(spec, first(given), other(given))
    assert answer.verdict == verdict, answer
    is_told(answer)


@pytest.mark.parametrize(("version", "verdict"), STREAMS)
def test_the_stream_of_hourly_tips_is_held_to_the_same_query_on_all_fares(
    session: SparkSession, version: Version, verdict: str
) -> None:
    begin = dt.datetime(2024, 1, 1)  # noqa: DTZ001 - Spark's timestamps have no zone in Python
    rows = [(begin + dt.timedelta(minutes=minute), *fare) for minute, *fare in p.TIPPED]
    fares = session.createDataFrame(rows, p.FARES)
    # The hour of the last fare is never closed in a stream.
    at_once = p.hourly_tips(fares).where("tips > 0")
    answer = check(TIPS, at_once, version, input=fares, batches=2)
    assert answer.verdict == verdict, answer
    is_told(answer)


def test_the_tables_of_the_page_are_what_is_tested() -> None:
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines()]
    reducers = [(row[0], row[1], row[4]) for row in rows if len(row) == 5 and row[0] in REDUCERS]
    assert reducers == [
        *((name, "arbitrary", "DIVERGED") for name in REDUCERS),
        *((name, "well-formed", "EQUIVALENT") for name in WELL_FORMED),
        *((name, "arbitrary", "EQUIVALENT") for name in ANY),
    ]
    compared = [(row[0], row[1], row[3]) for row in rows if len(row) == 4 and row[0] in vars(p)]
    assert compared == [
        *((first.__name__, other.__name__, verdict) for _, _, _, first, other, verdict in CASES),
        *(("hourly_tips", version.__name__, verdict) for version, verdict in STREAMS),
    ]


def is_told(answer: Answer) -> None:
    """What the answer says of a difference is on the page, word by word; positions may be others."""
    if answer.verdict == "DIVERGED":
        assert words(answer.examples[0].text) in words(PAGE.read_text()), answer.examples[0].text


def words(text: str) -> str:
    """The text without positions and without spaces."""
    return re.sub(r"p\d+:\d+", "", re.sub(r"\s+", "", text))
