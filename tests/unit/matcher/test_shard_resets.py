"""Several workers share a comparison, and begin it anew: the first, and the others after it."""

from __future__ import annotations

import random
from copy import deepcopy
from unittest.mock import patch

import pytest

from tests.support.players import BEFORE, Players, at_the_ends, playing, request
from tests.support.team import Team, write_all
from twinstream.core.events import Side
from twinstream.errors import StoreError
from twinstream.processes.shards import ShardStore
from twinstream.starting.reset_model import PATIENCE_SECONDS
from twinstream.status.comparison import Reset, ResetRefused


def diverged(shards: int = 2) -> Players:
    """One that has found an event missing, by its second shard, and has gone on."""
    players = Players(Team(shards=shards))
    players.team.write(Side.LEFT, 1, (1, -1))
    write_all(players.team, 448)
    view = players.turns(24)
    assert (view.status.verdict, view.gate.answer) == ("DIVERGED", "fail"), view.status.reason
    return players


@pytest.mark.parametrize("shards", [2, 3])
def test_all_shards_begin_anew_and_nothing_is_left_of_what_was(shards: int) -> None:
    players = diverged(shards)
    made = players.reset(at_the_ends(players))
    assert isinstance(made, Reset)
    assert made.before == BEFORE
    assert (players.view().status.verdict, players.view().gate.answer) == ("PENDING", "undecided")
    write_all(players.team, 24)
    view = players.turns()
    assert (view.status.verdict, view.gate.answer, view.status.matched) == ("EQUIVALENT", "pass", 24)
    assert (view.status.divergences.total, view.status.reset_count, view.status.hole_count) == (0, 1, 0)
    assert players.board.divergences("test").page(10).items == []
    assert players.replaced == shards - 1


@pytest.mark.parametrize("start", [None, {"at": "event_time", "field": "n", "from": -5}])
def test_a_reset_to_a_start_before_the_difference_finds_it_again(start: object) -> None:
    players = diverged()
    assert isinstance(players.reset(start), Reset)
    view = players.turns(24)
    assert (view.status.verdict, view.status.divergences.total, view.status.reset_count) == ("DIVERGED", 1, 1)


def test_where_the_store_has_lost_the_reset_before_others_heard_of_it_all_are_heard_again() -> None:
    players = playing()
    storages = players.team.shelf.storages
    before = {storage: deepcopy(vars(storage)) for storage in storages.values()}
    assert isinstance(players.reset(at_the_ends(players)), Reset)
    for storage, held in before.items():
        vars(storage).update(held)
    write_all(players.team, 24)
    view = players.turns(24)
    assert view.freshness.fresh, view.freshness.reason
    assert (view.status.matched, players.replaced) == (72, 0)


def test_a_shard_that_is_paused_meanwhile_begins_anew_when_it_wakes_and_nothing_passes_before() -> None:
    players = diverged()
    assert isinstance(players.reset(at_the_ends(players)), Reset)
    write_all(players.team, 24)
    for _ in range(8):
        view = players.turn([0])
        assert (view.gate.answer, view.status.verdict) == ("undecided", "PENDING")
        assert view.status.divergences.total == 0, "nothing of the old comparison is told"
    assert "shard 1 of 2" in players.view().status.reason
    view = players.turns()
    assert (view.gate.answer, view.status.matched) == ("pass", 24)


def test_a_shard_for_which_kafka_is_away_says_that_it_begins_anew_when_kafka_answers() -> None:
    players = playing()
    assert isinstance(players.reset({"at": "earliest"}), Reset)
    players.team.sources[1].down = "the broker does not answer"
    view = players.turns(2)
    waits = "it begins anew as soon as Kafka says which records there are (the broker does not answer)"
    assert f"shard 1 of 2: {waits}" in view.status.reason
    players.team.sources[1].down = None
    assert players.turns().gate.answer == "pass"


def test_a_shard_that_cannot_save_the_new_beginning_tells_nothing_of_what_was() -> None:
    """It is restarted, and has loaded what was before the store fails, and then Kafka."""
    players = diverged()
    assert isinstance(players.reset(at_the_ends(players)), Reset)
    players.kill(1)
    worker = players.team.worker(1, players.tokens[1])
    with patch.object(ShardStore, "save", side_effect=StoreError("redis does not answer")):
        assert not worker.start()
    said = players.team.said(1).status
    assert (said.verdict, said.divergences.total, said.groups) == ("PENDING", 0, [])
    players.team.sources[1].down = "the broker does not answer"
    assert not worker.start()
    said = players.team.said(1).status
    assert (said.verdict, said.divergences.total, said.groups) == ("PENDING", 0, [])
    players.team.sources[1].down = None
    players.waiting[1] = worker
    write_all(players.team, 24)
    assert players.turns().gate.answer == "pass"


# -- `now` -------------------------------------------------------------------------------------------------


def test_now_is_where_each_shard_rests_and_the_gate_waits_for_the_last() -> None:
    players = diverged()
    players.team.write(Side.LEFT, 1, (1, 1000))
    players.turns(2)
    made = players.reset("now")
    assert isinstance(made, Reset)
    assert set(made.start["candidate"].values()) == {112}, (
        "as saved, since who asked had not heard of shard 1"
    )
    for side in Side:
        players.team.write(side, 0, *((0, 2000 + number) for number in range(24)))
    view = players.turns(4)
    assert (view.gate.answer, players.replaced) == ("undecided", 0)
    assert "shard 1 of 2: it begins anew at a moment at which no event waits for a partner (" in (
        view.status.reason
    )
    players.team.write(Side.RIGHT, 1, (1, 1000))
    players.turns(2)
    for side in Side:
        players.team.write(side, 1, *((1, 2000 + number) for number in range(12)))
    view = players.turns()
    assert view.status.matched == 36
    assert (view.gate.answer, view.status.hole_count, players.replaced) == ("pass", 0, 1)


def test_a_shard_that_waits_for_partners_in_a_hole_says_what_helps() -> None:
    players = playing()
    players.team.write(Side.LEFT, 1, (1, 1000))
    players.team.write(Side.RIGHT, 1, (1, 1000))
    players.team.source.retain(Side.LEFT, 1, 13)
    players.turns(4)
    assert isinstance(players.reset("now"), Reset)
    reason = players.turns(4).status.reason
    assert (
        "partners lie in a hole: let both versions write on, or reset it again from another start" in reason
    )


def test_now_is_told_also_where_nothing_is_known_of_the_other_shards() -> None:
    players = diverged()
    asked = request("now").model_copy(update={"before": None})
    players.team.ask(asked)
    with patch("twinstream.matcher.reset_commit.stood", return_value=None):
        made = players.wait()
    assert isinstance(made, Reset)
    assert 0 in made.start["candidate"].values(), "the first record that Kafka has"


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


@pytest.mark.parametrize("seed", range(12))
def test_now_in_the_middle_of_traffic_makes_no_difference_and_hides_none_that_comes_later(seed: int) -> None:
    players = Players(Team(shards=2 + seed % 2))
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
    for _ in range(400):
        traffic.go_on()
        players.turn(seconds=0.5)
        if players.replaced == len(players.tokens) - 1:
            break
    lost = traffic.next if seed % 3 == 0 else -1
    for _ in range(20):
        traffic.go_on(lost=lost)
    traffic.end()
    status = players.turns(40).status
    expected = ("DIVERGED", 1) if lost >= 0 else ("EQUIVALENT", 0)
    assert (status.verdict, status.divergences.total, status.hole_count) == (*expected, 0), seed


def test_now_is_refused_when_the_first_shard_does_not_come_to_rest() -> None:
    players = diverged()
    players.team.write(Side.LEFT, 0, (0, 1000))
    players.turn()
    assert players.reset("now") is None
    players.team.clock.advance(PATIENCE_SECONDS)
    refused = players.wait()
    assert isinstance(refused, ResetRefused)
    assert "in 10 s there was none (1 of the reference, 0 of the candidate)" in refused.reason
    assert players.turns(2).status.reset_count == 0


# -- what is refused ---------------------------------------------------------------------------------------


def test_a_start_that_names_some_partitions_only_is_refused_and_nothing_changes() -> None:
    players = diverged()
    refused = players.reset({"at": "offsets", "reference": {"0": 0}, "candidate": {"0": 0}})
    assert isinstance(refused, ResetRefused)
    assert "must name every partition" in refused.reason
    assert (players.turns(2).gate.answer, players.replaced) == ("fail", 0)


def test_the_first_shard_alone_resets_all() -> None:
    players = diverged()
    players.team.ask(request())
    assert not players.working[1].begin_anew()
    assert players.working[0].begin_anew()
