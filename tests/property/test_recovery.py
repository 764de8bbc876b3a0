"""A crash at any moment changes nothing: the run ends as one without the crash."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.workers import SPEC, Bench
from twinstream.adapters.memory import MemorySource
from twinstream.core.events import Side
from twinstream.matcher.worker import BEAT_SECONDS
from twinstream.status.comparison import ComparisonStatus

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


def _outcome(
    order: str, planted: list[Fault], crash_at: list[int], beat_every: int
) -> tuple[ComparisonStatus, dict[str, str]]:
    spec = SPEC.replace("{per_key: [k]}", order).replace("evidence:", "identity: [k]\nevidence:")
    spec += KINDS + "undecodable: {budget: 5}\n"
    bench = Bench(spec=spec, source=MemorySource(batch=7))
    _fill(bench, planted)
    worker = bench.started()
    for step in range(30):
        if step in crash_at:
            worker = bench.restarted()
        if step % beat_every == 0:
            bench.clock.advance(BEAT_SECONDS)
        worker.step()
    worker.stop()
    return bench.status(), {report.id: report.kind for report in bench.reports().values()}


@examples(60)
@given(st.sampled_from(ORDERS), faults, crashes, st.integers(1, 7))
def test_a_run_with_crashes_ends_as_one_without(
    order: str, planted: list[Fault], crash_at: list[int], beat_every: int
) -> None:
    calm, calm_reports = _outcome(order, planted, [], beat_every)
    shaken, shaken_reports = _outcome(order, planted, crash_at, beat_every)
    assert shaken.verdict == calm.verdict
    assert shaken.accounts == calm.accounts
    assert shaken.divergences == calm.divergences
    assert shaken.verified_up_to == calm.verified_up_to
    assert shaken_reports == calm_reports
