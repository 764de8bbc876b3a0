"""A crash at any moment changes nothing on the clocks that say how far each side has come."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from tests.support.saying import TOPICS, VERSIONS, control_record
from tests.support.workers import Bench
from twinstream.adapters.memory import MemorySource
from twinstream.core.events import Side
from twinstream.matcher.worker import BEAT_SECONDS
from twinstream.spec.decode.headers import Attempt, InputPosition
from twinstream.status.comparison import ComparisonStatus, DivergenceReport

LENGTH, BATCH = 40, 8
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
            headers = [InputPosition("in", 0, n).header, *Attempt("q", number, "e", 0, 0).headers]
            bench.source.append(side, 0, record, number * BATCH * 1000, headers)
        consumed = {"in": {"0": (number + 1) * BATCH}}
        ends = {TOPICS[side]: bench.source.ends()[side]}
        bench.source.say(control_record("12"[side], number, consumed, ends, rows=len(rows)))


def outcome(
    clock: str, dropped: frozenset[int], late: Late, crash_at: list[int], beat_every: int
) -> tuple[ComparisonStatus, dict[str, DivergenceReport]]:
    bench = Bench(spec=HEAD + CLOCKS[clock], source=MemorySource(batch=7))
    worker = bench.started()
    for step in range(60):
        if step % 8 == 0 and step < LENGTH // BATCH * 8:
            fill(bench, dropped, late, step // 8)
        if step in crash_at:
            worker = bench.restarted()
        if step % beat_every == 0 or step >= 50:
            bench.clock.advance(BEAT_SECONDS)
        worker.step()
    worker.stop()
    return bench.status(), bench.reports()


@given(
    st.sampled_from(sorted(CLOCKS)),
    st.frozensets(st.integers(0, LENGTH - 20), max_size=3),
    st.dictionaries(st.integers(0, 7), st.just(LENGTH // BATCH - 1), max_size=1),
    st.lists(st.integers(0, 49), max_size=5),
    st.integers(1, 5),
)
def test_a_run_with_crashes_ends_as_one_without(
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
        assert shaken.accounts == calm.accounts
        assert shaken.divergences == calm.divergences
        assert shaken.verified_up_to == calm.verified_up_to
        told = [{key: (r.kind, r.late) for key, r in each.items()} for each in (calm_reports, shaken_reports)]
        assert told[0] == told[1]
