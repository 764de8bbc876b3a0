"""A side is stalled while it is silent and newer events of the other wait for it; idle sides are healthy."""

from __future__ import annotations

import pytest

from loadtest.memory import MemorySource
from tests.support.team import Team
from tests.support.workers import SPEC, Bench
from twinstream.core.events import Side
from twinstream.status.comparison import ComparisonStatus

ARRIVAL = SPEC + "overdue: {clock: arrival, after: 10s}\n"
NAMES = ("reference", "candidate")


@pytest.fixture(params=Side)
def silent(request: pytest.FixtureRequest) -> Side:
    side: Side = request.param
    return side


@pytest.fixture
def bench() -> Bench:
    return Bench(spec=ARRIVAL)


def said(status: ComparisonStatus) -> tuple[str, list[str], list[str]]:
    return status.verdict, status.health.stalled, status.health.reasons


def test_a_side_that_falls_silent_is_stalled_and_not_diverged_until_it_answers(
    bench: Bench, silent: Side
) -> None:
    bench.write_both(("a", 0), at_ms=1_000)
    bench.run()
    bench.write(silent.other, ("a", 1), ("a", 2), at_ms=31_000)
    silent_name, other = NAMES[silent], NAMES[silent.other]
    sentence = (
        f"the {silent_name} is stalled: its newest record is 30 s older than the {other}'s; 2 newer "
        f"events of the {other} wait for it"
    )
    assert said(bench.settled()) == ("EQUIVALENT", [silent_name], [sentence])
    bench.write(silent, ("a", 1), at_ms=31_000)
    bench.write(silent, ("a", 2), at_ms=31_000)
    assert said(bench.settled()) == ("EQUIVALENT", [], [])


def test_two_idle_sides_are_healthy_though_the_last_records_are_seconds_apart(
    bench: Bench, silent: Side
) -> None:
    bench.write(silent, ("a", 0), ("a", 1), at_ms=1_000)
    bench.write(silent.other, ("a", 0), at_ms=1_000)
    bench.write(silent.other, ("a", 1), at_ms=4_000)
    assert said(bench.settled()) == ("EQUIVALENT", [], [])
    bench.clock.advance(3600)
    assert said(bench.settled()) == ("EQUIVALENT", [], [])


def test_a_side_that_has_gone_on_is_not_stalled_by_what_it_has_left_unanswered(
    bench: Bench, silent: Side
) -> None:
    bench.write_both(("a", 0), at_ms=1_000)
    bench.write(silent.other, ("x", 0), at_ms=2_000)
    bench.write_both(("a", 1), at_ms=3_000)
    bench.write(silent, ("a", 2), at_ms=3_500)
    bench.write(silent.other, ("a", 2), at_ms=9_000)
    status = bench.settled()
    assert (status.health.stalled, status.unmatched.reference + status.unmatched.candidate) == ([], 1)


def test_a_side_that_has_never_written_is_stalled_once_the_other_has_gone_on(
    bench: Bench, silent: Side
) -> None:
    bench.write(silent.other, ("a", 0), at_ms=1_000)
    assert bench.settled().health.stalled == []
    bench.write(silent.other, ("a", 1), at_ms=5_000)
    name, other = NAMES[silent], NAMES[silent.other]
    verdict, stalled, reasons = said(bench.settled())
    assert (verdict, stalled) == ("PENDING", [name])
    sentence = (
        f"the {name} is stalled: it wrote nothing while the {other} wrote for 4 s; 2 newer events of the "
    )
    assert reasons == [f"{sentence}{other} wait for it"]


def test_a_side_that_is_not_read_to_its_end_is_not_stalled(
    bench: Bench, silent: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write_both(("a", 0), at_ms=1_000)
    bench.run()
    poll = bench.source.poll
    monkeypatch.setattr(
        bench.source, "poll", lambda side, timeout: () if side is silent else poll(side, timeout)
    )
    bench.write_both(("a", 1), at_ms=31_000)
    assert bench.settled().health.stalled == []


def test_what_is_left_out_of_the_comparison_waits_for_nobody() -> None:
    beats = "kinds:\n  beat: {where: {k: beat}, ignore: true}\n  event: {}\n"
    bench = Bench(spec=ARRIVAL + beats)
    bench.write_both(("a", 0), at_ms=1_000)
    bench.write(Side.LEFT, ("beat", 1), at_ms=60_000)
    assert said(bench.settled()) == ("EQUIVALENT", [], [])


def test_a_side_goes_on_as_long_as_one_of_its_partitions_does(silent: Side) -> None:
    bench = Bench(spec=ARRIVAL, source=MemorySource(partitions=2))
    for side in Side:
        bench.source.append(side, 0, b'{"k": "a", "n": 0}', 1_000)
        bench.source.append(side, 1, b'{"k": "b", "n": 0}', 1_000)
        bench.source.append(side, 0, b'{"k": "a", "n": 1}', 30_000)
    bench.source.append(silent.other, 1, b'{"k": "b", "n": 1}', 31_000)
    assert bench.settled().health.stalled == []
    bench.source.append(silent.other, 1, b'{"k": "b", "n": 2}', 33_000)
    assert bench.settled().health.stalled == [NAMES[silent]]


def test_a_side_is_stalled_where_it_is_in_the_partitions_of_one_shard(silent: Side) -> None:
    team = Team(spec=ARRIVAL + "co_partitioned: true\n")
    workers = team.started()
    for side in Side:
        for partition in range(4):
            team.write(side, partition, (partition, 0), at_ms=1_000)
    team.write(silent.other, 0, (0, 1), at_ms=3_000)
    for side in Side:
        team.write(side, 1, (1, 1), at_ms=12_000)
    assert team.view(workers).status.health.stalled == []
    team.write(silent.other, 0, (0, 2), at_ms=12_000)
    assert team.view(workers).status.health.stalled == [NAMES[silent]]
    team.write(silent, 0, (0, 1), (0, 2), at_ms=12_000)
    assert team.view(workers).status.health.stalled == []


def test_a_side_is_neither_stalled_nor_healthy_until_its_end_is_heard_of(
    bench: Bench, silent: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write_both(("a", 0), at_ms=1_000)
    bench.write(silent.other, ("a", 1), at_ms=31_000)
    monkeypatch.setattr(bench.source, "ends", lambda: {side: {} for side in Side})
    status = bench.settled()
    assert (status.health.status, status.health.stalled) == ("degraded", [])
    assert status.health.reasons == [f"the end of the {NAMES[silent]}'s topic is not known yet"]


def test_a_side_is_stalled_also_while_no_start_is_found(silent: Side) -> None:
    marked = "kinds:\n  mark: {where: {k: mark}}\n  event: {}\nstart: barrier\n"
    order = "order: {barrier: mark, inner: {per_key: [k]}}\n"
    bench = Bench(spec=ARRIVAL.replace("order: {per_key: [k]}\n", order) + marked)
    bench.write_both(("a", 0), at_ms=1_000)
    bench.write(silent.other, ("mark", 0), ("a", 1), at_ms=31_000)
    status = bench.settled()
    assert (status.verdict, status.health.stalled) == ("PENDING", [NAMES[silent]])


def test_a_side_for_which_newer_events_wait_stays_stalled_while_both_are_idle_and_behind_a_restart(
    bench: Bench, silent: Side
) -> None:
    bench.write_both(("a", 0), at_ms=1_000)
    bench.write(silent.other, ("a", 1), at_ms=9_000)
    assert bench.settled().health.stalled == [NAMES[silent]]
    bench.clock.advance(3600)
    assert bench.settled().health.stalled == [NAMES[silent]]
    told = len(bench.publisher.published)
    bench.run(bench.restarted())
    after = [one for one in bench.publisher.published[told:] if isinstance(one, ComparisonStatus)]
    assert after
    assert [one.health.stalled for one in after] == [[NAMES[silent]]] * len(after)
