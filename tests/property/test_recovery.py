"""A crash at any moment changes nothing: the run ends as one without the crash, on every clock."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from loadtest.memory import MemorySource
from tests.support.saying import TOPICS, VERSIONS, control_record
from tests.support.searching import examples
from tests.support.workers import SPEC, Bench
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.events import Side
from twinstream.matcher.worker import BEAT_SECONDS
from twinstream.spec.decode.headers import attempt_headers, input_header
from twinstream.status.comparison import ComparisonStatus, DivergenceReport

Outcome = tuple[ComparisonStatus, dict[str, DivergenceReport]]
LENGTH = 60
Fault = tuple[str, int]

faults = st.lists(
    st.tuples(st.sampled_from(["drop", "duplicate", "field", "garbage"]), st.integers(0, LENGTH - 1)),
    max_size=2,
    unique_by=lambda fault: fault[1],
)
crashes = st.lists(st.integers(0, 20), max_size=4)

ORDERS = (
    "{per_key: [k]}",
    "{dependent: [{pair: [ride, ride], same: [k]}, {pair: [day, ride], within: {field: n, less_than: 5}}]}",
    "{barrier: day, inner: {per_key: [k]}}",
    "{by_key: [k], inner: {dependent: [[day, ride]]}}",
)
KINDS = "kinds: {day: {where: {k: day}}, ride: {}}\n"


def run(
    bench: Bench,
    steps: int,
    crash_at: Collection[int],
    beats: Callable[[int], bool],
    begin: Callable[[int], None],
) -> Outcome:
    """So many steps of a worker, with crashes; `begin` comes first in each, time passes where it `beats`."""
    worker = bench.started()
    for step in range(steps):
        begin(step)
        if step in crash_at:
            worker = bench.restarted()
        if beats(step):
            bench.clock.advance(BEAT_SECONDS)
        worker.step()
    worker.stop()
    return bench.status(), bench.reports()


def _fill(bench: Bench, planted: list[Fault]) -> None:
    at = {number: kind for kind, number in planted}
    for number in range(LENGTH):
        event = ("day" if number % 20 == 19 else number % 3, number)
        bench.write(Side.LEFT, event, at_ms=number)
        kind = at.get(number)
        if kind == "garbage":
            bench.source.append(Side.RIGHT, 0, b"garbage", number)
        elif kind == "field":
            bench.write(Side.RIGHT, (event[0], -number), at_ms=number)
        elif kind != "drop":
            bench.write(Side.RIGHT, *[event] * (2 if kind == "duplicate" else 1), at_ms=number)


def _outcome(order: str, planted: list[Fault], crash_at: list[int], beat_every: int) -> Outcome:
    spec = SPEC.replace("{per_key: [k]}", order).replace("evidence:", "identity: [k]\nevidence:")
    bench = Bench(spec=spec + KINDS + "undecodable: {budget: 5}\n", source=MemorySource(batch=7))
    _fill(bench, planted)
    return run(bench, 30, crash_at, lambda step: step % beat_every == 0, lambda _: None)


def counted(status: ComparisonStatus, reports: dict[str, DivergenceReport]) -> tuple[Any, ...]:
    """All that is counted, what each divergence is called, and how late a partner came."""
    told = {key: (report.kind, report.late) for key, report in reports.items()}
    return status.accounts, status.divergences, status.verified_up_to, told


@examples(60)
@given(st.sampled_from(ORDERS), faults, crashes, st.integers(1, 7))
def test_a_run_with_crashes_ends_as_one_without(
    order: str, planted: list[Fault], crash_at: list[int], beat_every: int
) -> None:
    calm, calm_reports = _outcome(order, planted, [], beat_every)
    shaken, shaken_reports = _outcome(order, planted, crash_at, beat_every)
    assert shaken.verdict == calm.verdict
    assert counted(shaken, shaken_reports) == counted(calm, calm_reports)


# -- clocks that say how far each side has come ----------------------------------------------------------

WRITTEN, BATCH = 40, 8
HEAD = (
    VERSIONS
    + """\
order: unordered
show: [n, t]
evidence: {matched: 1, seconds: 0}
"""
)
CLOCKS = {
    "input": "control: said\noverdue: {clock: input}\n",
    "replays": "control: said\nduplicates: {policy: replays}\noverdue: {after: 5s, proves: true}\n",
    "event_time": "overdue: {clock: event_time, field: t, unit: s, after: 5s, proves: true}\n",
}
Late = dict[int, int]
"""By event: the batch of the candidate in which it comes after all."""


def fill(bench: Bench, dropped: frozenset[int], late: Late, number: int) -> None:
    """Both versions write a batch, and say so."""
    for side in Side:
        written = range(number * BATCH, (number + 1) * BATCH)
        if side is Side.RIGHT:
            rows = [n for n in written if n not in dropped and n not in late]
            rows += [n for n, batch in late.items() if batch == number]
        else:
            rows = list(written)
        for n in rows:
            record = orjson.dumps({"n": n, "t": n})
            headers = [input_header("in", 0, n), *attempt_headers(Attempt("q", number, "e", 0, 0))]
            bench.source.append(side, 0, record, number * BATCH * 1000, headers)
        consumed = {"in": {"0": (number + 1) * BATCH}}
        ends = {TOPICS[side]: bench.source.ends()[side]}
        bench.source.say(control_record("12"[side], number, consumed, ends, rows=len(rows)))


def outcome(clock: str, dropped: frozenset[int], late: Late, crash_at: list[int], beat_every: int) -> Outcome:
    bench = Bench(spec=HEAD + CLOCKS[clock], source=MemorySource(batch=7))

    def write(step: int) -> None:
        if step % 8 == 0 and step < WRITTEN // BATCH * 8:
            fill(bench, dropped, late, step // 8)

    return run(bench, 60, crash_at, lambda step: step % beat_every == 0 or step >= 50, write)


@given(
    st.sampled_from(sorted(CLOCKS)),
    st.frozensets(st.integers(0, WRITTEN - 20), max_size=3),
    st.dictionaries(st.integers(0, 7), st.just(WRITTEN // BATCH - 1), max_size=1),
    st.lists(st.integers(0, 49), max_size=5),
    st.integers(1, 5),
)
def test_a_run_with_crashes_on_other_clocks_ends_as_one_without(
    clock: str, dropped: frozenset[int], late: Late, crash_at: list[int], beat_every: int
) -> None:
    calm, calm_reports = outcome(clock, dropped - late.keys(), late, [], 1)
    shaken, shaken_reports = outcome(clock, dropped - late.keys(), late, crash_at, beat_every)
    found = {report.reference["n"] for report in calm_reports.values() if report.reference}
    assert found >= dropped - late.keys()
    if late and clock == "replays" and shaken.matched > calm.matched:
        return  # A reader that was started again has waited for less: the partner came in time.
    assert shaken.verdict == calm.verdict
    assert shaken.frontier == calm.frontier
    if not late or shaken.matched == calm.matched:
        assert counted(shaken, shaken_reports) == counted(calm, calm_reports)
