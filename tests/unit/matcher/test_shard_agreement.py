"""Where the store has lost of some shards that they were begun anew, all come to the last beginning again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.players import Players, at_the_ends, playing
from tests.support.team import DIVIDED, Team, write_all
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.matcher.shard_resets import CANNOT_REST, PLACE_LOST
from twinstream.ports import EMPTY
from twinstream.status.comparison import Reset


def losing(start: Any, number: int) -> Players:
    """All shards have begun anew; then one loses its state, and is started again with nothing to remember."""
    players = playing()
    assert isinstance(players.reset(at_the_ends(players) if start == "ends" else start), Reset)
    write_all(players.team, 24)
    assert players.turns().gate.answer == "pass"
    players.kill(number)
    players.team.shelf.storage(Shard(number, 2)).stored = EMPTY
    players.team.groups[Shard(number, 2)].forget()
    return players


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("start", ["ends", None])
def test_a_shard_that_has_lost_a_reset_begins_anew_with_the_others(start: Any, number: int) -> None:
    players = losing(start, number)
    view = players.turns(24)
    matched = 24 if start == "ends" else 72
    assert (view.status.reset_count, view.status.matched, view.gate.answer) == (1, matched, "pass")
    assert [worker._resets.made for worker in players.working.values()] == [1, 1]


@pytest.mark.parametrize("number", [0, 1])
def test_a_shard_that_has_lost_its_state_begins_where_kafka_remembers(
    number: int,
) -> None:
    players = playing()
    assert isinstance(players.reset("now"), Reset)
    write_all(players.team, 24)
    before = players.turns()
    assert before.gate.answer == "pass"
    players.kill(number)
    players.team.shelf.storage(Shard(number, 2)).stored = EMPTY
    write_all(players.team, 24)
    view = players.turns(24)
    assert (view.gate.answer, view.status.hole_count) == ("pass", 0)
    assert view.status.matched == before.status.matched + 24


@pytest.mark.parametrize("jump", [0.0, -3600.0])
@pytest.mark.parametrize("number", [0, 1])
def test_a_shard_that_has_lost_where_it_began_says_so_and_decides_nothing(number: int, jump: float) -> None:
    players = losing("now", number)
    players.team.clock.set(jump)
    write_all(players.team, 24)
    view = players.turns(24)
    assert (view.status.verdict, view.status.reset_count, view.gate.answer) == (
        "INCONCLUSIVE",
        1,
        "undecided",
    )
    assert [hole.reason for hole in view.status.holes] == [PLACE_LOST.format(shard=f"shard {number} of 2")]
    assert isinstance(players.reset(at_the_ends(players), "r-2"), Reset)
    write_all(players.team, 24)
    view = players.turns(24)
    assert (view.status.reset_count, view.status.matched, view.gate.answer) == (2, 24, "pass")


def test_a_time_of_day_that_is_put_right_between_resets_loses_no_beginning() -> None:
    players = playing()
    for number in (1, 2):
        assert isinstance(players.reset("now", f"r-{number}"), Reset)
        write_all(players.team, 24)
        view = players.turns(24)
        assert (view.status.hole_count, view.status.reset_count, view.gate.answer) == (0, number, "pass")
        players.team.clock.set(-3600.0)


def test_a_shard_that_never_rests_begins_with_the_others_behind_a_hole() -> None:
    players = Players(Team(spec=f"{DIVIDED}limits: {{unmatched_events: 40}}\n"))
    for side, first in ((Side.LEFT, 0), (Side.RIGHT, 100)):
        players.team.write(side, 1, *(("k", first + number) for number in range(60)))
    players.turns()
    assert isinstance(players.reset("now"), Reset)
    view = players.turns(24)
    assert (view.status.verdict, view.status.reset_count, view.gate.answer) == (
        "INCONCLUSIVE",
        1,
        "undecided",
    )
    reason = "it has stopped comparing, so what is unmatched now stays unmatched"
    told = CANNOT_REST.format(shard="shard 1 of 2", reason=reason)
    assert [hole.reason for hole in view.status.holes] == [told]
    assert isinstance(players.reset(at_the_ends(players), "r-2"), Reset)
    write_all(players.team, 24)
    view = players.turns(24)
    assert (view.status.reset_count, view.status.matched, view.gate.answer) == (2, 24, "pass")


def test_a_shard_alone_in_a_later_beginning_takes_all_others_there() -> None:
    players = Players(Team(shards=3))
    write_all(players.team, 48)
    players.turns()
    assert isinstance(players.reset(), Reset)
    players.turns()
    for number in (0, 2):
        players.kill(number)
        players.team.shelf.storage(Shard(number, 3)).stored = EMPTY
    view = players.turns(40)
    assert (view.status.reset_count, view.status.matched, view.gate.answer) == (1, 48, "pass")


def test_while_a_store_does_not_answer_no_shard_follows_another() -> None:
    players = losing(None, 1)
    players.team.shelf.storage(Shard(0, 2)).down = "it is away"
    players.turns(4)
    assert players.replaced == 1, "by the reset alone"
    players.team.shelf.storage(Shard(0, 2)).down = None
    assert players.turns(24).gate.answer == "pass"


def test_a_head_that_cannot_be_read_stops_only_its_own_shard() -> None:
    players = playing()
    players.kill(1)
    storage = players.team.shelf.storage(Shard(1, 2))
    storage.stored = storage.stored._replace(head=b"of another format")
    for _ in range(4):
        players.turn([0])
    assert players.view().status.matched == 48


@pytest.mark.parametrize("start", ["ends", None])
def test_what_kafka_has_lost_of_where_such_a_shard_began_is_a_hole_with_both_offsets(start: Any) -> None:
    players = losing(start, 1)
    begins = at_the_ends(players)["reference"][1] - 6 if start == "ends" else 0
    kept = at_the_ends(players)["reference"][1] - 1
    players.team.source.retain(Side.LEFT, 1, kept)
    view = players.turns(24)
    assert (view.status.verdict, view.status.reset_count, view.gate.answer) == (
        "INCONCLUSIVE",
        1,
        "undecided",
    )
    assert view.status.holes[0].reason == (
        f"the state in the store was lost, and Kafka no longer has offsets {begins}–{kept - 1} of "
        "test.reference partition 1 (reference), from which it would be read again"
    )
