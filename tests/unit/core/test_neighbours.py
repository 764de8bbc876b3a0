"""What shards by partition tell each other: who is believed, and what that decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from twinstream.core.events import Form, Side
from twinstream.core.neighbours import SAMPLED, Asking, Neighbours, Passed, Sample, facing, hashed
from twinstream.core.orders import BARRIER
from twinstream.core.sharding import Shard

HERE = {Side.LEFT: {0: 10}, Side.RIGHT: {0: 10}}
KEY, OTHER = hashed(b"key"), hashed(b"other")
TIMES: dict[str, Any] = {}


class Circle:
    """Two shards that exchange notes; `waiting` are the keys of what waits in the second."""

    def __init__(self) -> None:
        self.shards = [Neighbours(Shard(number, 2), f"run {number}", Sample()) for number in range(2)]
        self.waiting: set[str] = set()
        self.read = HERE

    def round(
        self, asked: Iterable[str] = (), overdue: Iterable[str] = (), facing: Iterable[str] = ()
    ) -> None:
        one, two = self.shards
        notes = {0: one.say(asked, (overdue, ()), TIMES), 1: two.say((), ((), facing), TIMES)}
        for shard in self.shards:
            shard.hear(notes, HERE)
        two.answer(self.read, lambda: self.waiting)

    def rounds(self, **said: Any) -> Neighbours:
        for _ in range(4):
            self.round(**said)
        return self.shards[0]


def test_what_the_others_have_nothing_of_is_confirmed() -> None:
    first = Circle().rounds(asked=[KEY])
    assert (first.crossing(), first.confirmed()) == (None, True)


def test_nothing_is_confirmed_that_is_not_asked() -> None:
    assert not Circle().rounds().confirmed()


def test_what_waits_elsewhere_crosses() -> None:
    circle = Circle()
    circle.waiting = {KEY}
    sentence = (
        "events of one key stand in partitions of shard 0 and of shard 1, so the work cannot be divided"
    )
    assert str(circle.rounds(asked=[KEY, OTHER]).crossing()).startswith(sentence)
    assert "partitions of several shards" in str(circle.shards[1].crossing())


def test_only_the_like_of_the_other_side_crosses_where_events_depend_on_nothing() -> None:
    circle = Circle()
    circle.waiting = {f"{KEY}0"}
    assert circle.rounds(asked=[f"{KEY}0"]).confirmed()
    circle = Circle()
    circle.waiting = {facing(f"{KEY}0")}
    assert circle.rounds(asked=[f"{KEY}0"]).crossing() is not None


def test_barriers_that_changed_places_in_every_shard_are_confirmed() -> None:
    asking = Asking(lambda form: form[1], lambda form: form[0] is not BARRIER)
    keys = [asking.key(side, Form(BARRIER, name, "b", name)) for side in Side for name in (b"1", b"2")]
    circle = Circle()
    circle.waiting = set(keys)
    for _ in range(4):
        notes = {
            number: shard.say(keys, ((), ()), TIMES, (Passed(2, ["1", "2"]), Passed(2, ["2", "1"])))
            for number, shard in enumerate(circle.shards)
        }
        for shard in circle.shards:
            shard.hear(notes, HERE)
            shard.answer(HERE, lambda: circle.waiting)
    assert [(shard.crossing(), shard.confirmed()) for shard in circle.shards] == [(None, True)] * 2


def test_who_has_not_read_on_confirms_nothing() -> None:
    circle = Circle()
    circle.read = {Side.LEFT: {0: 10}, Side.RIGHT: {0: 9}}
    assert not circle.rounds(asked=[KEY]).confirmed()


def test_the_note_of_a_process_that_is_gone_is_not_believed() -> None:
    gone, first = Neighbours(Shard(1, 2), "gone", Sample()), Neighbours(Shard(0, 2), "new", Sample())
    note = gone.say((), ((), [KEY]), TIMES)
    for _ in range(4):
        first.hear({0: first.say((), ([KEY], ()), TIMES), 1: note}, HERE)
    assert first.crossing() is None
    first.hear({1: gone.say((), ((), [KEY]), TIMES)}, HERE)
    assert first.crossing() is not None


def test_one_form_overdue_on_both_sides_in_two_shards_crosses() -> None:
    assert Circle().rounds(overdue=[KEY]).crossing() is None
    assert "wait without a partner" in str(Circle().rounds(overdue=[KEY], facing=[KEY]).crossing())


def test_all_shards_sample_the_same_keys() -> None:
    names = [b"%d" % number for number in range(5000)]
    one, two = Sample(), Sample()
    for name in names:
        one.note(name)
    for name in reversed(names):
        two.note(name)
    assert sorted(one.keys)[:SAMPLED] == sorted(two.keys)[:SAMPLED]


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ((2, ["a", "b"]), (2, ["a", "b"]), False),
        ((2, ["a", "b"]), (2, ["a", "c"]), True),
        ((3, ["a", "b", "c"]), (1, ["a"]), False),
        ((3, ["b", "c"]), (2, ["a", "c"]), True),
        ((9, ["i"]), (2, ["a", "b"]), False),
        ((0, []), (2, ["a", "b"]), False),
    ],
)
def test_barriers_are_compared_by_their_numbers(one: Any, other: Any, differs: bool) -> None:
    assert Passed(*one).differs(Passed(*other)) is Passed(*other).differs(Passed(*one)) is differs
