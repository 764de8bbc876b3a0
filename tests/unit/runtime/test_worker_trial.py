"""Rules on trial beside a comparison: what they would change, and that they are in nobody's way."""

from __future__ import annotations

import signal
import time

import pytest

from tests.support.workers import SPEC, Bench
from twinstream.adapters.memory import MemorySource
from twinstream.core.events import Side
from twinstream.runtime.fuse import Blown, alarm
from twinstream.runtime.midway import NEVER, REST
from twinstream.runtime.trial import RESTED, Burden
from twinstream.runtime.worker import Worker
from twinstream.status import ResetRequest
from twinstream.trials import TrialStatus

LOOSER = SPEC + "equality: {ignore: [n]}\n"
STRICTER = SPEC.replace("{per_key: [k]}", "total")
UNORDERED = SPEC.replace("{per_key: [k]}", "unordered")
KNOWN = (
    SPEC + "identity: [k]\nknown_differences: [{id: N-1, when: {divergences: [changed], fields: [n]}, "
    "owner: me, expires: 2099-01-01, ceiling: {count: 100}}]\n"
)
STRANGE = SPEC.replace("{per_key: [k]}", '{callable: "tests.support.strange:related"}')


def after(bench: Bench) -> Bench:
    """Behind what differs, all keys meet again, and all of it is saved."""
    worker = bench.started()
    bench.write_both(*((key, number) for number in range(100, 120) for key in "abcd"))
    bench.run(worker)
    bench.run(worker)
    return bench


def test_a_trial_tells_which_divergences_its_rules_would_hide_and_has_no_say_in_the_verdict() -> None:
    bench = Bench(spec=SPEC, trial=LOOSER)
    bench.write(Side.LEFT, ("a", 1), ("b", 1), ("b", 2))
    bench.write(Side.RIGHT, ("a", 2), ("b", 1), ("b", 2))
    status, trial = after(bench).status(), bench.on_trial()
    assert (status.verdict, trial.verdict, trial.state) == ("DIVERGED", "EQUIVALENT", "running")
    assert (status.matched, trial.matched, trial.changes) == (82, 83, ["equality"])
    assert trial.contrast is not None
    assert trial.contrast.hidden_by_kind == {"missing": 1, "extra": 1}
    assert {one.id for one in trial.contrast.hidden} == bench.reports().keys()
    assert trial.contrast.of_live["hidden"] == 2
    assert (trial.contrast.new, bench.trial_reports()) == ([], {})


def test_a_trial_tells_what_its_rules_alone_would_report() -> None:
    bench = Bench(spec=SPEC, trial=STRICTER)
    bench.write(Side.LEFT, ("a", 1), ("b", 1), ("c", 1))
    bench.write(Side.RIGHT, ("b", 1), ("a", 1))
    status, trial = after(bench).status(), bench.on_trial()
    assert (status.verdict, trial.verdict) == ("DIVERGED", "DIVERGED")
    assert trial.contrast is not None
    assert trial.contrast.of_live["reported"] == trial.contrast.of_trial["reported"] == 1
    assert trial.contrast.new_by_kind == {"reordered": 1}
    (new,) = trial.contrast.new
    assert bench.trial_reports()[new.id].kind == "reordered"
    assert new.id not in bench.reports()


def test_a_known_difference_on_trial_is_named_with_what_it_would_explain() -> None:
    bench = Bench(spec=SPEC + "identity: [k]\n", trial=KNOWN)
    bench.write(Side.LEFT, ("a", 1), ("b", 1))
    bench.write(Side.RIGHT, ("a", 2))
    status, trial = after(bench).status(), bench.on_trial()
    assert status.divergences.by_kind["changed"] == status.divergences.by_kind["missing"] == 1
    assert (trial.explained_by_rule, trial.accounts.reference.explained) == ({"N-1": 1}, 1)
    assert trial.contrast is not None
    assert (trial.contrast.of_live["explained"], trial.contrast.of_live["reported"]) == (1, 1)
    assert trial.contrast.hidden_by_rule == {"N-1": 1}


def test_what_a_trial_has_not_settled_is_open() -> None:
    bench = Bench(spec=SPEC, trial=UNORDERED)
    bench.write(Side.LEFT, ("a", 1))
    trial = after(bench).on_trial()
    assert bench.status().verdict == "DIVERGED"
    assert trial.contrast is not None
    assert (trial.unmatched.reference, trial.contrast.of_live["open"]) == (1, 1)


def test_a_trial_goes_on_after_a_crash_with_its_divergences_and_what_they_compare_to() -> None:
    bench = Bench(spec=SPEC + "identity: [k]\n", trial=KNOWN)
    bench.write(Side.LEFT, ("a", 1), ("b", 1))
    bench.write(Side.RIGHT, ("a", 2))
    before = after(bench).on_trial()
    reports = bench.trial_reports()
    worker = bench.restarted()
    bench.write_both(("a", 200))
    bench.run(worker)
    trial = bench.on_trial()
    assert (trial.state, trial.matched, trial.since) == ("running", before.matched + 1, before.since)
    assert trial.contrast == before.contrast
    assert bench.trial_reports() == reports


@pytest.mark.parametrize("earlier", [None, STRICTER], ids=["none", "another"])
def test_a_trial_of_a_comparison_that_is_under_way_begins_where_that_is(earlier: str | None) -> None:
    bench = Bench(spec=SPEC, trial=earlier)
    bench.write(Side.LEFT, ("e", 1), ("f", 1))
    matched = after(bench).status().matched
    bench.trial = LOOSER
    bench.clock.advance(60)
    began = bench.clock.now()
    worker = bench.restarted()
    bench.write(Side.RIGHT, ("e", 2), ("f", 1))
    status, trial = bench.run(worker), bench.on_trial()
    assert (status.matched, trial.state, trial.verdict) == (matched + 1, "running", "EQUIVALENT")
    assert (trial.matched, trial.accounts.reference.consumed, trial.accounts.candidate.consumed) == (2, 2, 2)
    assert trial.since == began
    assert trial.contrast is not None
    worker = bench.restarted()
    bench.write_both(("a", 7))
    bench.run(worker)
    assert (bench.on_trial().state, bench.on_trial().matched) == ("running", 3)
    assert bench.on_trial().since == trial.since


def given_later(live: str, trial: str, left: int = 0) -> tuple[Bench, Worker]:
    """A trial that is given to a comparison under way, in which so many events wait."""
    bench = Bench(spec=live)
    bench.write(Side.LEFT, *(("w", number) for number in range(left)))
    after(bench)
    bench.trial = trial
    return bench, bench.restarted()


def test_a_trial_that_can_begin_at_rest_only_waits_for_that_and_says_so() -> None:
    bench, worker = given_later(UNORDERED, LOOSER, left=2)
    bench.run(worker)
    assert bench.on_trial().state == "waiting"
    assert bench.on_trial().reason == REST.format(
        needed="no events", waiting="2 of the reference, 0 of the candidate"
    )
    bench.write(Side.RIGHT, ("w", 0), ("w", 1))
    bench.run(worker)
    bench.write(Side.LEFT, ("a", 1))
    bench.write(Side.RIGHT, ("a", 2))
    bench.run(worker)
    assert (bench.on_trial().state, bench.on_trial().matched) == ("running", 1)


def test_a_trial_of_a_comparison_that_has_found_a_difference_does_not_begin_midway() -> None:
    bench = Bench()
    bench.write(Side.LEFT, ("a", -1))
    worker = after(bench).worker()
    bench.trial = LOOSER
    worker = bench.restarted()
    bench.run(worker)
    reason = "it has found differences, of which other rules may pair some with what comes"
    assert (bench.on_trial().state, bench.on_trial().reason) == ("waiting", NEVER.format(reason=reason))
    assert worker.begin_anew(ResetRequest(id="r", by="me", reason="new rules", address="here"))
    bench.run(bench.restarted())
    assert (bench.on_trial().state, bench.on_trial().matched) == ("running", 80)


def test_a_trial_does_not_begin_midway_behind_what_was_not_compared() -> None:
    bench, worker = given_later(SPEC, LOOSER)
    bench.run(worker)
    bench.trial = None
    bench.source.append(Side.LEFT, 0, b"garbage")
    bench.run(bench.restarted())
    bench.trial = LOOSER
    bench.run(bench.restarted())
    reason = "something was not compared, of which the partners may still come"
    assert bench.on_trial().reason == NEVER.format(reason=reason)


def test_a_trial_of_which_a_record_was_undecodable_begins_midway_where_it_is_so_for_both() -> None:
    budget = "undecodable: {budget: 3}\n"
    for trial, state in ((LOOSER, "running"), (UNORDERED, "waiting")):
        bench = Bench(spec=SPEC + budget)
        bench.source.append(Side.LEFT, 0, b"garbage")
        after(bench)
        bench.trial = trial + budget
        bench.run(bench.restarted())
        assert bench.on_trial().state == state
    assert "some records were no events to it" in bench.on_trial().reason


def test_a_trial_that_begins_midway_does_not_know_of_what_an_event_may_be_a_copy() -> None:
    rule = KNOWN.replace("[changed], fields: [n]", "[duplicate]")
    bench, worker = given_later(SPEC, rule)
    bench.run(worker)
    assert bench.on_trial().state == "running"
    bench.write(Side.RIGHT, ("a", 5))
    bench.write_both(*(("a", number) for number in range(200, 220)))
    bench.run(worker)
    assert bench.on_trial().verdict == "INCONCLUSIVE"


def test_a_trial_that_begins_midway_and_cannot_read_what_waits_counts_it() -> None:
    finer = SPEC.replace("{per_key: [k]}", "{per_key: [k, j]}") + "undecodable: {budget: 3}\n"
    bench, worker = given_later(SPEC, finer, left=2)
    bench.run(worker)
    found = bench.on_trial()
    assert (found.state, found.accounts.reference.undecodable, found.accounts.reference.consumed) == (
        "running", 2, 2,
    )  # fmt: skip


def begun_at_now(live: str, trial: str) -> TrialStatus:
    """One side puts out 1, then 2, the other 2, then 1, and between them the comparison began anew."""
    proves = "overdue: {after: 5s, proves: true}\n"
    bench = Bench(spec=live + proves, trial=trial + proves)
    worker = bench.started()
    bench.write(Side.LEFT, ("a", 1), at_ms=1_000)
    bench.write(Side.RIGHT, ("a", 2), at_ms=1_000)
    bench.settled(worker)
    request = ResetRequest(id="r-1", by="me", reason="a trial", address="here", start="now")
    assert worker.begin_anew(request)
    worker = bench.restarted()
    bench.write(Side.LEFT, ("a", 2), at_ms=2_000)
    bench.write(Side.RIGHT, ("a", 1), at_ms=2_000)
    for at_ms in (3_000, 60_000, 120_000):
        bench.write_both(("b", at_ms), at_ms=at_ms)
        bench.clock.advance(60)
        assert bench.settled(worker).verdict == "EQUIVALENT"
    return bench.on_trial()


def test_rules_that_compare_more_do_not_begin_where_the_comparison_has_paired_all_by_its_own() -> None:
    blind = UNORDERED + "equality: {ignore: [n]}\n"
    trial = begun_at_now(blind, UNORDERED)
    assert (trial.state, trial.verdict) == ("waiting", None)
    assert trial.reason == RESTED.format(keys="`equality`")


@pytest.mark.parametrize(
    ("live", "trial"),
    [
        (UNORDERED + "equality: {ignore: [n]}\n", SPEC + "equality: {ignore: [n]}\n"),
        (UNORDERED + "equality: {ignore: [n]}\n", SPEC + "equality: {ignore: [n, m]}\n"),
    ],
)
def test_rules_that_compare_no_more_begin_there_under_any_order(live: str, trial: str) -> None:
    found = begun_at_now(live, trial)
    assert (found.state, found.verdict, found.matched) == ("running", "EQUIVALENT", 4)


def test_a_comparison_goes_on_without_the_trial_that_it_had() -> None:
    bench = Bench(spec=SPEC, trial=LOOSER)
    matched = after(bench).status().matched
    bench.trial = None
    worker = bench.restarted()
    bench.write_both(("a", 1))
    status = bench.run(worker)
    assert (status.verdict, status.matched, status.trial) == ("EQUIVALENT", matched + 1, None)


def test_a_trial_that_fails_ends_with_its_reason_and_the_comparison_goes_on() -> None:
    bench = Bench(spec=SPEC, trial=STRANGE)
    worker = bench.started()
    bench.write_both(("a", 1), ("boom", 1), ("c", 1))
    status = bench.run(worker)
    trial = bench.on_trial()
    assert (status.verdict, status.matched, trial.state) == ("EQUIVALENT", 3, "ended")
    assert "tests.support.strange:related" in trial.reason
    worker = bench.restarted()
    bench.run(worker)
    assert (bench.on_trial().state, bench.on_trial().reason) == ("ended", trial.reason)


def test_a_trial_that_hangs_is_interrupted() -> None:
    bench = Bench(spec=SPEC, trial=STRANGE, fuse=lambda _seconds: alarm(0.05))
    worker = bench.started()
    bench.write_both(("a", 1), ("hang", 1), ("c", 1))
    status = bench.run(worker)
    assert (status.verdict, status.matched, bench.on_trial().state) == ("EQUIVALENT", 3, "ended")
    assert bench.on_trial().reason == "it took longer than 0.05 s"


def test_a_trial_that_reaches_a_limit_ends_and_keeps_its_last_counts() -> None:
    bench = Bench(spec=SPEC, trial=UNORDERED + "limits: {unmatched_events: 5}\n")
    worker = bench.started()
    bench.write_both(("a", 1))
    bench.run(worker)
    bench.write(Side.LEFT, *(("b", number) for number in range(10)))
    status = bench.run(worker)
    trial = bench.on_trial()
    assert (status.unmatched.reference, trial.state, trial.matched) == (10, "ended", 1)
    assert trial.reason.startswith("limits.unmatched_events (5) was reached")


def test_a_trial_gives_way_before_the_memory_limit_of_the_matcher() -> None:
    bench = Bench(spec=SPEC, trial=LOOSER, memory_limit_bytes=1)
    worker = bench.started()
    bench.write_both(("a", 1))
    status = bench.run(worker)
    assert (status.verdict, bench.on_trial().state) == ("EQUIVALENT", "ended")
    assert "of its memory limit of 1" in bench.on_trial().reason


def test_a_trial_begins_again_when_the_comparison_begins_anew() -> None:
    bench = Bench(spec=SPEC, trial=STRANGE)
    worker = bench.started()
    bench.write_both(("boom", 1))
    bench.run(worker)
    assert bench.on_trial().state == "ended"
    bench.storage.stored = type(bench.storage.stored)(None, b"", (), {})
    bench.source = MemorySource()
    bench.trial = LOOSER
    worker = bench.restarted()
    bench.write_both(("a", 1))
    bench.run(worker)
    assert (bench.on_trial().state, bench.on_trial().matched) == ("running", 1)


def test_a_trial_burdens_a_matcher_only_while_that_falls_back() -> None:
    busy = Burden()
    assert [busy.too_much(at, 1000 + at, at * 0.5) for at in range(0, 40, 10)] == [False, False, False, True]
    idle = Burden()
    assert not any(idle.too_much(at, 1000 + at, at * 0.05) for at in range(0, 100, 10))
    catching_up = Burden()
    assert not any(catching_up.too_much(at, 1000 - at, at * 0.5) for at in range(0, 100, 10))
    reached = Burden()
    assert not any(reached.too_much(at, at % 20, at * 0.5) for at in range(0, 100, 10))


def test_a_fuse_blows_within_the_work_and_not_behind_it() -> None:
    def spin() -> None:
        with alarm(0.01):
            while True:
                time.monotonic()

    with pytest.raises(Blown, match=r"longer than 0\.01 s"):
        spin()
    with alarm(60):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("crash", [False, True])
def test_a_trial_begins_at_the_barrier_at_which_the_comparison_begins(crash: bool) -> None:
    start = "kinds: {day: {where: {k: day}}, ride: {}}\nstart: {at: barrier}\n"
    live = SPEC.replace("{per_key: [k]}", "{barrier: day, inner: {per_key: [k]}}") + start
    bench = Bench(spec=live, trial=live.replace("inner: {per_key: [k]}", "inner: unordered"))
    worker = bench.started()
    bench.write(Side.LEFT, ("a", 1), ("day", 1), ("a", 2), ("a", 3))
    bench.write(Side.RIGHT, ("day", 1), ("a", 3), ("a", 2))
    bench.run(worker)
    if crash:
        worker = bench.restarted()
    bench.write_both(("day", 2))
    bench.run(worker)
    status, trial = bench.run(worker), bench.on_trial()
    assert (status.verdict, trial.verdict, trial.state) == ("DIVERGED", "EQUIVALENT", "running")
    assert trial.accounts.reference.before_start == status.accounts.reference.before_start == 1
    assert (trial.matched, trial.accounts.candidate.consumed) == (4, 4)


def test_a_trial_has_a_clock_of_its_own() -> None:
    slow = SPEC.replace("{per_key: [k]}", "unordered")
    bench = Bench(spec=slow, trial=slow + "overdue: {after: 5s, proves: true}\n")
    worker = bench.started()
    bench.write(Side.LEFT, ("a", 1), at_ms=0)
    for second in range(20):
        bench.write_both(("b", second), at_ms=1000 * second)
    for _ in range(12):
        bench.run(worker)
    status, trial = bench.status(), bench.on_trial()
    assert (status.verdict, status.suspicions) == ("EQUIVALENT", 0)
    assert (trial.verdict, trial.divergences.by_kind["missing"]) == ("DIVERGED", 1)
    assert trial.contrast is not None
    assert trial.contrast.of_trial["open"] == 1
