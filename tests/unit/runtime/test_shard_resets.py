"""Several workers share a comparison, and begin it anew together: all of them, or none."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import pytest

from tests.support.players import BEFORE, Players, at_the_ends, playing, request
from tests.support.team import Team, write_all
from twinstream.core.events import Side
from twinstream.errors import Fenced, Replaced, StoreError
from twinstream.ports import Checkpoint, Layout
from twinstream.runtime.others import ASK_SECONDS
from twinstream.runtime.resets import PATIENCE_SECONDS
from twinstream.runtime.shards import ShardStore
from twinstream.status import Reset, ResetRefused


def diverged(by: Any = "partition", shards: int = 2) -> Players:
    """One that has found an event missing, by its second shard, and has gone on."""
    players = Players(Team(by=by, shards=shards))
    players.team.write(Side.LEFT, 1, (1, -1))
    write_all(players.team, 448)
    view = players.turns(24)
    assert (view.status.verdict, view.answer) == ("DIVERGED", "fail"), view.status.reason
    return players


@pytest.mark.parametrize("by", ["partition", "key"])
@pytest.mark.parametrize("shards", [2, 3])
def test_all_shards_begin_anew_together_and_nothing_is_left_of_what_was(by: Any, shards: int) -> None:
    players = diverged(by, shards)
    made = players.reset(at_the_ends(players))
    assert isinstance(made, Reset)
    assert made.before == BEFORE
    assert (players.view().status.verdict, players.view().answer) == ("PENDING", "undecided")
    write_all(players.team, 24)
    view = players.turns()
    assert (view.status.verdict, view.answer, view.status.matched) == ("EQUIVALENT", "pass", 24)
    assert (view.status.divergences.total, view.status.reset_count, view.status.hole_count) == (0, 1, 0)
    assert players.board.divergences("test").page(10).items == []
    assert (players.replaced, players.team.shelf.in_effect) == (shards - 1, Layout(2, shards))
    assert left_of(players, 1) == [None] * shards


def test_a_reset_without_a_start_compares_again_what_the_file_says() -> None:
    players = diverged()
    assert isinstance(players.reset(), Reset)
    view = players.turns(24)
    assert (view.status.verdict, view.status.divergences.total, view.status.reset_count) == ("DIVERGED", 1, 1)


def test_where_the_store_has_lost_the_reset_before_others_heard_of_it_all_are_heard_again() -> None:
    players = playing()
    shelf = players.team.shelf
    before = shelf.in_effect, {storage: deepcopy(vars(storage)) for storage in shelf.storages.values()}
    assert isinstance(players.reset(at_the_ends(players)), Reset)
    shelf.in_effect = before[0]
    for storage, held in before[1].items():
        vars(storage).update(held)
    write_all(players.team, 24)
    view = players.turns(24)
    assert view.is_fresh, view.freshness.reason
    assert (view.status.matched, players.replaced) == (72, 0)


# -- where somebody ends, or something fails ---------------------------------------------------------------


class Killed(Exception):  # noqa: N818 - it is what happens, and no error
    """The process ends here."""


class Cut:
    """Has what it stands for end, or fail, before a step: the one with this number."""

    def __init__(self, at: int, error: Exception) -> None:
        self.at, self.error = at, error
        self.steps: list[str] = []

    def step(self, name: str) -> None:
        self.steps.append(name)
        if len(self.steps) == self.at + 1:
            raise self.error

    def of(self, inner: Any) -> Any:
        return _Watched(inner, self)


class _Watched:
    def __init__(self, inner: Any, cut: Cut) -> None:
        self._inner, self._cut = inner, cut

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in ("claim", "replace", "store", "seize", "clear", "save", "release"):
            return method

        def watched(*arguments: Any) -> Any:
            if name == "store":
                return self._cut.of(method(*arguments))
            self._cut.step(name)
            return method(*arguments)

        return watched


STEPS = ["claim", *["seize", "clear", "save"], *["seize", "clear", "save", "release"], "replace"]
AFTER = ["seize", "clear", "release"]
"""What shard 0 of two does: up to the one step that takes effect, `replace`; and after that."""


def cut_off(players: Players, at: int, error: Exception) -> Cut:
    """What shard 0 does next is cut off before a step."""
    cut, store = Cut(at, error), players.working[0]._store
    assert isinstance(store, ShardStore)
    store._shelf = cut.of(store._shelf)
    return cut


@pytest.mark.parametrize("by", ["partition", "key"])
@pytest.mark.parametrize("at", range(len(STEPS) + len(AFTER)))
def test_who_is_killed_at_any_step_leaves_all_shards_in_the_old_comparison_or_all_in_the_new(
    at: int, by: Any
) -> None:
    players = diverged(by)
    cut = cut_off(players, at, Killed())
    with pytest.raises(Killed):
        players.reset(at_the_ends(players))
    assert cut.steps == [*STEPS, *AFTER][: at + 1]
    players.kill(0)
    write_all(players.team, 24)
    for _ in range(16):
        players.turn()
        assert players.view().answer == "undecided" or len({*counts(players)}) == 1
    done, view = at >= len(STEPS), players.view()
    expected = ("EQUIVALENT", "pass", 24, 1) if done else ("DIVERGED", "fail", 472, 0)
    assert (view.status.verdict, view.answer, view.status.matched, view.status.reset_count) == expected
    assert [worker._resets.made for worker in players.working.values()] == [done, done]
    assert [one is None for one in left_of(players, 1)] == [done, done], "what is not in effect is removed"


def left_of(players: Players, generation: int) -> list[int | None]:
    """The numbers of the checkpoints that the stores of a generation hold."""
    places = sorted(players.team.shelf.storages.items())
    return [storage.stored.sequence for (of, _), storage in places if of == generation]


def counts(players: Players) -> list[int]:
    """How often the comparison was reset of which each shard spoke last."""
    matchers = players.board._entry("test").matchers
    return [one.said.status.reset_count for one in matchers if one.said is not None]


@pytest.mark.parametrize("at", range(len(STEPS) - 1))
def test_a_store_that_fails_before_it_takes_effect_changes_nothing_and_that_is_said(at: int) -> None:
    players = diverged()
    cut_off(players, at, StoreError("the server is away"))
    refused = players.reset(at_the_ends(players))
    assert refused == ResetRefused(id="r-1", reason="the server is away")
    view = players.turns(3)
    assert (view.answer, view.status.reset_count, players.replaced) == ("fail", 0, 0)


def test_where_it_is_not_known_whether_it_took_effect_that_is_said() -> None:
    players = diverged()
    cut_off(players, len(STEPS) - 1, StoreError("no answer came"))
    with pytest.raises(StoreError, match="no answer came"):
        players.reset(at_the_ends(players))
    said = players.team.publishers[0].published
    assert ResetRefused(id="r-1", reason="no answer came", open=True) in said


def test_two_that_reset_at_once_leave_all_shards_with_one_of_both() -> None:
    players = diverged()
    paused, first = players.working[0], request(at_the_ends(players))
    cut_off(players, len(STEPS) - 1, Killed())
    with pytest.raises(Killed):
        paused.begin_anew(first)
    players.kill(0)
    players.turns(4)
    cut_off(players, 4, Killed())
    with pytest.raises(Killed):
        players.working[0].begin_anew(request(identifier="r-2"))
    store = paused._store
    assert isinstance(store, ShardStore)
    with pytest.raises(Fenced):
        store._shelf._inner.replace(Layout(1, 2), Layout(2, 2))
    assert players.team.shelf.in_effect == Layout(1, 2)


def test_a_shard_that_is_paused_meanwhile_begins_anew_when_it_wakes_and_nothing_passes_before() -> None:
    players = playing()
    assert isinstance(players.reset(at_the_ends(players)), Reset)
    write_all(players.team, 24)
    for _ in range(8):
        assert players.turn([0]).answer == "undecided"
    assert "shard 1 of 2" in players.view().status.reason
    view = players.turns()
    assert (view.answer, view.status.matched) == ("pass", 24)


def test_who_wakes_after_its_store_was_taken_finds_that_out_before_it_writes() -> None:
    players = playing()
    assert isinstance(players.reset(at_the_ends(players)), Reset)
    store = players.working[1]._store
    for call in (lambda: store.renew(1), lambda: store.save(Checkpoint(99, None, b"", b"", {}))):
        with pytest.raises(Replaced, match="all shards of this comparison begin anew"):
            call()


def test_a_shard_that_does_not_run_begins_anew_when_it_does() -> None:
    players = diverged()
    players.kill(1)
    assert isinstance(players.reset(at_the_ends(players)), Reset)
    write_all(players.team, 24)
    assert players.turns().status.matched == 24


# -- `now` -------------------------------------------------------------------------------------------------


def test_by_partition_now_is_where_each_shard_rested_last() -> None:
    players = diverged()
    players.team.write(Side.LEFT, 0, (0, 1000))
    players.turns(2)
    assert players.reset("now") is None
    players.turn([1])
    assert players.wait() is None
    players.team.write(Side.LEFT, 1, (1, 1000))
    players.turn([1])
    players.team.write(Side.RIGHT, 0, (0, 1000))
    players.turn([0])
    made = players.wait()
    assert isinstance(made, Reset)
    assert made.start["reference"] == {"0": 113, "1": 113, "2": 112, "3": 112}
    players.team.write(Side.RIGHT, 1, (1, 1000))
    view = players.turns()
    assert (view.status.matched, view.answer, view.status.hole_count) == (1, "pass", 0)


def test_where_a_shard_rested_between_two_answers_counts_and_before_the_first_one_does_not() -> None:
    players, waits = diverged(), ("shard 1 of 2", 1)
    players.team.write(Side.LEFT, 1, waits)
    players.turns(3)
    assert players.reset("now") is None
    players.turn([1])
    assert players.wait() is None, "it has rested, but maybe before the reset was asked for"
    worker = players.working[1]
    players.team.write(Side.RIGHT, 1, waits)
    worker.step()
    worker.step()
    players.team.write(Side.LEFT, 1, ("later", 1))
    players.turn([1])
    players.team.clock.advance(ASK_SECONDS)
    made = players.wait()
    assert isinstance(made, Reset)
    assert (made.start["reference"]["1"], made.start["candidate"]["1"]) == (114, 113)


def waiting_for_the_first_shard() -> Players:
    """By key, and told to begin now: the second shard has read further than the first, and both rest."""
    players = diverged("key")
    write_all(players.team, 8)
    for _ in range(4):
        players.turn([1])
    assert players.reset("now") is None
    players.turn([1])
    return players


def test_by_key_now_is_where_each_shard_rested_and_from_the_last_place_on_all_is_compared() -> None:
    players = waiting_for_the_first_shard()
    made = players.wait()
    assert isinstance(made, Reset)
    assert made.start["candidate"] == dict.fromkeys(map(str, range(4)), 114)
    write_all(players.team, 16)
    view = players.turns()
    own = [worker._course._starts[Side.RIGHT][0] for worker in players.working.values()]
    assert sorted(own) == [112, 114], "the first shard had not read as far"
    behind = view.status.matched - 16
    assert (behind > 0, view.answer, view.status.hole_count) == (True, "pass", 0)
    players.kill(0)
    players.kill(1)
    write_all(players.team, 8)
    again = players.turns()
    assert (again.status.matched, again.answer) == (24 + behind, "pass")


def test_by_key_a_loss_behind_the_place_of_its_shard_is_found() -> None:
    players = waiting_for_the_first_shard()
    for key in range(8):
        players.team.write(Side.LEFT, key % 4, (key, 2000))
    assert isinstance(players.wait(), Reset)
    write_all(players.team, 400)
    view = players.turns(24)
    assert (view.status.verdict, view.status.divergences.by_kind["missing"]) == ("DIVERGED", 8)


class Traffic:
    """The same events on both sides, each side as far as chance will have it."""

    def __init__(self, players: Players, seed: int) -> None:
        self._players, self.chance = players, random.Random(seed)
        self._written = dict.fromkeys(Side, 0)

    def go_on(self, *, lost: int = -1) -> None:
        """Both sides write some more, and one may be behind; a candidate may lose the event of a number."""
        target = max(self._written.values()) + self.chance.randrange(4)
        behind = self.chance.choice([0, 0, 1, 3])
        lagging = self.chance.choice([Side.LEFT, Side.RIGHT])
        for side in Side:
            until = target - behind if side is lagging else target
            for number in range(self._written[side], until):
                if (side, number) != (Side.RIGHT, lost):
                    self._players.team.write(side, number % 4, (number % 12, number))
            self._written[side] = max(self._written[side], until)

    @property
    def next(self) -> int:
        """The first number that no side has written."""
        return max(self._written.values())

    def end(self, count: int = 600) -> None:
        """Both come equally far, and further."""
        target = self.next + count
        for side in Side:
            for number in range(self._written[side], target):
                self._players.team.write(side, number % 4, (number % 12, number))
            self._written[side] = target


@pytest.mark.parametrize("by", ["partition", "key"])
@pytest.mark.parametrize("seed", range(12))
def test_now_in_the_middle_of_traffic_makes_no_difference_and_hides_none_that_comes_later(
    seed: int, by: Any
) -> None:
    players = Players(Team(by=by, shards=2 + seed % 2))
    traffic = Traffic(players, seed)
    players.turns(4)
    made = players.reset("now")
    for _ in range(400):
        traffic.go_on()
        players.turn([traffic.chance.randrange(len(players.tokens))], seconds=0.05)
        if 0 in players.working:
            made = made or players.wait()
        if made is not None:
            break
    assert isinstance(made, Reset), (seed, made)
    lost = traffic.next if seed % 3 == 0 else -1
    for _ in range(20):
        traffic.go_on(lost=lost)
    traffic.end()
    status = players.turns(40).status
    expected = ("DIVERGED", 1) if lost >= 0 else ("EQUIVALENT", 0)
    assert (status.verdict, status.divergences.total, status.hole_count) == (*expected, 0), seed


def test_now_is_refused_when_a_shard_does_not_come_to_rest() -> None:
    players = diverged()
    assert players.reset("now") is None
    players.team.write(Side.LEFT, 1, (1, 1000))
    players.turn()
    players.wait()
    players.team.clock.advance(PATIENCE_SECONDS)
    refused = players.wait()
    assert isinstance(refused, ResetRefused)
    assert "in 10 s there was none (shard 1 of 2: 1 of the reference, 0 of the candidate)" in refused.reason
    assert players.turns(2).status.reset_count == 0


def test_now_is_refused_where_a_shard_does_not_answer() -> None:
    players = diverged()
    players.kill(1)
    assert players.reset("now") is None
    players.team.clock.advance(PATIENCE_SECONDS)
    refused = players.wait()
    assert isinstance(refused, ResetRefused)
    assert "(shard 1 of 2: it does not answer)" in refused.reason


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "by", "why"),
    [
        ({"at": "event_time", "field": "n", "from": 0}, "key", "cannot be divided over 2 matchers by key"),
        ({"at": "offsets", "reference": {"0": 0}, "candidate": {"0": 0}}, "key", "must name every partition"),
    ],
)
def test_a_start_that_cannot_be_shared_is_refused_and_nothing_changes(start: Any, by: Any, why: str) -> None:
    players = diverged(by)
    refused = players.reset(start)
    assert isinstance(refused, ResetRefused)
    assert why in refused.reason
    assert (players.turns(2).answer, players.replaced) == ("fail", 0)


def test_how_the_work_is_divided_is_settled_for_all_shards_when_they_begin_anew() -> None:
    players = diverged()
    assert isinstance(players.reset({"at": "event_time", "field": "n", "from": 0}), Reset)
    players.turn([0])
    players.team.source.add_partition(Side.LEFT)
    players.turns(6)
    assert [worker._course.way for worker in players.working.values()] == ["partition", "partition"]


def test_the_first_shard_alone_resets_all() -> None:
    players = diverged()
    worker = players.working[1]
    assert not worker.begin_anew(request())
    assert (
        ResetRefused(id="r-1", reason="shard 0 of 2 does that for all")
        in players.team.publishers[1].published
    )
