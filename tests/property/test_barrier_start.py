"""What a start at a barrier brings depends on what the topics hold, not on the order of reading."""

from __future__ import annotations

import random
from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.workers import SPEC, Bench
from twinstream.core.events import Side

BARRIERS = SPEC.replace("{per_key: [k]}", "{barrier: day, inner: unordered}") + (
    "kinds: {day: {where: {k: day}}, row: {}}\nstart: barrier\n"
)
EXPLAINED = BARRIERS + (
    "known_differences: [{id: X, when: {divergences: [extra, duplicate]}, owner: o, expires: 2999-12-31, "
    "ceiling: {count: 99}}]\n"
)
COMMON_DAYS = [8, 9, 10]
Row = tuple[str, int]
Answer = tuple[str, frozenset[str]]
seeds = st.integers(0, 2**32)


def _topic(rng: random.Random, days: Sequence[int]) -> list[Row]:
    """Days with rows behind them; some days come again, at once or later. The last ones are right."""
    rows = [("row", 0)] * rng.randrange(2)
    for place, day in enumerate(days):
        again = rng.choices([day, *days[: place + 1]], k=rng.choice([0, 0, 1]))
        for one in (day, *again):
            rows += [("day", one), *([("row", one)] * rng.choice([0, 1, 1, 1]))]
    return rows + [row for day in COMMON_DAYS for row in (("day", day), ("row", day))]


def _answer(spec: str, topics: Sequence[Sequence[Row]], rng: random.Random) -> Answer:
    """The verdict, and the differences found, as one schedule of reading and restarts brings them."""
    bench = Bench(spec=spec)
    bench.started()
    rest = [list(rows) for rows in topics]
    ahead = rng.choice([0.0, 0.5, 1.0])
    while any(rest):
        side = Side(rng.random() < ahead if all(rest) else bool(rest[1]))
        size = rng.randrange(1, 8)
        for k, n in rest[side][:size]:
            bench.source.append(side, 0, orjson.dumps({"k": k, "n": n}), 0)
        del rest[side][:size]
        if rng.random() < 0.8:
            bench.run()
        if rng.random() < 0.3:
            bench.restarted()
    return bench.settled().verdict, frozenset(bench.reports())


@examples(30)
@given(seeds)
def test_where_both_write_days_in_one_order_all_schedules_bring_one_answer(seed: int) -> None:
    rng = random.Random(seed)
    topics = [_topic(rng, sorted(rng.sample(range(4), rng.randrange(1, 5)))) for _ in Side]
    spec = rng.choice([BARRIERS, EXPLAINED])
    assert len({_answer(spec, topics, rng) for _ in range(4)}) == 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("left", "right"), [([1, 2, 1], [2, 1]), ([1, 2], [2, 1])])
def test_where_they_begin_with_days_in_two_orders_no_schedule_brings_a_pass(
    left: list[int], right: list[int], seed: int
) -> None:
    topics = [[("day", day) for day in (*days, *COMMON_DAYS)] for days in (left, right)]
    assert _answer(EXPLAINED, topics, random.Random(seed))[0] in ("DIVERGED", "INCONCLUSIVE")
