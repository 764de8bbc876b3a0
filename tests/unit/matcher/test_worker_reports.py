"""Which differences a worker reports for good: those that are saved, and that a look vouches for."""

from __future__ import annotations

from copy import copy

import orjson
import pytest

from loadtest.memory import MemoryStore
from tests.support.workers import SPEC, Bench
from twinstream.core.arrivals.sharding import KeyShard
from twinstream.core.events import Side
from twinstream.core.overdue import partnerless
from twinstream.matcher.schedule import RETRY_STORE_SECONDS
from twinstream.matcher.worker import Worker
from twinstream.reporting import divergences as reports
from twinstream.spec.load import loads
from twinstream.starting.reset_model import ResetState, unrest
from twinstream.status.comparison import DivergenceReport, ExplainedCount, Resumed, ShardStatus

LOST = ("a", -1)
SAME = [("a", number) for number in range(20)]


def _lose_one(bench: Bench) -> None:
    """An event is lost, and both sides meet again behind it."""
    bench.write(Side.LEFT, LOST)
    bench.write_both(*SAME)


def _shown(bench: Bench) -> list[bool]:
    """Whether each of the divergences that are shown is provisional."""
    return [report.provisional for report in bench.reports().values()]


def _counted(bench: Bench) -> int:
    """How many divergences the metrics count."""
    return bench.status().closed_divergences.total


def _in_store(bench: Bench) -> set[str]:
    return set(bench.storage.stored.divergences)


def test_a_difference_that_is_not_saved_is_provisional_and_not_counted_until_it_is(bench: Bench) -> None:
    bench.run()
    bench.storage.down = "the store is away"
    _lose_one(bench)
    bench.run()
    assert _shown(bench) == [True]
    assert (_counted(bench), _in_store(bench)) == (0, set())
    bench.storage.down = None
    bench.run()
    assert _shown(bench) == [False]
    assert (_counted(bench), _in_store(bench)) == (1, set(bench.reports()))


def test_what_known_differences_explain_is_counted_by_rule_and_told_by_examples_over_a_restart() -> None:
    rule = "when: {divergences: [%s]}, owner: ann, expires: 2999-01-01, ceiling: {count: 999}"
    lost, extra = f"{{id: LOST, {rule % 'missing'}}}", f"{{id: EXTRA, {rule % 'extra'}}}"
    bench = Bench(f"{SPEC}known_differences: [{lost}, {extra}]\n")
    for number in range(150):
        bench.write(Side.LEFT, (f"b{number}", 0))
        bench.write_both(*((f"b{number}", 1 + same) for same in range(20)))
    assert bench.run().explained_by_rule == {"LOST": 150, "EXTRA": 0}
    told = bench.reports()
    # The first hundred of them, and each tenth of the next ones.
    assert (len(told), {report.explained for report in told.values()}) == (105, {"LOST"})
    assert not any(report.provisional for report in told.values())
    assert set(told) == _in_store(bench)
    found = bench.run(bench.restarted())
    assert (bench.reports(), found.divergences.total, _counted(bench)) == (told, 0, 0)
    assert (found.explained_by_rule, found.accounts.reference.explained) == ({"LOST": 150, "EXTRA": 0}, 150)


def test_a_difference_whose_first_half_a_rule_explained_is_told_after_the_store_lost_a_part() -> None:
    rule = "when: {divergences: [missing, extra]}, owner: ann, expires: 2999-01-01, ceiling: {count: 999}"
    bench = Bench(f"{SPEC}known_differences: [{{id: ONE, {rule}}}]\n")
    _lose_one(bench)
    assert bench.run().explained_by_rule == {"ONE": 1}
    before = copy(bench.storage.stored)
    bench.write(Side.RIGHT, LOST)
    bench.write_both(*SAME)
    assert bench.run().verdict == "DIVERGED"
    told = bench.reports()
    assert [(report.kind, report.explained) for report in told.values()] == [("reordered", None)]
    bench.storage.stored = before
    bench.write_both(*SAME)
    bench.settled()
    bench.run(bench.restarted())
    assert bench.reports() == told


@pytest.mark.parametrize(("beside", "final"), [("changed", 3), ("extra", 0)])
def test_a_shard_tells_known_differences_and_how_many_of_them_no_other_half_can_change(
    beside: str, final: int
) -> None:
    rule = "when: {divergences: [%s]}, owner: ann, expires: 2999-01-01, ceiling: {count: 999}"
    rules = f"known_differences: [{{id: LOST, {rule % 'missing'}}}, {{id: OTHER, {rule % beside}}}]\n"
    bench = Bench(f"{SPEC}{rules}")
    worker = Worker(loads(bench.spec), bench.ports(MemoryStore(bench.storage, "one")), KeyShard(0, 2))
    assert worker.start()
    for key in "abc":
        bench.write(Side.LEFT, (key, 0))
        bench.write_both(*((key, 1 + same) for same in range(20)))
    for _ in range(4):
        worker.step()
        bench.clock.advance(RETRY_STORE_SECONDS)
    said = next(one for one in reversed(bench.publisher.published) if isinstance(one, ShardStatus))
    assert said.explained == [ExplainedCount(rules=["LOST"], count=3, final=final)]


def test_what_known_differences_explain_takes_no_room_of_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "EXPLAINED_BYTES", 1)
    rule = "when: {divergences: [missing]}, owner: ann, expires: 2999-01-01, ceiling: {count: 999}"
    bench = Bench(f"{SPEC}limits: {{kept_divergences: 3}}\nknown_differences: [{{id: LOST, {rule}}}]\n")
    for number in range(6):
        bench.write(Side.LEFT if number % 2 else Side.RIGHT, (f"b{number}", 0))
        bench.write_both(*((f"b{number}", 1 + same) for same in range(20)))
    bench.run()
    kinds = [(report.kind, report.explained) for report in bench.reports().values()]
    assert sorted(kinds, key=str) == [("extra", None)] * 3 + [("missing", "LOST")]


def test_a_difference_that_is_saved_at_once_is_never_provisional_and_reported_once(bench: Bench) -> None:
    _lose_one(bench)
    bench.run()
    told = [one for one in bench.publisher.published if isinstance(one, DivergenceReport)]
    assert [report.provisional for report in told] == [False]


def test_long_values_are_cut_in_what_is_shown_and_in_what_is_saved() -> None:
    bench = Bench(spec=f"{SPEC}identity: [k, id]\n")
    for side, letter in ((Side.LEFT, "a"), (Side.RIGHT, "b")):
        event = {"k": 1, "id": 1, "n": 100_000 * "x" + letter}
        bench.source.append(side, 0, orjson.dumps(event))
    bench.write_both(*((1, number) for number in range(20)))
    bench.run()
    (report,) = bench.reports().values()
    assert report.fields["n"].candidate.endswith("… ‹cut: 100,001 characters›")
    (saved,) = bench.storage.stored.divergences.values()
    assert len(saved) < 50_000


def test_beyond_a_number_of_bytes_divergences_are_counted_and_not_kept(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reports, "KEPT_BYTES", 2_000)
    for number in range(20):
        bench.write(Side.LEFT, (number, -1))
        bench.write_both(*((number, same) for same in range(20)))
    bench.run()
    kept = bench.reports()
    assert bench.status().divergences.total == _counted(bench) == 20
    assert _in_store(bench) == kept.keys()
    assert 2_000 <= sum(map(len, bench.storage.stored.divergences.values())) < 4_000
    bench.run(bench.restarted())
    assert bench.reports().keys() == kept.keys()


def test_what_is_known_anew_of_a_saved_difference_is_shown_when_it_is_saved() -> None:
    bench = Bench(spec=SPEC.replace("order: {per_key: [k]}", "order: unordered") + _PROVES)
    bench.write(Side.LEFT, LOST, at_ms=1_000)
    bench.write_both(("a", 1), at_ms=2_000)
    bench.run()
    bench.write_both(("a", 2), at_ms=90_000)
    bench.run()
    bench.clock.advance(60)
    bench.run()
    bench.run()
    assert _shown(bench) == [False]
    bench.storage.down = "the store is away"
    bench.write(Side.RIGHT, LOST, at_ms=91_000)
    bench.write_both(("a", 3), at_ms=180_000)
    bench.run()
    bench.clock.advance(60)
    bench.run()
    bench.run()
    (report,) = bench.reports().values()
    assert (report.provisional, report.late) == (False, None)
    bench.storage.down = None
    bench.run()
    (report,) = bench.reports().values()
    assert (report.provisional, report.late) == (False, 90.0)


_PROVES = "overdue: {clock: arrival, after: 60s, proves: true}\n"


def test_a_survey_that_proves_very_many_differences_prolongs_the_lease_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partnerless, "PAUSE_CALLS", 10)
    bench = Bench(spec=SPEC.replace("{per_key: [k]}", "unordered\nidentity: [k]") + _PROVES)
    worker = bench.started()
    keys = [f"key {number}" for number in range(100)]
    for side in Side:
        bench.write(side, *((key, side) for key in keys))
    bench.run(worker)
    bench.write_both(("on", 1), at_ms=200_000)
    bench.run(worker)
    found_before = []

    def renew(*_: object) -> bool:
        found_before.append(bench.status().divergences.total)
        return True

    monkeypatch.setattr(MemoryStore, "renew", renew)
    bench.clock.advance(200)
    assert bench.run(worker).divergences.total == 100
    assert found_before.count(0) > 20


def test_a_worker_says_at_its_start_which_divergences_stand(bench: Bench) -> None:
    bench.run(bench.started())
    assert _begun_with(bench) == [()]
    worker = bench.restarted()
    _lose_one(bench)
    bench.run(worker)
    bench.restarted()
    assert _begun_with(bench) == [(), (), tuple(bench.reports())]


def _begun_with(bench: Bench) -> list[tuple[str, ...]]:
    return [one.divergences for one in bench.publisher.published if isinstance(one, Resumed)]


# -- what a look vouches for -------------------------------------------------------------------------------


def _blind(bench: Bench) -> Worker:
    """A worker that has compared something, and whose looks at the topics do not come to an end any more."""
    worker = bench.started()
    bench.write_both(*SAME)
    assert bench.run(worker).verdict == "EQUIVALENT"
    bench.source.looks = False
    return worker


def test_a_difference_is_announced_only_when_a_look_has_found_the_topics_unchanged(bench: Bench) -> None:
    worker = _blind(bench)
    _lose_one(bench)
    bench.finds("INCONCLUSIVE", "and all their partitions read as far", worker)
    assert _shown(bench) == [True]
    bench.source.looks = True
    assert bench.run(worker).verdict == "DIVERGED"
    assert _shown(bench) == [False]


def test_what_came_out_of_a_topic_created_anew_is_no_difference(bench: Bench) -> None:
    worker = _blind(bench)
    bench.source.create_anew(Side.RIGHT)
    bench.write(Side.RIGHT, *(("a", number) for number in range(500, 560)))
    bench.write(Side.LEFT, *(("a", number) for number in range(20, 60)))
    status = bench.run(worker)
    assert (status.verdict, _counted(bench) > 0 and not all(_shown(bench))) == ("INCONCLUSIVE", False)
    bench.source.looks = True
    bench.finds("INCONCLUSIVE", "was deleted and created anew", worker)
    assert all(report.tainted for report in bench.reports().values())
    assert bench.run(bench.restarted()).verdict == "INCONCLUSIVE"


def test_what_came_out_of_a_topic_created_anew_is_no_difference_over_a_restart(bench: Bench) -> None:
    worker = _blind(bench)
    bench.source.create_anew(Side.RIGHT)
    bench.write(
        Side.RIGHT, *(("a", number) for number in range(20)), *(("a", number) for number in range(21, 61))
    )
    bench.write(Side.LEFT, *(("a", number) for number in range(20, 61)))
    assert bench.run(worker).verdict == "INCONCLUSIVE"
    assert [report.tainted for report in bench.reports().values()] == [False]
    assert bench.storage.stored.divergences
    bench.source.looks = True
    status = bench.run(bench.restarted())
    assert status.verdict == "INCONCLUSIVE"
    assert [(report.tainted, report.provisional) for report in bench.reports().values()] == [(True, False)]


def test_a_difference_that_was_announced_stays_when_the_topic_is_created_anew(bench: Bench) -> None:
    _lose_one(bench)
    assert bench.run().verdict == "DIVERGED"
    bench.source.create_anew(Side.RIGHT)
    assert bench.run().verdict == "DIVERGED"
    assert [report.tainted for report in bench.reports().values()] == [False]
    assert bench.run(bench.restarted()).verdict == "DIVERGED"


def test_a_difference_that_was_saved_and_not_announced_is_announced_after_a_restart(bench: Bench) -> None:
    worker = _blind(bench)
    _lose_one(bench)
    assert bench.run(worker).verdict == "INCONCLUSIVE"
    bench.source.looks = True
    assert bench.run(bench.restarted()).verdict == "DIVERGED"
    assert _shown(bench) == [False]


def test_nothing_is_vouched_for_while_a_topic_is_not_there(bench: Bench) -> None:
    worker = _blind(bench)
    _lose_one(bench)
    bench.run(worker, steps=1)
    bench.source.delete(Side.RIGHT)
    bench.source.looks = True
    assert bench.run(worker).verdict == "INCONCLUSIVE"


def test_a_pass_says_nothing_of_what_no_look_vouches_for(bench: Bench) -> None:
    worker = _blind(bench)
    before = bench.status().verified_through
    bench.write_both(*SAME)
    status = bench.run(worker)
    assert status.matched == 40
    assert (status.verified_through, status.coverage.matched) == (before, 20)
    bench.source.looks = True
    status = bench.run(worker)
    assert status.coverage.matched == 40
    assert status.verified_through is not None
    assert before is not None
    assert status.verified_through > before


def test_what_was_given_up_holds_no_side_back_and_lets_it_rest() -> None:
    order = "{barrier: day, inner: {per_key: [k]}}\nkinds: {day: {where: {k: day}}, ride: {}}"
    bench = Bench(
        SPEC.replace("{per_key: [k]}", order) + "limits: {scope_events: 32, unmatched_events: 100}\n"
    )
    worker = bench.started()
    bench.write(Side.LEFT, *(("a", number) for number in range(40)))
    bench.write(Side.RIGHT, ("a", 1), *(("a", number) for number in range(1000, 1016)))
    reason = bench.run(worker).reason
    assert reason.endswith(" Not all of it is explained: limits.scope_events (32) was reached.")
    bench.write(Side.LEFT, *(("a", number) for number in range(40, 300)))
    bench.run(worker)
    bench.write_both(("day", 1), *(("b", number) for number in range(50)))
    met = bench.run(worker)
    assert (met.matched, met.hole_count) == (52, 1)
    assert met.accounts.reference.unmatched == 283
    assert worker._run.turns.next() == [Side.RIGHT, Side.LEFT]
    assert unrest(ResetState(worker._spec, worker.comparison, worker.intake.positions, ()), 0.0) is None


def test_behind_a_halt_nothing_is_said_to_be_classified_yet() -> None:
    bench = Bench(f"{SPEC}on_divergence: halt\n")
    _lose_one(bench)
    why = "classified by what came before the halt, behind which nothing is compared"
    assert f"(1 provisional: {why})" in bench.settled().reason
