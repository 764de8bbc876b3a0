"""Several workers share a comparison, and none of them counts or keeps what is another's."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.support.team import Team, write_all
from tests.support.workers import SPEC
from twinstream.core.events import Side
from twinstream.core.neighbours import hashed
from twinstream.core.sharding import Shard
from twinstream.errors import Unready
from twinstream.ports import Batch, Layout, Stored
from twinstream.runtime.falls import Trail
from twinstream.runtime.neighbourhood import ASKED, LOST
from twinstream.runtime.redealing import Redealing
from twinstream.runtime.saves import RETRY_STORE_SECONDS
from twinstream.runtime.shards import ShardStore
from twinstream.runtime.worker import Worker
from twinstream.spec.load import loads
from twinstream.spec.sharding import Part, refusal, way_of
from twinstream.status import ComparisonStatus, ResetRequest, ShardStatus

NOTHING = Stored(None, b"", (), {})


@pytest.mark.parametrize(("by", "shift"), [("auto", 0), ("partition", 0), ("key", 0), ("key", 1)])
def test_shards_together_match_what_one_worker_would(by: Any, shift: int) -> None:
    team = Team(by=by)
    write_all(team, shift=shift)
    workers = team.started()
    view = team.view(workers)
    assert (view.status.matched, view.gate.answer) == (40, "pass")
    assert view.status.accounts.reference.consumed == 40
    assert [worker.comparison.matched for worker in workers] != [40, 0]
    assert {p.partition: p.position for p in view.status.progress.candidate} == dict.fromkeys(range(4), 10)


def test_by_partition_each_shard_reads_its_own_partitions() -> None:
    team = Team(shards=3)
    workers = team.started()
    assert [sorted(worker.intake.positions[Side.LEFT]) for worker in workers] == [[0, 3], [1], [2]]


def test_topics_of_different_numbers_of_partitions_are_divided_by_key() -> None:
    team = Team()
    team.source.add_partition(Side.LEFT)
    workers = team.started()
    assert [len(worker.intake.positions[Side.LEFT]) for worker in workers] == [5, 5]


def test_by_partition_topics_need_as_many_partitions_as_there_are_shards() -> None:
    team = Team(shards=5, by="partition")
    assert not team.worker(0).start()
    assert team.said(0).waiting_for == (
        "the topics have 4 and 4 partitions: 5 shards by partition need as many in both, and at least 5"
    )


def test_time_that_proves_divides_by_key() -> None:
    team = Team(spec=SPEC + "overdue: {proves: true}\n")
    assert all(worker.intake.dealer is not None for worker in team.started())


def test_equal_events_in_partitions_of_two_numbers_are_a_hole() -> None:
    team = Team(shards=2, by="partition")
    team.write(Side.LEFT, 0, ("a", 1))
    team.write(Side.RIGHT, 2, ("a", 1))
    view = team.view(team.started())
    assert (view.status.verdict, view.gate.answer) == ("INCONCLUSIVE", "undecided")
    (hole,) = view.status.holes
    assert "at offset 0 of partition 0" in hole.reason
    assert "at offset 0 of partition 2" in hole.reason
    assert hole.reason.endswith("cannot be divided by partition: begin anew with `--shard-by key`")


@pytest.mark.parametrize("by", ["partition", "key"])
def test_what_is_no_event_counts_once(by: Any) -> None:
    team = Team(by=by, spec=SPEC + "undecodable: {budget: 3}\n")
    for partition in range(4):
        team.source.append(Side.RIGHT, partition, b"no event")
    write_all(team)
    view = team.view(team.started())
    assert view.status.accounts.candidate.undecodable == 4
    assert len(view.status.undecodable) == 4
    assert view.status.verdict == "INCONCLUSIVE"


# -- what shards by partition tell each other ---------------------------------------------------------------


def test_a_difference_counts_when_the_others_have_nothing_of_its_key() -> None:
    team = Team(by="partition", shards=3)
    write_all(team, 16)
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team, 16)
    workers = team.started()
    for worker in workers[:2]:
        for _ in range(9):
            worker.step()
            team.clock.advance(RETRY_STORE_SECONDS)
    assert team.said(1).doubts == [ASKED]
    view = team.view(workers)
    assert (view.status.verdict, view.status.divergences.total) == ("DIVERGED", 1)


def test_a_shard_that_has_a_hole_confirms_nothing() -> None:
    team = Team(by="partition")
    write_all(team, 16)
    team.source.append(Side.RIGHT, 0, b"no event")
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team, 16)
    view = team.view(team.started())
    assert (view.status.verdict, view.gate.answer) == ("INCONCLUSIVE", "undecided")


def asked_and_stopped() -> tuple[Team, list[Worker]]:
    """Two shards; the second was stopped while a difference of it waits for the word of the first."""
    team = Team(by="partition")
    write_all(team, 16)
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team, 400)
    workers = team.started()
    for _ in range(4):
        workers[1].step()
        team.clock.advance(RETRY_STORE_SECONDS)
    assert team.said(1).doubts == [ASKED]
    workers[1].stop()
    return team, workers


def test_what_waits_for_the_others_is_kept_over_a_crash() -> None:
    team, workers = asked_and_stopped()
    workers[1] = team.worker(1)
    assert workers[1].start()
    view = team.view(workers)
    assert (view.status.verdict, view.gate.answer) == ("DIVERGED", "fail")


def test_what_waits_for_the_others_cannot_be_asked_with_another_secret() -> None:
    team, workers = asked_and_stopped()
    workers[1] = team.worker(1, secret=b"another secret of the tests")
    assert workers[1].start()
    view = team.view(workers)
    assert (view.status.verdict, view.gate.answer) == ("INCONCLUSIVE", "undecided")
    assert [hole.reason for hole in view.status.holes] == [LOST]


def test_shards_with_several_secrets_confirm_nothing_to_each_other() -> None:
    team = Team(by="partition")
    write_all(team, 16)
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team, 16)
    workers = [team.worker(number, secret=b"a secret of shard %d" % number) for number in range(2)]
    assert all(worker.start() for worker in workers)
    view = team.view(workers)
    assert (view.status.verdict, view.gate.answer) == ("INCONCLUSIVE", "undecided")
    assert team.said(1).doubts == [ASKED]


def test_notes_tell_keys_by_hashes_that_nobody_can_make_without_the_secret() -> None:
    notes = []
    for _ in range(2):
        team = Team(by="partition")
        write_all(team, 40)
        team.view(team.started())
        notes.append([orjson.loads(note) for note in team.shelf.notes.values()])
    one, other = ({key for note in told for key in note["sample"]} for told in notes)
    assert len(one) == len(other) > 0, "a sample of the same keys"
    assert not one & other


def test_a_candidate_that_deals_its_keys_differently_is_found_at_once() -> None:
    team = Team(by="partition")
    write_all(team, 40, shift=1)
    view = team.view(team.started())
    assert (view.status.verdict, view.gate.answer) == ("INCONCLUSIVE", "undecided")
    (hole,) = view.status.holes
    assert hole.reason == (
        "events of one key stand in partitions of shard 0 and of shard 1, so the work cannot be divided by "
        "partition: begin anew with `--shard-by key`"
    )


def test_an_event_of_a_bag_that_crosses_is_a_hole_when_both_halves_are_overdue() -> None:
    team = Team(by="partition", spec=SPEC.replace("{per_key: [k]}", "unordered"))
    team.write(Side.LEFT, 0, ("a", 1))
    team.write(Side.RIGHT, 1, ("a", 1))
    workers = team.started()
    team.view(workers)
    for partition in range(4):
        for side in Side:
            team.write(side, partition, ("later", partition), at_ms=200_000)
    view = team.view(workers)
    assert view.status.verdict == "INCONCLUSIVE"
    assert "two equal events, one of each version, wait without a partner" in view.status.holes[0].reason


def test_a_partition_in_which_nothing_comes_makes_events_overdue_as_the_whole_side_goes_on() -> None:
    team = Team(by="partition")
    team.write(Side.LEFT, 1, (1, 1))
    for at_ms in (0, 200_000):
        for side in Side:
            team.write(side, 0, (0, at_ms), at_ms=at_ms)
    view = team.view(team.started())
    status = view.status
    assert (status.verdict, status.suspicions, status.health.status) == ("INCONCLUSIVE", 1, "ok")


@pytest.mark.parametrize("shards", [1, 2, 4])
@pytest.mark.parametrize(
    ("lost", "verdict", "reason"),
    [
        ((), "EQUIVALENT", "nothing differs"),
        ((2,), "INCONCLUSIVE", "the copies of one barrier in "),
        ((0, 1, 2, 3), "DIVERGED", "The outputs differ"),
    ],
)
def test_barriers_with_a_copy_in_each_partition(
    lost: tuple[int, ...], verdict: str, reason: str, shards: int
) -> None:
    team = Team(by="auto", shards=shards, spec=SPEC.replace("order: {per_key: [k]}\n", "") + COPIES)
    for day in range(4):
        write_all(team, 24)
        for side in Side:
            for partition in range(4):
                if (day, side) != (1, Side.RIGHT) or partition not in lost:
                    team.source.append(side, partition, orjson.dumps({"t": "d", "k": 0, "n": day}))
    view = team.view(team.started())
    assert (view.status.verdict, reason in view.status.reason) == (verdict, True)


def test_a_difference_in_one_shard_is_one_of_the_comparison() -> None:
    team = Team()
    write_all(team, 16)
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team, 400)
    view = team.view(team.started(), steps=9)
    assert (view.status.verdict, view.gate.answer) == ("DIVERGED", "fail")
    assert view.status.divergences.by_kind["missing"] == 1


def test_what_all_shards_take_in_the_store_is_told_as_a_sum() -> None:
    team = Team()
    write_all(team)
    view = team.view(team.started())
    own = [team.said(number).status.checkpoint.store_bytes or 0 for number in range(2)]
    assert view.status.checkpoint.store_bytes == sum(own)
    assert min(own) > 0


@pytest.mark.parametrize("by", ["partition", "key"])
def test_a_shard_goes_on_where_it_stood(by: Any) -> None:
    team = Team(by=by)
    write_all(team, 24)
    workers = team.started()
    team.view(workers)
    workers[1].stop()
    write_all(team, 16)
    workers[1] = team.worker(1)
    assert workers[1].start()
    assert team.view(workers).status.matched == 40


def test_how_the_work_is_divided_stays_as_it_began() -> None:
    team = Team(by="partition")
    write_all(team, 8)
    workers = team.started()
    team.view(workers)
    for worker in workers:
        worker.stop()
    team.by = "auto"
    team.source.add_partition(Side.LEFT)
    assert team.worker(0).start()
    team.by = "key"
    worker = team.worker(1)
    assert not worker.start()
    assert team.said(1).waiting_for == (
        "the stored state is divided by partition: begin anew to divide it by key"
    )


def test_a_partition_that_is_added_is_read_by_its_shard_only() -> None:
    team = Team(by="partition")
    workers = team.started()
    team.view(workers)
    team.source.add_partition(Side.RIGHT)
    view = team.view(workers)
    assert [sorted(worker.intake.positions[Side.RIGHT]) for worker in workers] == [[0, 2, 4], [1, 3]]
    assert (view.status.hole_count, view.status.verdict) == (1, "INCONCLUSIVE")


# -- whose the stores are ----------------------------------------------------------------------------------


def test_a_shard_that_another_process_owns_stands_by() -> None:
    team = Team()
    team.started()
    assert not team.worker(1).start()
    assert team.said(1).status.health.standby


def test_the_first_shard_divides_before_the_others_begin() -> None:
    team = Team()
    assert not team.worker(1).start()
    assert team.said(1).waiting_for == "shard 0 divides the state among 2 matchers first"
    assert team.worker(0).start()
    assert team.worker(1).start()
    assert team.shelf.in_effect == Layout(1, 2)


def test_who_runs_with_another_number_is_waited_for() -> None:
    one = Team(shards=1)
    one.started()
    two = Team(shelf=one.shelf, source=one.source, host="other")
    assert not two.worker(0).start()
    assert two.said(0).status.health.standby
    assert two.said(0).waiting_for == (
        "another process owns this comparison with --shards 1; this one takes over with --shards 2 when that "
        "has ended"
    )


def test_a_store_that_is_replaced_while_it_is_taken_is_let_go() -> None:
    team = Team(shards=1)
    shelf = team.shelf.owned_by("me")
    store = ShardStore(shelf, "test", Shard(), Redealing(loads(SPEC), "auto").deal)
    told = iter((Layout(), Layout(1, 2)))
    shelf.layout = lambda: next(told)  # type: ignore[method-assign]
    with pytest.raises(Unready, match="being divided"):
        store.acquire()
    assert team.shelf.storage(Layout(), 0).lease is None


def test_a_layout_that_the_server_loses_at_once_is_not_worked_by() -> None:
    team = Team()
    shelf = team.shelf.owned_by("me")
    store = ShardStore(shelf, "test", Shard(0, 2), Redealing(loads(SPEC), "auto").deal)
    told = iter((Layout(), Layout(), Layout()))
    shelf.layout = lambda: next(told)  # type: ignore[method-assign]
    with pytest.raises(Unready, match="lost"):
        store.acquire()
    assert team.shelf.storage(Layout(), 0).lease is None


def test_a_server_that_lost_everything_is_told_the_layout_again() -> None:
    team = Team()
    write_all(team, 8)
    workers = team.started()
    team.view(workers)
    team.shelf.in_effect = None
    for number in range(2):
        team.shelf.storage(Layout(1, 2), number).stored = NOTHING
    team.view(workers)
    assert team.shelf.in_effect == Layout(1, 2)


def test_a_shard_that_reads_again_what_was_lost_is_waited_for() -> None:
    team = Team()
    write_all(team)
    workers = team.started()
    team.view(workers)
    workers[1]._course.situation.rereading = "the state in the store was lost"
    workers[1]._publish_status()
    view = team.view(workers, steps=0)
    assert team.said(1).waiting_for == "the state in the store was lost"
    assert (view.status.verdict, view.gate.answer) == ("PENDING", "undecided")


# -- another number of shards ------------------------------------------------------------------------------


def stopped(workers: list[Worker]) -> None:
    for worker in workers:
        worker.stop()


@pytest.mark.parametrize("keep", ["records", "hashes"])
def test_no_key_can_be_guessed_from_what_shards_tell_each_other(keep: str) -> None:
    team = Team(by="partition", spec=f"{SPEC}keep: {keep}\n")
    for side in Side:
        team.write(side, 0, ("secret", 1))
    team.view(team.started())
    notes = list(team.shelf.notes.values())
    assert any(orjson.loads(note)["sample"] for note in notes)
    assert hashed(b"secret") not in b" ".join(notes).decode()


@pytest.mark.parametrize("by", ["auto", "key"])
@pytest.mark.parametrize("keep", ["records", "hashes"])
def test_another_number_of_shards_goes_on_with_the_state(by: Any, keep: str) -> None:
    team = Team(shards=1, by=by, spec=f"{SPEC}keep: {keep}\n")
    write_all(team, 24)
    team.write(Side.LEFT, 3, ("waits", 1))
    for shards in (1, 3, 2, 1):
        team.shards = shards
        workers = team.started()
        status = team.view(workers).status
        assert (status.matched, status.coverage.events) == (24, 49)
        stopped(workers)
    team.write(Side.RIGHT, 3, ("waits", 1))
    assert team.view(team.started()).status.matched == 25
    assert team.shelf.in_effect == Layout(3, 1)


@pytest.mark.parametrize("late", [0, 1, 2])
def test_what_a_shard_that_saved_nothing_has_not_taken_is_taken_with_another_number(late: int) -> None:
    team = Team(shards=3, by="key")
    write_all(team, 24)
    workers = team.started()
    team.view(workers)
    for number, worker in enumerate(workers):
        if number == late:
            team.shelf.storage(Layout(1, 3), late).stored = NOTHING
        else:
            worker.stop()
    team.shelf.storage(Layout(1, 3), late).lease = None
    team.shards = 2
    status = team.view(team.started()).status
    assert (status.matched, status.accounts.reference.consumed) == (24, 24)


def test_what_one_matcher_has_left_out_and_others_have_taken_counts_once_with_another_number() -> None:
    team = Team(shards=3, by="key")
    team.write(Side.RIGHT, 1, ("poison", 0))
    write_all(team, 24)
    trail = Trail()
    trail.enter(Batch(Side.RIGHT, 1, [b""], [0], [0]), team.source.topics()[Side.RIGHT].id)
    team.left_out = (*filter(None, [trail.stretch()]),)
    workers = team.started()
    for _ in range(3):
        workers[1].step()
    stopped(workers)
    team.shards, team.left_out = 2, ()
    status = team.view(team.started()).status
    accounts = status.accounts.candidate
    # The event is that of another shard, which had not taken it yet.
    assert (accounts.consumed, accounts.undecodable, status.matched) == (25, 0, 24)
    (hole,) = status.holes
    assert (status.verdict, hole.position and hole.position.offset) == ("INCONCLUSIVE", 0)


@pytest.mark.parametrize("by", ["partition", "key"])
def test_what_is_gone_before_a_shard_has_saved_anything_is_a_hole_with_another_number(by: Any) -> None:
    team = Team(shards=2, by=by)
    write_all(team, 24)
    workers = team.started()
    team.view(workers)
    workers[0].stop()
    lost = team.shelf.storage(Layout(1, 2), 1)
    lost.stored, lost.lease = NOTHING, None
    team.source.retain(Side.LEFT, 1, 3)
    team.shards = 1
    status = team.view(team.started()).status
    assert (status.verdict, [hole.position.offset for hole in status.holes if hole.position]) == (
        "INCONCLUSIVE",
        [0],
    )


def test_an_end_while_the_state_is_dealt_leaves_what_was_in_effect() -> None:
    team = Team(shards=1)
    write_all(team, 8)
    workers = team.started()
    team.view(workers)
    stopped(workers)
    team.shards = 2
    worker = team.worker(0)
    team.shelf.storage(Layout(1, 2), 1).down = "the server is away"
    assert not worker.start()
    assert team.shelf.in_effect is None
    assert all(storage.lease is None for storage in team.shelf.storages.values())
    team.shelf.storage(Layout(1, 2), 1).down = None
    assert team.view(team.started()).status.matched == 8


def write_days(team: Team, *numbers: int) -> None:
    """A day of each side in each partition."""
    for side, number in zip(Side, numbers, strict=True):
        for partition in range(4):
            team.source.append(side, partition, orjson.dumps({"t": "d", "k": 0, "n": number}))


def test_a_state_that_cannot_be_dealt_is_kept_and_said_so() -> None:
    spec = SPEC.replace("order: {per_key: [k]}\n", "") + COPIES
    team = Team(by="partition", spec=spec)
    write_all(team, 8)
    write_days(team, 1, 2)
    workers = team.started()
    assert team.view(workers).status.verdict == "DIVERGED"
    stopped(workers)
    team.shards = 1
    assert not team.worker(0).start()
    published = team.publishers[0].published[-1]
    assert isinstance(published, ComparisonStatus)
    assert published.reason.endswith(
        "the stored state is that of --shards 2 and cannot be dealt to 1, since a difference at a barrier is "
        "open in it: start with --shards 2, or begin anew."
    )
    team.shards = 2
    for number in range(3, 6):
        write_days(team, number, number)
        write_all(team, 8)
    workers = team.started()
    before = team.view(workers).status
    stopped(workers)
    team.shards = 1
    after = team.view(team.started()).status
    assert (before.verdict, before.closed_divergences.total) == ("DIVERGED", 4)
    assert (after.verdict, after.closed_divergences) == ("DIVERGED", before.closed_divergences)
    assert (after.matched, after.verified_up_to) == (before.matched, before.verified_up_to)


@pytest.mark.parametrize("order", ["{per_key: [k]}", "unordered"])
@pytest.mark.parametrize("shards", [1, 2])
def test_halves_that_wait_in_partitions_of_several_shards_are_not_taken_for_a_difference(
    order: str, shards: int
) -> None:
    team = Team(shards=3, by="partition", spec=SPEC.replace("{per_key: [k]}", order))
    write_all(team, 8)
    team.write(Side.LEFT, 0, ("crosses", 1))
    team.write(Side.RIGHT, 1, ("crosses", 1))
    workers = team.started()
    assert team.view(workers).status.verdict != "DIVERGED"
    stopped(workers)
    team.shards = shards
    assert not team.worker(0).start()
    published = team.publishers[0].published[-1]
    reason = published.reason if isinstance(published, ComparisonStatus) else published.status.reason
    assert f"cannot be dealt to {shards}, since events of one key wait on both sides" in reason
    team.shards = 3
    assert team.view(team.started()).status.matched == 8


def reset_to(team: Team, start: dict[str, Any]) -> None:
    """Reset the comparison of one matcher."""
    (worker,) = team.started()
    team.view([worker])
    request = ResetRequest(id="r", by="ann", reason="mended", address="", start=start)
    assert worker.begin_anew(request)
    team.shelf.storage(Layout(), 0).lease = None


def test_the_start_that_a_reset_named_holds_for_another_number_of_shards() -> None:
    team = Team(shards=1)
    write_all(team, 24)
    reset_to(team, {"at": "event_time", "field": "n", "from": 12})
    workers = team.started()
    assert team.view(workers).status.matched == 12
    stopped(workers)
    team.shards = 2
    workers = team.started()
    team.write(Side.LEFT, 0, ("early", 1))
    view = team.view(workers)
    assert (view.status.matched, view.status.accounts.reference.before_start) == (12, 13)
    assert [record.by for record in view.status.resets] == ["ann"]


def test_a_comparison_that_was_reset_is_shared_once_it_has_begun() -> None:
    team = Team(shards=1)
    write_all(team, 24)
    reset_to(team, {"at": "event_time", "field": "n", "from": 12})
    team.shards = 2
    assert not team.worker(0).start()
    published = team.publishers[0].published[-1]
    assert isinstance(published, ShardStatus)
    assert "since it was reset and has not begun yet: start with --shards 1" in published.status.reason


START = "start: {at: event_time, field: n, from: 2026-01-01T00:00:00Z}"
KNOWN = (
    "known_differences: [{id: x, when: {divergences: [missing]}, owner: me, expires: 2999-01-01, "
    "ceiling: {count: 1}}]"
)
COPIES = """
kinds: {day: {where: {t: d}}, e: {}}
order: {barrier: day, inner: {per_key: [k]}, copies: per_partition}
"""

# -- what cannot be divided --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("order: total", "events of all keys and partitions can depend on each other"),
        ("duplicates: {policy: replays}", "told by all that it holds"),
        ("on_divergence: halt", "ends with the first difference of all"),
        (COPIES + "start: {at: barrier}\n", "found by what all partitions"),
        (START + "\noverdue: {proves: true}", "has the partner, and `start: event_time` has to see"),
        (KNOWN, "no shard knows what the others have explained by then"),
        (COPIES + "overdue: {proves: true}", "and each partition has its copy of a barrier"),
    ],
)
def test_what_must_be_seen_whole_is_refused_with_the_reason(more: str, why: str) -> None:
    text = SPEC.replace("order: {per_key: [k]}\n", "") if "order:" in more else SPEC
    spec = loads(f"{text}{more}\n")
    assert refusal(spec, 1, "auto") is None
    assert why in str(refusal(spec, 2, "auto"))


def test_a_start_at_a_time_is_found_by_each_shard_in_its_partitions() -> None:
    spec = SPEC + "start: {at: event_time, field: n, from: 20}\n"
    one, many = Team(shards=1, spec=spec), Team(shards=3, spec=spec)
    for team in (one, many):
        write_all(team)
    views = [team.view(team.started()) for team in (one, many)]
    assert [view.status.matched for view in views] == [20, 20]
    assert [view.status.accounts.candidate.before_start for view in views] == [20, 20]


def test_a_start_at_the_input_is_refused() -> None:
    versions = SPEC.replace("reference}", 'reference, version: "1"}').replace(
        "candidate}", 'candidate, version: "2"}'
    )
    spec = loads(f"{versions}control: said\nstart: input\n")
    assert "`start: input` is found by what all partitions hold" in str(refusal(spec, 2, "auto"))


@pytest.mark.parametrize(
    ("more", "by", "why"),
    [
        (COPIES, "key", "matchers by key, since each partition has its copy of a barrier: leave"),
        (START, "key", "matchers by key, since `start: event_time` has to see the first event of each"),
        (
            "overdue: {clock: event_time, field: n}",
            "partition",
            "the clock of `overdue`, event_time, reads all",
        ),
        ("overdue: {proves: true}", "partition", "since time that proves (`overdue.proves`) would prove"),
    ],
)
def test_a_way_that_cannot_be_is_refused_and_the_other_one_taken(more: str, by: Any, why: str) -> None:
    text = SPEC.replace("order: {per_key: [k]}\n", "") if "order:" in more else SPEC
    spec = loads(f"{text}{more}\n")
    assert why in str(refusal(spec, 2, by))
    assert refusal(spec, 2, "auto") is None
    assert way_of(spec, Part(Shard(0, 2)), (4, 4)) == ("partition" if by == "key" else "key")


def test_epochs_with_copies_cannot_be_divided_where_partitions_differ() -> None:
    spec = loads(SPEC.replace("order: {per_key: [k]}\n", "") + COPIES)
    assert way_of(spec, Part(Shard(0, 2)), (4, 3)) is None
