"""A gate that is asked about a moment passes on nothing that was written before it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import event, given
from hypothesis import strategies as st

from loadtest.memory import ManualClock
from tests.support.statuses import status
from twinstream.api.gate.freshness import heard
from twinstream.api.gate.gate import gate
from twinstream.api.routes.scope import GateScope, scoped
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.state import snapshot
from twinstream.core.state.restore import restore
from twinstream.explain.coverage import SeenEvents
from twinstream.intake.intake import Intake
from twinstream.ports import Batch
from twinstream.reporting.verdict_status import Reporter
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.load import loads
from twinstream.status.timestamps import moment_of

ZERO = 1_772_366_400_000
"""The first moment, in milliseconds: 2026-03-01, 12:00 UTC."""
SPEC = loads(
    json.dumps(
        {
            "version": 1,
            "name": "t",
            "reference": {"topic": "r"},
            "candidate": {"topic": "c"},
            "kinds": {"a": {"where": {"t": "a"}}, "b": {"where": {"t": "b"}}},
            "order": "unordered",
            "evidence": {"matched": 3, "seconds": 2, "may_be_absent": []},
        }
    )
)


class Put(NamedTuple):
    """An event that both sides wrote: what kind it is, and when each did, in milliseconds."""

    kind: str
    at: tuple[int, int]


puts = st.lists(
    st.builds(
        Put,
        st.sampled_from("ab"),
        st.tuples(st.integers(0, 20_000), st.integers(0, 20_000)),
    ),
    min_size=1,
    max_size=40,
)


class Run:
    """A comparison that is fed with what both sides wrote, in runs of some length."""

    def __init__(self) -> None:
        self.codec = Codec(SPEC)
        self.comparison = Comparison(rules_of(SPEC, self.codec))
        self.intake = Intake(self.codec, self.comparison, ManualClock(), 0, SeenEvents(SPEC, self.codec))
        self.intake.begin({side: {0: 0} for side in Side})

    def feed(self, side: Side, numbered: list[tuple[int, Put]]) -> None:
        records = [json.dumps({"t": put.kind, "n": number}).encode() for number, put in numbered]
        times = [ZERO + put.at[side] for _, put in numbered]
        offset = self.intake.positions[side][0]
        offsets = list(range(offset, offset + len(records)))
        self.intake.take(Batch(side, 0, records, offsets, times))

    def restarted(self) -> Run:
        """The same after a restart."""
        other, state = Run(), snapshot.snapshot(self.comparison)
        restore(other.comparison, state, other.codec.form_again, 0.0)
        other.intake.positions = self.intake.positions
        other.intake.newest_ms, other.intake.first_ms = self.intake.newest_ms, self.intake.first_ms
        return other

    def passes(self, since: datetime, min_matched: int) -> tuple[bool, int]:
        """Whether the gate passes, and the pairs that it takes for those of its scope."""
        now = moment_of(ZERO) + timedelta(seconds=21)
        self.intake.survey((True, True))
        coverage = Reporter(SPEC, "digest", self.comparison, self.intake, ManualClock()).evidence()
        oldest = self.comparison.surveyed.oldest_ms
        through = now if oldest is None else moment_of(oldest)
        verdict = "PENDING" if coverage.missing else "EQUIVALENT"
        it = status("t", now, verdict=verdict, coverage=coverage, verified_through=through)
        scope = GateScope(since=since.isoformat(), min_matched=min_matched)
        found = scoped(gate(it, heard(now, 0.0, 5.0), (now - through).total_seconds()), scope, it)
        assert not found.failed
        return found.passed, found.matched_in_scope


def fed(given_puts: list[Put], lengths: list[int], restart: bool) -> Run:
    run = Run()
    for side in Side:
        waiting, turn = list(enumerate(given_puts)), 0
        while waiting:
            length = lengths[turn % len(lengths)]
            run.feed(side, waiting[:length])
            waiting, turn = waiting[length:], turn + 1
            if restart and turn == 1 and side is Side.RIGHT:
                run = run.restarted()
    return run


@given(
    puts,
    st.lists(st.integers(1, 15), min_size=1, max_size=4),
    st.integers(-1000, 21_000),
    st.integers(0, 12),
    st.booleans(),
)
def test_a_pass_rests_on_what_came_since(
    given_puts: list[Put],
    lengths: list[int],
    since_ms: int,
    min_matched: int,
    restart: bool,
) -> None:
    since = datetime.fromtimestamp((ZERO + since_ms) / 1000, UTC)
    passes, told = fed(given_puts, lengths, restart).passes(since, min_matched)
    there = [put for put in given_puts if min(put.at) >= since_ms]
    newest = max(max(put.at) for put in given_puts)
    assert told <= len(there)
    event(f"passes: {passes}")
    if passes:
        assert len(there) >= max(3, min_matched)
        assert {put.kind for put in there} == {"a", "b"}
        assert newest - since_ms >= 2000


@given(puts, st.integers(0, 21))
def test_where_events_come_one_by_one_the_evidence_is_exact_to_the_second(
    given_puts: list[Put], second: int
) -> None:
    since = datetime.fromtimestamp(ZERO / 1000 + second, UTC)
    _, told = fed(given_puts, [1], restart=False).passes(since, 0)
    assert told == sum(min(put.at) >= second * 1000 for put in given_puts)
