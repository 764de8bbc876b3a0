"""Several workers share a comparison, and none of them counts or keeps what is another's."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.support.team import DIVIDED, Team, write_all
from tests.support.workers import SPEC
from twinstream.checkpoints import format as checkpoint
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.errors import Replaced, StoreError
from twinstream.matcher.worker import Worker
from twinstream.ports import EMPTY, Checkpoint
from twinstream.processes.shards import EMPTY_TRIES, ShardStore
from twinstream.spec.lint.sharding import division, refusal
from twinstream.spec.load import loads
from twinstream.status.comparison import Reset, ResetRequest

COPIES = """
kinds: {day: {where: {t: d}}, e: {}}
order: {barrier: day, inner: {per_key: [k]}, copies: per_partition}
"""


def running(shards: int = 2) -> tuple[Team, list[Worker]]:
    """A comparison in so many shards whose workers have matched 24 pairs, and pass."""
    team = Team(shards=shards)
    write_all(team, 24)
    workers = team.started()
    assert team.view(workers).gate.answer == "pass"
    return team, workers


@pytest.mark.parametrize("keep", ["records", "hashes"])
def test_shards_together_match_what_one_worker_would(keep: str) -> None:
    team = Team(spec=f"{DIVIDED}keep: {keep}\n")
    write_all(team)
    workers = team.started()
    view = team.view(workers)
    assert (view.status.matched, view.gate.answer) == (40, "pass")
    assert view.status.accounts.reference.consumed == 40
    assert [worker.comparison.matched for worker in workers] == [20, 20]
    assert {p.partition: p.position for p in view.status.progress.candidate} == dict.fromkeys(range(4), 10)


def test_each_shard_reads_its_own_partitions() -> None:
    workers = Team(shards=3).started()
    assert [sorted(worker.intake.positions[Side.LEFT]) for worker in workers] == [[0, 3], [1], [2]]


def test_topics_of_different_numbers_of_partitions_are_not_co_partitioned() -> None:
    team = Team(shards=1)
    team.source.add_partition(Side.LEFT)
    assert not team.worker(0).start()
    assert team.status().reason.endswith(
        "the topics have 5 and 4 partitions, but the file says `co_partitioned: true`: equal events cannot "
        "all have the same partition number; remove it."
    )


def test_topics_need_as_many_partitions_as_there_are_shards() -> None:
    team = Team(shards=5)
    assert not team.worker(0).start()
    assert team.said(0).waiting_for == "the topics have 4 partitions, too few for 5 shards: start at most 4"


@pytest.mark.parametrize(("shards", "other"), [(1, 1), (2, 2)])
def test_equal_events_in_partitions_of_two_numbers_are_a_hole(shards: int, other: int) -> None:
    team = Team(shards=shards)
    team.write(Side.LEFT, 0, ("a", 1))
    team.write(Side.RIGHT, other, ("a", 1))
    view = team.view(team.started())
    assert (view.status.verdict, view.gate.answer) == ("INCONCLUSIVE", "undecided")
    (hole,) = view.status.holes
    assert "at offset 0 of partition 0" in hole.reason
    assert f"at offset 0 of partition {other}" in hole.reason
    assert hole.reason.endswith(
        "`co_partitioned: true`: remove that, and reset the comparison without `--shards`"
    )


@pytest.mark.parametrize("later", [0, 16])
def test_an_event_whose_partner_is_in_another_shard_decides_nothing(later: int) -> None:
    team = Team()
    write_all(team, 16)
    team.write(Side.LEFT, 0, (0, -1))
    team.write(Side.RIGHT, 1, (0, -1))
    write_all(team, later)
    view = team.view(team.started())
    assert (team.said(0).status.verdict == "DIVERGED") == (later > 0)
    assert (view.status.verdict, view.gate.answer) == ("INCONCLUSIVE", "undecided")
    assert view.status.holes[0].reason == (
        "two equal events, one of each version, have no partner in shard 0 of 2 and in shard 1 of 2, and the "
        "file says `co_partitioned: true`: remove that, and reset the comparison without `--shards`"
    )


def test_what_shards_tell_of_events_without_a_partner_cannot_be_guessed() -> None:
    told = []
    for _ in range(2):
        team = Team()
        write_all(team, 16)
        team.write(Side.LEFT, 1, (1, -1))
        write_all(team, 16)
        team.view(team.started())
        told.append(team.said(1).unpaired.reference)
    assert len(told[0]) == len(told[1]) > 0
    assert not {*told[0]} & {*told[1]}, "each comparison has a secret of its own"


def test_what_is_no_event_counts_once() -> None:
    team = Team(spec=DIVIDED + "undecodable: {budget: 3}\n")
    for partition in range(4):
        team.source.append(Side.RIGHT, partition, b"no event")
    write_all(team)
    view = team.view(team.started())
    assert view.status.accounts.candidate.undecodable == 4
    assert len(view.status.undecodable) == 4
    assert view.status.verdict == "INCONCLUSIVE"


@pytest.mark.parametrize("shards", [1, 2, 4])
@pytest.mark.parametrize(
    ("lost", "verdict", "reason"),
    [
        ((), "EQUIVALENT", "nothing differs"),
        ((0, 1, 2, 3), "DIVERGED", "The outputs differ"),
    ],
)
def test_barriers_with_a_copy_in_each_partition(
    lost: tuple[int, ...], verdict: str, reason: str, shards: int
) -> None:
    team = Team(shards=shards, spec=DIVIDED.replace("order: {per_key: [k]}\n", "") + COPIES)
    for day in range(4):
        write_all(team, 24)
        for side in Side:
            for partition in range(4):
                if (day, side) != (1, Side.RIGHT) or partition not in lost:
                    team.source.append(side, partition, orjson.dumps({"t": "d", "k": 0, "n": day}))
    view = team.view(team.started())
    assert (view.status.verdict, reason in view.status.reason) == (verdict, True)


def test_what_all_shards_take_in_the_store_is_told_as_a_sum() -> None:
    team = Team()
    write_all(team)
    view = team.view(team.started())
    own = [team.said(number).status.checkpoint.store_bytes or 0 for number in range(2)]
    assert view.status.checkpoint.store_bytes == sum(own)
    assert min(own) > 0


def test_a_shard_goes_on_where_it_stood() -> None:
    team, workers = running()
    workers[1].stop()
    write_all(team, 16)
    workers[1] = team.worker(1)
    assert workers[1].start()
    assert team.view(workers).status.matched == 40


def test_a_partition_that_is_added_is_read_by_its_shard_only() -> None:
    team, workers = running()
    team.source.add_partition(Side.RIGHT)
    view = team.view(workers)
    assert [sorted(worker.intake.positions[Side.RIGHT]) for worker in workers] == [[0, 2, 4], [1, 3]]
    assert (view.status.hole_count, view.status.verdict) == (1, "INCONCLUSIVE")


def test_a_start_at_a_time_is_found_by_each_shard_in_its_partitions() -> None:
    spec = DIVIDED + "start: {at: event_time, field: n, from: 20}\n"
    one, many = Team(shards=1, spec=spec), Team(shards=3, spec=spec)
    for team in (one, many):
        write_all(team)
    views = [team.view(team.started()) for team in (one, many)]
    assert [view.status.matched for view in views] == [20, 20]
    assert [view.status.accounts.candidate.before_start for view in views] == [20, 20]


def test_a_shard_that_another_process_owns_stands_by() -> None:
    team = Team()
    team.started()
    assert not team.worker(1).start()
    assert team.said(1).status.health.standby


def test_a_shard_that_reads_again_what_was_lost_is_waited_for() -> None:
    team, workers = running()
    workers[1]._run.situation.rereading = "the state in the store was lost"
    workers[1]._publish_status()
    view = team.view(workers, steps=0)
    assert team.said(1).waiting_for == "the state in the store was lost"
    assert (view.status.verdict, view.gate.answer) == ("PENDING", "undecided")


def test_a_server_that_lost_everything_is_told_the_number_again() -> None:
    team, workers = running()
    team.shelf.in_effect = None
    for number in range(2):
        team.shelf.storage(Shard(number, 2)).stored = EMPTY
    team.view(workers)
    assert team.shelf.in_effect == 2


def test_a_server_that_lost_the_secret_is_told_it_again_and_no_shard_goes_on_with_an_older_one() -> None:
    team, workers = running()
    secret, team.shelf.secret = team.shelf.secret, None
    team.view(workers)
    assert team.shelf.secret == secret
    team.shelf.secret = b"of a shard that began meanwhile"
    with pytest.raises(Replaced, match="its key of hashes was lost"):
        team.view(workers)


# -- another number of shards ------------------------------------------------------------------------------


def stopped(shards: int) -> Team:
    """A comparison in so many shards, which were stopped."""
    team, workers = running(shards)
    for worker in workers:
        worker.stop()
    return team


def reset(team: Team, worker: Worker, start: Any = None, by: str = "ann") -> bool:
    team.ask(ResetRequest(id=f"{by} {start}", by=by, reason="bigger", address="", start=start))
    return worker.begin_anew()


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3)])
def test_another_number_of_shards_is_refused_until_a_reset_and_the_old_state_goes(
    before: int, after: int
) -> None:
    team = stopped(before)
    team.shards = after
    worker = team.worker(0)
    assert not worker.start()
    assert team.status().waiting_for == (
        f"its state is that of --shards {before}, and this process runs with --shards {after}: start it with "
        f"--shards {before}, or begin the comparison anew with {after} (`twinstream reset`)"
    )
    assert not reset(team, worker, "now"), "nobody knows where that is"
    assert reset(team, worker)
    assert team.shelf.in_effect == after
    stored = [team.shelf.storage(Shard(number, before)).stored for number in range(before)]
    assert stored == [EMPTY] * before
    team.shelf.storage(Shard(0, after)).lease = None
    view = team.view(team.started())
    assert (view.status.matched, view.gate.answer, view.status.reset_count) == (24, "pass", 1)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3)])
def test_the_record_of_a_reset_with_another_number_tells_the_difference_that_it_drops(
    before: int, after: int
) -> None:
    team, workers = running(before)
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team)
    assert team.view(workers).status.verdict == "DIVERGED"
    for worker in workers:
        worker.stop()
    team.shards = after
    worker = team.worker(0)
    assert not worker.start()
    assert (team.status().waiting_for or "").endswith("(`twinstream reset`); that state is DIVERGED")
    assert reset(team, worker)
    ended = next(one for one in team.publishers[0].published if isinstance(one, Reset)).before
    assert (ended.verdict, ended.divergences, ended.matched) == ("DIVERGED", 1, 59)
    assert ended.positions.reference.keys() == {"0", "1", "2", "3"}


def test_the_record_of_a_reset_tells_the_difference_that_another_shard_has_saved() -> None:
    team, workers = running()
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team)
    assert team.view(workers).status.verdict == "DIVERGED"
    assert team.said(0).status.verdict == "EQUIVALENT"
    assert reset(team, workers[0])
    ended = next(one for one in team.publishers[0].published if isinstance(one, Reset)).before
    assert (ended.verdict, ended.divergences, ended.matched) == ("DIVERGED", 1, 59)


def test_the_record_of_a_reset_tells_nothing_of_another_file() -> None:
    team, workers = running(2)
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team)
    assert team.view(workers).status.verdict == "DIVERGED"
    for worker in workers:
        worker.stop()
    start = "{at: offsets, reference: {0: 0, 1: 7, 2: 0, 3: 0}, candidate: {0: 0, 1: 6, 2: 0, 3: 0}}"
    team.shards, team.spec = 1, f"{DIVIDED}start: {start}\n"
    worker = team.worker(0)
    assert not worker.start()
    assert worker.start()
    assert team.view([worker]).status.verdict == "EQUIVALENT"
    assert reset(team, worker)
    ended = next(one for one in team.publishers[0].published if isinstance(one, Reset)).before
    assert (ended.verdict, ended.divergences) == ("EQUIVALENT", 0)


def test_a_comparison_of_which_a_shard_has_saved_nothing_had_not_passed() -> None:
    team = stopped(2)
    team.shelf.storage(Shard(1, 2)).stored = EMPTY
    team.shards = 1
    worker = team.worker(0)
    assert not worker.start()
    assert reset(team, worker)
    ended = next(one for one in team.publishers[0].published if isinstance(one, Reset)).before
    assert (ended.verdict, ended.matched > 0) == ("PENDING", True)


def test_an_empty_server_is_left_to_those_who_live_with_another_number() -> None:
    team, workers = running(1)
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team)
    assert team.view(workers).status.verdict == "DIVERGED"
    team.shards = 2
    other = team.worker(0)
    assert not other.start()
    for storage in team.shelf.storages.values():
        storage.owner = storage.lease = None
        storage.stored = EMPTY
    team.shelf.in_effect = None
    for _ in range(EMPTY_TRIES):
        assert not other.start()
        assert team.shelf.in_effect is None
    team.clock.advance(2.5)
    for _ in range(2):
        workers[0].step()
    assert team.shelf.in_effect == 1
    assert not other.start()


def test_a_comparison_that_was_moved_away_is_left_alone_by_another_number_and_file() -> None:
    team = stopped(1)
    storage = team.shelf.storage(Shard())
    moved = {**checkpoint.decode(storage.stored.head), "moved": {"place": "s3://bucket/job"}}
    storage.stored = storage.stored._replace(head=checkpoint.encode(moved))
    team.shards, team.spec = 2, DIVIDED + "limits: {recent_matches: 7}\n"
    worker = team.worker(0)
    assert not worker.start()
    assert "moved to s3://bucket/job" in (team.status().waiting_for or "")
    assert not reset(team, worker)
    assert (storage.stored.head, team.shelf.in_effect) == (checkpoint.encode(moved), 1)


def test_a_state_of_another_number_stays_where_the_save_of_one_shard_is_lost() -> None:
    team = stopped(2)
    team.shelf.storage(Shard(0, 2)).stored = EMPTY
    kept = team.shelf.storage(Shard(1, 2)).stored
    team.shards = 1
    assert not team.worker(0).start()
    assert (team.status().waiting_for or "").startswith("its state is that of --shards 2")
    assert (team.shelf.storage(Shard(1, 2)).stored, team.shelf.in_effect) == (kept, 2)


def test_a_state_of_another_number_and_another_file_goes_when_nobody_works_on_it() -> None:
    team, workers = running()
    team.shards, team.spec = 1, DIVIDED + "limits: {recent_matches: 7}\n"
    worker = team.worker(0)
    assert not worker.start()
    assert team.status().waiting_for == (
        "another process owns this comparison with --shards 2, and another file; this one takes over with "
        "--shards 1 when that has ended"
    )
    assert team.status().health.standby
    for one in workers:
        one.stop()
    assert not worker.start()
    assert worker.start()
    assert (team.view([worker]).status.matched, team.shelf.in_effect) == (24, 1)


OTHER = DIVIDED + "limits: {recent_matches: 7}\n"


def begun_again(team: Team, shards: int, spec: str) -> list[Worker]:
    """The workers of another number and another file, once the first of them has replaced the state."""
    team.clock.advance(10)
    team.shards, team.spec = shards, spec
    workers = [team.worker(number) for number in range(shards)]
    assert [worker.start() for worker in reversed(workers)] == [False] * shards
    team.clock.advance(1)
    assert [worker.start() for worker in reversed(workers)] == [True] * shards, team.said(0).waiting_for
    return workers


def stepping(team: Team, worker: Worker) -> None:
    for _ in range(5):
        worker.step()
        team.clock.advance(1)


def reset_behind_a_difference(shards: int) -> Team:
    """A comparison in so many shards that was reset behind a difference, passes, and was stopped."""
    team, workers = running(shards)
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team)
    assert team.view(workers).gate.answer == "fail"
    team.clock.advance(10)
    ends = {str(partition): end for partition, end in team.source.topics()[Side.LEFT].ends.items()}
    others = {str(partition): end for partition, end in team.source.topics()[Side.RIGHT].ends.items()}
    assert reset(team, workers[0], {"at": "offsets", "reference": ends, "candidate": others})
    for number, worker in enumerate(workers):
        team.shelf.storage(Shard(number, shards)).lease = None
        if number:
            team.clock.advance(1)
            with pytest.raises(Replaced):
                stepping(team, worker)
            team.shelf.storage(Shard(number, shards)).lease = None
    workers = team.started()
    write_all(team, 8)
    assert team.view(workers).gate.answer == "pass"
    for worker in workers:
        worker.stop()
    return team


@pytest.mark.parametrize(("before", "between"), [(2, 1), (1, 2), (3, 2)])
def test_a_number_and_a_file_that_are_put_back_begin_where_the_file_says(before: int, between: int) -> None:
    team = reset_behind_a_difference(before)
    for worker in begun_again(team, between, OTHER):
        worker.stop()
    workers = begun_again(team, before, DIVIDED)
    view = team.view(workers)
    assert (view.gate.answer, view.status.reset_count, view.status.hole_count) == ("fail", 0, 0)


def test_a_process_that_ends_while_it_replaces_another_number_and_file_leaves_no_earlier_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    team = reset_behind_a_difference(1)
    for worker in begun_again(team, 2, OTHER):
        worker.stop()
    team.clock.advance(10)
    team.shards, team.spec = 1, DIVIDED
    for broken in ("save", "_replace"):
        worker = team.worker(0)
        with monkeypatch.context() as patch:
            patch.setattr(ShardStore, broken, failing)
            assert not worker.start()
        assert "redis is away" in (team.status().waiting_for or "")
        team.shelf.storage(Shard()).lease = None
    worker = team.worker(0)
    assert not worker.start()
    team.shelf.storage(Shard()).lease = None
    view = team.view(team.started())
    assert (view.gate.answer, view.status.reset_count) == ("fail", 0)


def failing(*_: Any) -> None:
    raise StoreError("redis is away")


def test_a_store_that_went_back_to_another_number_and_file_has_lost_the_run_of_this_one() -> None:
    team = stopped(1)
    older = team.shelf.storage(Shard()).stored
    workers = begun_again(team, 2, OTHER)
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team)
    assert team.view(workers).gate.answer == "fail"
    for worker in workers:
        worker.stop()
    team.shelf.storages.clear()
    team.shelf.storage(Shard()).stored, team.shelf.in_effect = older, 1
    for side in Side:
        for partition in range(4):
            team.source.retain(side, partition, 8)
    view = team.view(begun_again(team, 2, OTHER))
    assert (view.status.verdict, view.status.hole_count > 0) == ("INCONCLUSIVE", True)


def test_whoever_goes_on_with_the_old_number_finds_out_with_the_next_beat() -> None:
    team, workers = running()
    team.shards = 3
    worker = team.worker(0)
    assert not worker.start()
    assert reset(team, worker)
    store = workers[1]._store
    assert isinstance(store, ShardStore)
    for call in (lambda: store.renew(1), lambda: store.save(Checkpoint(99, None, b"", b"", {}))):
        with pytest.raises(Replaced, match="reset with another number of shards"):
            call()


def went_back(*, alive: bool) -> tuple[Team, list[Worker]]:
    """A comparison that was reset from one shard to two and diverged; its server is as before the reset."""
    team = stopped(1)
    older = team.shelf.storage(Shard()).stored
    team.clock.advance(10)
    team.shards = 2
    worker = team.worker(0)
    assert not worker.start()
    assert reset(team, worker)
    team.first.lease = None
    workers = team.started()
    team.write(Side.LEFT, 1, (1, -1))
    write_all(team)
    assert team.view(workers).gate.answer == "fail"
    if not alive:
        for worker in workers:
            worker.stop()
    for storage in team.shelf.storages.values():
        storage.stored, storage.owner, storage.lease = EMPTY, None, None
    team.shelf.storage(Shard()).stored, team.shelf.in_effect = older, 1
    return team, workers


def test_living_workers_put_their_number_back_where_the_server_went_back_to_before_it() -> None:
    team, workers = went_back(alive=True)
    view = team.view(workers)
    assert (view.gate.answer, view.status.reset_count, team.shelf.in_effect) == ("fail", 1, 2)
    assert all(team.shelf.storage(Shard(number, 2)).stored.sequence for number in range(2))


def test_where_the_server_lost_a_reset_to_this_number_nobody_is_sent_back_to_the_other_one() -> None:
    team, _ = went_back(alive=False)
    worker = team.worker(0)
    assert not worker.start()
    assert team.status().waiting_for == (
        "a reset to --shards 2 was lost, since the state in the store was lost in part: reset it again"
    )
    assert reset(team, worker, by="bob")
    team.first.lease = None
    assert team.view(team.started()).status.hole_count == 0


def test_the_resets_of_before_are_told_by_another_number_of_shards() -> None:
    team = stopped(1)
    (worker,) = team.started()
    assert reset(team, worker)
    team.shelf.storage(Shard()).lease = None
    team.shards = 2
    worker = team.worker(0)
    assert not worker.start()
    assert reset(team, worker, by="bob")
    made = next(one for one in team.publishers[0].published if isinstance(one, Reset))
    assert made.by == "bob"
    team.shelf.storage(Shard(0, 2)).lease = None
    assert [one.by for one in team.view(team.started()).status.resets] == ["ann", "bob"]


# -- what cannot be divided --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("order: total", "events of all keys and partitions can depend on each other"),
        ("duplicates: {policy: replays}", "needs all partitions of a batch together"),
        ("on_divergence: halt", "ends at the first difference of all"),
        (COPIES + "start: {at: barrier}\n", "needs all partitions together"),
        (
            (
                "known_differences: [{id: x, when: {divergences: [missing]}, owner: me, expires: 2999-01-01, "
                "ceiling: {count: 1}}]"
            ),
            "may explain both halves of an event that is in two partitions",
        ),
    ],
)
def test_what_must_be_seen_whole_is_refused_with_the_reason(more: str, why: str) -> None:
    text = DIVIDED.replace("order: {per_key: [k]}\n", "") if "order:" in more else DIVIDED
    spec = loads(f"{text}{more}\n")
    assert refusal(spec, 1) is None
    assert why in str(refusal(spec, 2))
    assert not division(spec).possible


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("start: input\n", "needs all partitions together"),
        ("overdue: {clock: input}\n", "needs all partitions of a side"),
        (
            "checks: [{id: late, closed_windows: {end: e}}]\n",
            "the check `late` (`closed_windows`) needs all",
        ),
        ("checks: [{id: back, watermark: never_back}]\n", "the check `back` (`watermark`) needs all"),
    ],
)
def test_what_control_records_tell_is_of_the_whole_comparison(more: str, why: str) -> None:
    versions = DIVIDED.replace("reference}", 'reference, version: "1"}').replace(
        "candidate}", 'candidate, version: "2"}'
    )
    assert why in str(refusal(loads(f"{versions}control: said\n{more}"), 2))


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("once: [k], horizon: 1m", "once"),
        ("key_partition: [k]", "key_partition"),
        ("ascending: n, per: [k]", "ascending"),
    ],
)
def test_a_check_over_all_partitions_is_not_divided_and_named(entry: str, what: str) -> None:
    spec = loads(f"{DIVIDED}checks: [{{id: it, {entry}}}]\n")
    assert f"the check `it` (`{what}`) needs all partitions of a side" in str(refusal(spec, 2))


CHECKED = """\
checks:
- {id: keyed, key_partition: []}
- {id: in-order, ascending: n}
- {id: complete, not_null: [m]}
- {id: reference-alone, not_null: [k], side: reference}
"""


def test_checks_of_single_partitions_are_divided_and_their_results_added() -> None:
    team = Team(spec=DIVIDED + CHECKED)
    assert division(loads(team.spec)).possible
    write_all(team)
    keyed, ordered, complete, alone = team.view(team.started()).status.checks
    assert keyed.candidate is not None
    assert (keyed.candidate.state, keyed.candidate.checked, keyed.candidate.violations) == (
        "violated",
        40,
        40,
    )
    assert len(keyed.candidate.first) == 5
    assert ordered.candidate is not None
    assert ordered.candidate.state == "holds"
    assert complete.reference is not None
    assert complete.reference.violations == 40
    assert (alone.candidate, alone.reference and alone.reference.state) == (None, "holds")


def test_topics_that_are_not_declared_to_be_co_partitioned_are_not_divided() -> None:
    spec = loads(SPEC)
    assert "does not declare `co_partitioned: true`" in str(refusal(spec, 2))
    assert "`co_partitioned: true`" in division(spec).text
    assert division(loads(DIVIDED)).possible
