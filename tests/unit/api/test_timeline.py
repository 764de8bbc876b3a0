"""The timeline has a phase for each change of verdict, gate or health; samples say how long events wait."""

from __future__ import annotations

from datetime import timedelta

import structlog

from tests.support.statuses import NAME, START, Clocks, diverged, histogram, status
from twinstream.api.gate.freshness import heard
from twinstream.api.gate.gate import gate
from twinstream.api.gate.samples import Samples
from twinstream.api.stream.timeline import Timeline


def test_a_phase_begins_when_verdict_gate_or_health_change_and_not_before() -> None:
    clocks = Clocks()
    board = clocks.board()
    board.tick()
    for seconds in (1, 2, 3):
        clocks.advance(1)
        board.accept(status(at=START + timedelta(seconds=seconds)))
    clocks.advance(1)
    board.accept(diverged(at=START + timedelta(seconds=4)))
    clocks.advance(6)
    board.tick()
    board.tick()
    phases = board.timeline(NAME)
    assert [((p.since - START).total_seconds(), p.verdict, p.gate, p.health) for p in phases] == [
        (0.0, "PENDING", "undecided", "not_live"),
        (1.0, "EQUIVALENT", "pass", "ok"),
        (4.0, "DIVERGED", "fail", "ok"),
        (10.0, "DIVERGED", "undecided", "not_live"),
    ]
    assert phases[2].reason == diverged().reason


def test_each_phase_is_a_line_of_the_log_whose_level_tells_how_bad_it_is() -> None:
    clocks = Clocks()
    board = clocks.board()
    with structlog.testing.capture_logs() as lines:
        for seconds, now in enumerate((status(), status(), diverged())):
            clocks.advance(1)
            board.accept(now.model_copy(update={"updated_at": START + timedelta(seconds=seconds)}))
        clocks.advance(9)
        board.tick()
    assert [(line["event"], line["log_level"], line["verdict"], line["gate"]) for line in lines] == [
        ("phase", "info", "EQUIVALENT", "pass"),
        ("phase", "error", "DIVERGED", "fail"),
        ("phase", "error", "DIVERGED", "undecided"),
    ]
    assert {line["comparison"] for line in lines} == {NAME}
    assert lines[1]["reason"] == diverged().reason


def test_a_pass_that_grows_too_old_is_a_phase_although_nothing_is_published() -> None:
    clocks = Clocks()
    board = clocks.board(stale_after_seconds=9000)
    board.accept(status())
    clocks.advance(301)
    board.tick()
    assert [phase.gate for phase in board.timeline(NAME)] == ["pass", "undecided"]


def test_only_the_latest_phases_are_kept() -> None:
    timeline, fresh = Timeline(kept=2), heard(START, 0.5, 5.0)
    for seconds, now in enumerate((status(), diverged(), status())):
        moment = START + timedelta(seconds=seconds)
        timeline.note(now, gate(now, fresh, 2.0), moment)
    assert [phase.verdict for phase in timeline.items()] == ["DIVERGED", "EQUIVALENT"]


def test_waits_are_of_the_last_seconds_and_lie_within_their_decade() -> None:
    samples = Samples()
    slow = histogram(0, 0, 0, 0, 0, 1000)
    samples.add(status(match_latency=slow), 0)
    assert samples.items()[0].wait_seconds is None
    for second in range(1, 10):
        quick = histogram(0, 0, 0, 100 * second, 0, 1000)
        samples.add(status(at=START + timedelta(seconds=second), match_latency=quick), second)
    waits = samples.items()[-1].wait_seconds
    assert waits is not None
    assert 1e-3 < waits.p50 < waits.p95 < waits.p99 <= 1e-2


def test_no_wait_is_told_where_nothing_has_matched_meanwhile() -> None:
    samples = Samples()
    samples.add(status(), 0)
    samples.add(status(at=START + timedelta(seconds=1)), 1)
    assert samples.items()[-1].wait_seconds is None


def test_a_restarted_matcher_counts_from_nothing() -> None:
    samples = Samples()
    samples.add(status(match_latency=histogram(0, 500)), 0)
    later = START + timedelta(seconds=1)
    samples.add(status(at=later, started_at=later, match_latency=histogram(0, 3)), 1)
    assert samples.items()[-1].wait_seconds is None


def test_the_latest_samples_are_those_of_a_stretch_before_the_last() -> None:
    samples = Samples()
    for second in range(10):
        samples.add(status(at=START + timedelta(seconds=second)), second)
    assert [sample.at for sample in samples.latest(2.0)] == [
        START + timedelta(seconds=second) for second in (7, 8, 9)
    ]
    assert Samples().latest(2.0) == []
