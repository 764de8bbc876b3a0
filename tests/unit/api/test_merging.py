"""What several matchers of one comparison say is shown as one, and no better than the worst of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.statuses import (
    NAME,
    REFERENCE,
    START,
    Clocks,
    counts,
    coverage,
    diverged,
    divergence,
    expectation,
    histogram,
    partition,
    reset,
    status,
)
from twinstream.api.routes.operations import obstacles_to_serving
from twinstream.api.state.board import Board
from twinstream.api.state.merging import merged
from twinstream.core.accounting.match_timeline import united
from twinstream.status.common import Accounts, Sides
from twinstream.status.comparison import (
    CheckedSide,
    CheckpointInfo,
    CheckState,
    CheckStatus,
    ComparisonStatus,
    ExplainedCount,
    FoundOverTime,
    Frontier,
    Health,
    Histogram,
    Hole,
    PartitionProgress,
    Position,
    Reset,
    ShardStatus,
    Violation,
    Withdrawn,
)
from twinstream.status.groups import Group, PartitionShare

TWO = expectation(shards=2, kinds_required=("event",))


def said(of: ComparisonStatus | None = None, **more: Any) -> ShardStatus:
    """What a shard says: by itself all is well, over 310 s."""
    times = {"first_at": START - timedelta(seconds=310), "open_since": START}
    return ShardStatus(status=of or status(), **{**times, **more})


def both(one: ShardStatus, other: ShardStatus, **more: Any) -> ComparisonStatus:
    return merged(TWO, {0: one, 1: other}, START, **more)


def pending(matched: int) -> ShardStatus:
    """A shard that has matched too few."""
    own = status(
        verdict="PENDING",
        matched=matched,
        coverage=coverage(matched, (f"{matched:,} of 1,000 required pairs",)),
    )
    return said(own)


def doubtful(*doubts: str, **changes: Any) -> ShardStatus:
    return said(status(verdict="INCONCLUSIVE", **changes), doubts=list(doubts))


VERDICTS = {
    "EQUIVALENT": said(),
    "PENDING": said(status(verdict="PENDING"), waiting_for="Kafka is away"),
    "INCONCLUSIVE": doubtful("a hole"),
    "DIVERGED": said(diverged()),
}


@pytest.mark.parametrize("worse", range(4))
@pytest.mark.parametrize("better", range(4))
def test_the_worst_verdict_holds(worse: int, better: int) -> None:
    names = list(VERDICTS)
    found = both(VERDICTS[names[worse]], VERDICTS[names[better]])
    assert found.verdict == names[max(worse, better)]


def test_evidence_is_what_all_shards_have_together() -> None:
    found = both(pending(600), pending(600))
    assert (found.verdict, found.coverage.matched, found.coverage.missing) == ("EQUIVALENT", 1200, [])
    assert found.coverage.matched_by_kind == {"event": 1200}
    assert found.reason.startswith("1,200 pairs match, nothing differs")


def test_what_matched_since_a_moment_is_what_matched_since_then_in_all_shards() -> None:
    found, since = both(pending(600), pending(400)), START.timestamp() - 100
    parts = [coverage(matched).matched_since for matched in (600, 400)]
    told = [
        united([part.model_dump()]).since(since).total() for part in (found.coverage.matched_since, *parts)
    ]
    assert told == [300, 180, 120]


def test_too_little_of_all_shards_is_pending() -> None:
    found = both(pending(300), pending(400))
    assert (found.verdict, found.coverage.missing) == ("PENDING", ["700 of 1,000 required pairs"])
    assert found.reason == "Nothing wrong so far; not enough compared yet: 700 of 1,000 required pairs."


def test_what_a_shard_lacks_besides_counts_all_lack() -> None:
    lack = "a key has had no final row for 110 s"
    own = status(
        verdict="PENDING", matched=600, coverage=coverage(600, ("600 of 1,000 required pairs", lack))
    )
    found = both(pending(600), said(own))
    assert (found.verdict, found.coverage.missing) == ("PENDING", [f"shard 1 of 2: {lack}"])
    assert both(said(own), said(own)).coverage.missing == [lack]


def test_a_shard_without_any_event_lacks_nothing() -> None:
    nobody = status(verdict="PENDING", matched=0, coverage=coverage(0, ("0 of 1,000 required pairs",)))
    found = both(said(), said(nobody, first_at=None, open_since=None))
    assert (found.verdict, found.coverage.seconds) == ("EQUIVALENT", 308.0)


@pytest.mark.parametrize(("first", "seconds"), [(-20, 20.0), (60, 3538.0)])
def test_the_time_of_a_record_that_is_ahead_of_the_present_has_not_passed(first: int, seconds: float) -> None:
    until = START + timedelta(hours=1)
    times = {"first_at": START + timedelta(seconds=first), "open_since": until}
    ahead = said(status(coverage=coverage(at=until)), **times)
    assert both(ahead, ahead).coverage.seconds == seconds


def test_seconds_reach_from_the_first_record_to_the_oldest_open_event_of_any_shard() -> None:
    early = said(first_at=START - timedelta(seconds=400), open_since=None)
    late = said(first_at=START, open_since=START - timedelta(seconds=30))
    assert both(early, late).coverage.seconds == 370.0


def test_no_shard_vouches_for_what_another_has_not_confirmed() -> None:
    behind = coverage().model_copy(update={"until": START - timedelta(seconds=280), "seconds": 30.0})
    stuck = said(status(coverage=behind, verified_age_seconds=282.0), open_since=None)
    assert both(stuck, said(status(), open_since=None)).coverage.seconds == 28.0


def test_what_no_shard_has_confirmed_is_no_evidence() -> None:
    confirmed = coverage().model_copy(update={"until": START - timedelta(seconds=300)})
    shard = said(status(coverage=confirmed), open_since=None)
    assert both(shard, shard).coverage.seconds == 10.0, "though newer records are read"


def test_a_shard_that_has_said_nothing_is_waited_for_by_name() -> None:
    found = merged(TWO, {1: said()}, START)
    assert found.verdict == "PENDING"
    assert found.reason.endswith("Not known yet: shard 0 of 2: it has published nothing yet.")


def test_what_one_shard_doubts_is_said_with_its_name_and_what_all_do_without() -> None:
    assert both(doubtful("lost", "same"), doubtful("same")).reason == (
        "Not decided: shard 0 of 2: lost; same."
    )


def test_what_is_waited_for_in_any_shard_is_waited_for() -> None:
    one, other = status(difference_awaits=["checkpoint"]), status(difference_awaits=["batches", "checkpoint"])
    whole = both(said(one), said(other, waiting_for="no safe start"))
    assert whole.difference_awaits == ["checkpoint", "batches"]
    assert whole.waiting_for == "shard 1 of 2: no safe start"
    assert both(said(), said()).waiting_for is None


def test_records_that_are_too_many_only_together_are_a_doubt() -> None:
    account = Accounts(consumed=3, matched=0, undecodable=3)
    own = status(accounts=Sides[Accounts](reference=account, candidate=Accounts()))
    allowed = expectation(shards=2, undecodable_budget=5)
    found = merged(allowed, {0: said(own), 1: said(own)}, START)
    assert (found.verdict, found.accounts.reference.undecodable) == ("INCONCLUSIVE", 6)
    enough = expectation(shards=2, undecodable_budget=6)
    assert merged(enough, {0: said(own), 1: said(own)}, START).verdict == "EQUIVALENT"


def test_counts_are_summed() -> None:
    found = both(said(diverged()), said(diverged(divergences=counts(missing=2))))
    assert (found.events.reference, found.matched, found.unmatched.candidate) == (10024, 10000, 8)
    assert found.accounts.reference == Accounts(consumed=10024, matched=10000, divergent=2, unmatched=22)
    assert (found.divergences, found.max_unmatched) == (counts(changed=1, missing=2), 460)
    assert found.reason.startswith("The outputs differ: 2 missing, 1 changed")


def test_of_how_far_it_has_come_the_shard_furthest_behind_counts() -> None:
    ahead = said()
    behind = said(
        status(
            verified_through=START - timedelta(seconds=60),
            verified_up_to=Sides[dict[str, int]](reference={"3": 10, "2": 7}, candidate={}),
            progress=Sides[list[PartitionProgress]](
                reference=[partition(3, 12, 2497), partition(2, 7, None)], candidate=[]
            ),
            checkpoint=CheckpointInfo(sequence=7, written_at=START - timedelta(seconds=30)),
        )
    )
    found = both(ahead, behind)
    assert found.verified_through == START - timedelta(seconds=60)
    own = ahead.status.progress.reference
    assert found.verified_up_to.reference == {**ahead.status.verified_up_to.reference, "2": 7, "3": 10}
    assert [(p.partition, p.position, p.lag) for p in found.progress.reference] == [
        *((p.partition, p.position, p.lag) for p in own),
        (2, 7, None),
        (3, 12, 2497),
    ]
    assert found.checkpoint.sequence == 7
    assert both(ahead, said(status(verified_through=None))).verified_through is None


@pytest.mark.parametrize(
    ("one", "other"), [("2026-07-01T00:00:09.000Z", "2026-07-01T00:00:10.000Z"), ("in 0: 9", "in 0: 10")]
)
def test_the_frontier_is_that_of_the_shard_furthest_behind_and_names_it(one: str, other: str) -> None:
    nothing = Frontier()

    def at(place: str | None, held: str | None = None) -> ShardStatus:
        reference = Frontier(at=place, held_back_by=held)
        return said(status(frontier=Sides[Frontier](reference=reference, candidate=nothing)))

    late = Frontier(at=one, held_back_by="shard 1 of 2: partition 1")
    assert both(at(other, "partition 0"), at(one, "partition 1")).frontier.reference == late
    assert both(at(one), at(None)).frontier.reference == nothing
    assert both(at(one, "one"), at(one, "one")).frontier.reference.held_back_by == "one"


def test_what_several_shards_met_is_one_hole() -> None:
    lost = Hole(
        reason="lost", side="reference", position=Position(topic="t", partition=0, offset=5), seen_at=START
    )
    own = Hole(reason="own", seen_at=START)
    found = both(
        doubtful("lost", holes=[lost], hole_count=1), doubtful("lost", holes=[lost, own], hole_count=2)
    )
    assert (found.hole_count, [hole.reason for hole in found.holes]) == (2, ["lost", "own"])


def test_the_first_violation_is_one_of_a_shard_in_which_violations_count() -> None:
    def found(state: CheckState, offset: int) -> ShardStatus:
        first = [Violation(position=Position(topic="t", partition=0, offset=offset), problem="is bad")]
        side = CheckedSide(state=state, checked=9, violations=1, first=first)
        return said(
            status(checks=[CheckStatus(id="a", property="once", text="", gate="fail", candidate=side)])
        )

    (check,) = both(found("undecided", 5), found("violated", 7)).checks
    assert check.candidate is not None
    assert (check.candidate.state, check.candidate.violations) == ("violated", 2)
    assert [one.position.offset for one in check.candidate.first] == [7]


def test_health_is_the_worst_and_names_the_shard() -> None:
    away = Health(status="degraded", reasons=["no broker"], unreachable=["kafka"], stalled=["candidate"])
    told = away.model_copy(update={"reasons": ["shard 1 of 2: no broker"]})
    assert both(said(), said(status(health=away))).health == told
    assert both(said(status(health=away)), said(status(health=away))).health.reasons == ["no broker"]


def test_a_verdict_holds_since_it_was_first_shown() -> None:
    late = said(diverged(since=START + timedelta(seconds=9)))
    first = both(said(), late)
    assert first.since == START + timedelta(seconds=9)
    assert both(said(diverged(since=START)), late, before=first).since == first.since
    assert both(said(diverged(since=START)), late).since == START


# -- on the board ------------------------------------------------------------------------------------------


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def board(clocks: Clocks) -> Board:
    return clocks.board(TWO, stale_after_seconds=5.0)


def at(clocks: Clocks) -> ShardStatus:
    return said(status(at=clocks.now()))


def test_a_comparison_passes_when_all_its_shards_have_spoken(board: Board, clocks: Clocks) -> None:
    board.accept(at(clocks), 0)
    view = board.view(NAME)
    assert (view.gate.answer, view.freshness.state) == ("undecided", "awaited")
    assert view.gate.reason.startswith("Shard 1 of 2: No status yet")
    board.accept(at(clocks), 1)
    assert board.view(NAME).gate.answer == "pass"
    assert [view.status.matched for view in board.views()] == [10000]


def test_a_silent_shard_makes_the_gate_undecided_and_is_named(board: Board, clocks: Clocks) -> None:
    board.accept(at(clocks), 0)
    board.accept(at(clocks), 1)
    clocks.advance(4.0)
    board.accept(at(clocks), 0)
    clocks.advance(2.0)
    view = board.view(NAME)
    assert (view.freshness.state, view.gate.answer) == ("stale", "undecided")
    assert view.gate.reason.startswith("Shard 1 of 2: The status is stale")


def test_a_lost_shard_makes_even_a_difference_undecided_until_it_is_back(
    board: Board, clocks: Clocks
) -> None:
    board.accept(said(diverged(at=clocks.now())), 0)
    board.accept(at(clocks), 1)
    assert board.view(NAME).gate.answer == "fail"
    board.lost(NAME, "its matcher process ended unexpectedly", 1)
    view = board.view(NAME)
    assert (view.gate.answer, view.freshness.state, view.falls) == ("undecided", "lost", 1)
    assert view.gate.reason.startswith("Shard 1 of 2: Its matcher process ended unexpectedly.")
    clocks.advance(1.0)
    board.accept(at(clocks), 1)
    assert board.view(NAME).gate.answer == "fail"


def test_what_a_shard_has_found_stays_while_it_loads_behind_a_reset(board: Board, clocks: Clocks) -> None:
    done = {"resets": [reset()], "reset_count": 1}
    for shard in (0, 1):
        board.accept(said(diverged(at=clocks.now(), **done)), shard)
    assert board.view(NAME).status.counted.total == 2
    clocks.advance(1.0)
    away = {"waiting_for": "kafka is away"}
    loading = status(at=clocks.now(), verdict="PENDING", started_at=clocks.now(), **away)
    board.accept(said(loading, **away), 1)
    board.accept(said(diverged(at=clocks.now(), **done)), 0)
    assert board.view(NAME).status.counted.total == 2


@pytest.mark.parametrize("anew", [0, 1])
def test_a_shard_that_begins_anew_has_found_nothing_whichever_began_first(
    board: Board, clocks: Clocks, anew: int
) -> None:
    for shard in (0, 1):
        begun = clocks.now() + timedelta(seconds=shard)
        board.accept(said((diverged if shard == anew else status)(at=clocks.now(), started_at=begun)), shard)
    assert board.view(NAME).status.verdict == "DIVERGED"
    clocks.advance(3.0)
    board.accept(said(status(at=clocks.now(), started_at=clocks.now())), anew)
    assert (board.view(NAME).status.verdict, board.view(NAME).status.counted.total) == ("EQUIVALENT", 0)


def test_falls_are_those_of_one_shard(board: Board) -> None:
    for shard in (0, 1, 1):
        board.lost(NAME, "it fell", shard)
    assert (board.view(NAME).falls, board.view(NAME).in_crash_loop) == (3, False)
    board.lost(NAME, "it fell", 1)
    view = board.view(NAME)
    assert view.in_crash_loop
    assert "The matcher of shard 1 fell 3 times" in " ".join(view.status.health.reasons)


def test_only_what_the_lost_shard_had_put_forward_is_withdrawn(board: Board) -> None:
    board.accept(divergence("a", provisional=True), 0)
    board.accept(divergence("b", provisional=True), 1)
    board.accept(divergence("c", provisional=True), 1)
    board.accept(divergence("c"), 1)
    board.lost(NAME, "it fell", 1)
    assert [report.id for report in board.divergences(NAME).page(9).items] == ["c", "a"]
    board.accept(Withdrawn(id="a", comparison=NAME), 0)
    assert [report.id for report in board.divergences(NAME).page(9).items] == ["c"]


def test_an_instance_that_owns_only_part_says_so_and_is_not_ready(board: Board, clocks: Clocks) -> None:
    reason = "another process owns this comparison; this one stands by"
    health = Health(status="degraded", reasons=[reason], standby=True)
    waiting = status(verdict="PENDING", health=health, at=clocks.now())
    board.accept(at(clocks), 0)
    board.accept(said(waiting, waiting_for=reason), 1)
    view = board.view(NAME)
    assert (view.status.verdict, view.gate.answer) == ("PENDING", "undecided")
    assert obstacles_to_serving(view) == [f"{NAME}: shard 1 of 2: {reason}"]


def waited(clocks: Clocks, *counts: int, **more: Any) -> ShardStatus:
    """What a shard says a second later: so many events have waited for so long, a second each."""
    clocks.advance(1.0)
    waits = histogram(*counts, sum_seconds=sum(counts))
    return said(status(at=clocks.now(), match_latency=waits, processing=waits, **more))


def timings(board: Board) -> Histogram:
    """How long events waited, which is what they cost, too."""
    shown = board.view(NAME).status
    assert shown.match_latency == shown.processing
    return shown.match_latency


def test_timings_are_those_of_all_shards_and_do_not_fall_when_one_starts_again(
    board: Board, clocks: Clocks
) -> None:
    board.accept(waited(clocks, 10, 20), 0)
    board.accept(waited(clocks, 5, 5), 1)
    assert timings(board) == histogram(15, 25, sum_seconds=40)
    board.lost(NAME, "it fell", 1)
    for own, together in (((0,), (15, 25)), ((2, 1), (17, 26)), ((3, 1), (18, 26))):
        board.accept(waited(clocks, *own), 1)
        assert timings(board) == histogram(*together, sum_seconds=sum(together))


def test_timings_do_not_fall_while_shards_begin_anew_one_after_the_other(
    board: Board, clocks: Clocks
) -> None:
    for shard in (0, 1):
        board.accept(waited(clocks, 10), shard)
    made = reset()
    board.accept(made)
    assert timings(board) == histogram(20, sum_seconds=20)
    for shard, together in ((0, 21), (1, 22)):
        anew = waited(clocks, 1, resets=[made], reset_count=1, started_at=clocks.now())
        board.accept(anew, shard)
        assert timings(board) == histogram(together, sum_seconds=together)


def test_one_shard_is_shown_as_it_speaks() -> None:
    alone = Board()
    alone.expect(expectation())
    alone.accept(status())
    assert alone.view(NAME).status.reference == REFERENCE
    assert alone.view(NAME).status.matched == 5000


def begun(resets: int, matched: int, verdict: str = "EQUIVALENT", identifier: str = "r-1") -> ShardStatus:
    """What a shard says that has been reset so often, last by the reset with this id."""
    records = [reset(identifier)] if resets else []
    own = {"matched": matched, "verdict": verdict, "coverage": coverage(matched)}
    return said(status(resets=records, reset_count=resets, **own))


@pytest.mark.parametrize(
    "old",
    [begun(0, 5000), begun(0, 5000, "DIVERGED"), begun(1, 5000, identifier="a reset that was lost")],
)
def test_a_shard_of_a_comparison_that_has_ended_is_waited_for_and_not_added_up(old: ShardStatus) -> None:
    whole = both(begun(1, 4000), old)
    assert (whole.verdict, whole.matched, whole.reset_count) == ("PENDING", 4000, 1)
    assert "shard 1 of 2: it has not been reset with the others yet" in whole.reason


@pytest.mark.parametrize("records", [[reset()], []])
def test_both_shards_of_a_comparison_that_was_begun_anew_are_added_up_also_by_the_count_of_resets_alone(
    records: list[Reset],
) -> None:
    own = begun(1, 5000).status.model_copy(update={"resets": records})
    assert both(begun(1, 4000), said(own)).matched == 9000


def test_a_verdict_holds_since_the_comparison_began_anew_also_where_it_is_the_same() -> None:
    later = START + timedelta(seconds=9)
    anew = said(status(verdict="PENDING", since=later, reset_count=1))
    before = status(verdict="PENDING", since=START)
    assert both(anew, anew, before=before).since == later


def found(total: int, final: int, seconds: int = 0) -> ShardStatus:
    """What a shard says that has so many changed, of which so many are final."""
    return said(
        diverged(
            divergences=counts(changed=total),
            closed_divergences=counts(changed=final),
            groups=[Group(kind="changed", fields=["n"], count=final)],
            found=FoundOverTime(begins=[7], counts=[final]),
            updated_at=START + timedelta(seconds=seconds),
        )
    )


def told(status: ComparisonStatus) -> tuple[int, int, str]:
    """How many are final, how many provisional, and what the reason says of that."""
    final = status.closed_divergences.total
    return final, status.divergences.total - final, status.reason.split("(")[-1].split(")")[0]


def test_the_reason_tells_how_many_are_final_over_all_shards() -> None:
    whole = both(found(12, 5), found(8, 8))
    assert told(whole) == (13, 7, "13 final, 7 provisional")


def test_while_a_shard_loads_what_is_saved_its_final_differences_stay_and_its_provisional_ones_go() -> None:
    board = Clocks().board(TWO)
    board.accept(found(12, 5), 0)
    board.accept(found(20, 8), 1)
    assert told(board.view(NAME).status) == (13, 19, "13 final, 19 provisional")
    loading = status(verdict="PENDING", updated_at=START + timedelta(seconds=1))
    board.accept(said(loading, waiting_for="it loads"), 0)
    shown = board.view(NAME).status
    assert told(shown) == (13, 12, "13 final, 12 provisional")
    assert sum(group.count for group in shown.groups) == sum(shown.found.counts) == 13
    board.accept(found(20, 19, seconds=2), 1)
    assert told(board.view(NAME).status) == (24, 1, "24 final, 1 provisional")


def test_groups_of_differences_and_their_times_add_up_and_are_told_anew() -> None:
    def shard(number: int, count: int) -> ShardStatus:
        times = FoundOverTime(width_seconds=2 + 2 * number, begins=[8], counts=[count])
        place = PartitionShare(partition=number, count=count, first=5, last=90)
        found = Group(kind="missing", fields=[], count=count, side="reference", partitions=[place])
        return said(diverged(groups=[found], found=times, closed_divergences=counts(missing=count)))

    whole = both(shard(0, 40), shard(1, 2))
    assert whole.found == FoundOverTime(width_seconds=4, begins=[8], counts=[42])
    (group,) = whole.groups
    assert (group.count, [one.partition for one in group.partitions]) == (42, [0, 1])
    assert group.text == "42 missing from the candidate."


# -- known differences ---------------------------------------------------------------------------------------


def explaining(*counts: tuple[str, int, int]) -> ShardStatus:
    """A shard with known differences: the rules that cover them, their number, and that of the final ones."""
    explained = [
        ExplainedCount(rules=list(rules), count=count, final=final) for rules, count, final in counts
    ]
    return said(explained=explained)


def under_ceilings(one: ShardStatus, other: ShardStatus) -> ComparisonStatus:
    expected = TWO.model_copy(update={"ceilings": {"A": 10, "B": 1}})
    return merged(expected, {0: one, 1: other}, START)


def test_known_differences_of_all_shards_count_against_one_ceiling() -> None:
    whole = under_ceilings(explaining(("A", 6, 6)), explaining(("A", 4, 4)))
    assert (whole.verdict, whole.explained_by_rule) == ("EQUIVALENT", {"A": 10, "B": 0})


def test_beyond_a_ceiling_over_all_shards_the_outputs_differ_though_no_shard_says_so() -> None:
    whole = under_ceilings(explaining(("A", 6, 6)), explaining(("A", 5, 5)))
    assert (whole.verdict, whole.explained_by_rule) == ("DIVERGED", {"A": 11, "B": 0})
    assert "11 differences over all shards are covered by A, whose ceiling is 10" in whole.reason


def test_beyond_a_ceiling_by_differences_that_may_change_their_kind_is_a_doubt() -> None:
    whole = under_ceilings(explaining(("A", 6, 6)), explaining(("A", 5, 4)))
    assert whole.verdict == "INCONCLUSIVE"
    assert "whose ceiling is 10" in whole.reason


def test_a_difference_that_two_rules_cover_takes_the_place_that_another_shard_leaves() -> None:
    whole = under_ceilings(explaining(("BA", 1, 1)), explaining(("B", 1, 1), ("A", 9, 9)))
    assert (whole.verdict, whole.explained_by_rule) == ("EQUIVALENT", {"A": 10, "B": 1})
