"""Where both versions began, as far as what they say tells it, and what sorts events by that."""

from __future__ import annotations

from collections.abc import Mapping

from twinstream.core.arrivals.run import Run
from twinstream.core.clocks.input import Finished, InputProgress
from twinstream.core.events import Form, Side
from twinstream.core.start.input_cut import InputCut
from twinstream.core.start.input_start import SAID_LIMIT, Opened, Sayings, first_of
from twinstream.spec.decode.headers import input_position

LEFT, RIGHT = Side
NONE = {side: {0: 0} for side in Side}
ALL = {side: {0: 1_000_000} for side in Side}


def fact(
    batch: int, consumed: Mapping[int, int], written: int | None = None, query: str = "q", **since: int
) -> Finished:
    """A batch; it has written as much as its number, unless said otherwise."""
    places = {("in", partition): offset for partition, offset in consumed.items()}
    began = {("in", int(partition[1:])): offset for partition, offset in since.items()}
    return Finished(query, "r", batch, places, None, {0: batch if written is None else written}, began)


def opened(sayings: Sayings, readable: Mapping[Side, Mapping[int, int]] = NONE) -> Opened:
    found = sayings.open(readable, ALL)
    assert isinstance(found, Opened), found
    return found


def heard(left: list[Finished], right: list[Finished]) -> Sayings:
    sayings = Sayings()
    for side, facts in ((LEFT, left), (RIGHT, right)):
        for one in facts:
            sayings.hear(side, one)
    return sayings


def cut_of(*sides: list[Finished]) -> InputCut:
    cut = InputCut(input_position)
    cut.open(opened(heard(*sides)).firsts)
    return cut


def behind(cut: InputCut, side: Side, *marks: str) -> list[str]:
    """Which of some events lie behind the start."""
    forms = [Form("lane", mark.encode(), "event", mark.encode()) for mark in marks]
    passed = cut.take(side, Run(forms, 0, range(len(marks)), [0] * len(marks), 0.0, list(marks)))
    assert not passed.refused
    return [form.content.decode() for part in passed.parts if part.behind for form in part.run.forms]


def test_of_several_queries_the_one_that_began_last_counts() -> None:
    left = [fact(0, {0: 50}, query="a"), fact(1, {0: 90}, query="b")]
    found = opened(heard(left, [fact(0, {0: 60})]))
    assert first_of(found.firsts[LEFT], ("in", 0)) == 90
    assert behind(cut_of(left, [fact(0, {0: 60})]), LEFT, "in:0:89", "in:0:90") == ["in:0:90"]


def test_a_partition_that_one_query_has_not_named_is_open() -> None:
    firsts = {"a": {("in", 0): 5, ("in", 1): 7}, "b": {("in", 0): 6}}
    assert (first_of(firsts, ("in", 0)), first_of(firsts, ("in", 1))) == (6, None)
    assert first_of(firsts, ("other", 0)) is None


def test_reading_begins_behind_what_every_query_wrote_before_the_cut() -> None:
    left = [fact(n, {0: 10 * n}, times * n, name) for n in range(9) for name, times in (("a", 1), ("b", 2))]
    assert opened(heard(left, [fact(0, {0: 35})])).positions == {LEFT: {0: 3}, RIGHT: {0: 0}}


def test_of_very_many_batches_the_first_and_the_last_are_kept() -> None:
    many = [fact(n, {0: n}) for n in range(3 * SAID_LIMIT)]
    found = opened(heard(many, [fact(0, {0: 1500})]))
    assert first_of(found.firsts[LEFT], ("in", 0)) == 0
    assert found.lasts[-1] == (LEFT, many[-1])
    assert 1490 < found.positions[LEFT][0] <= 1500


def test_a_run_that_ended_before_the_start_silences_no_later_one() -> None:
    left = [fact(1, {0: 10}), fact(2, {0: 20})._replace(run="later")]
    zombie = fact(9, {0: 15}, written=1)
    found = opened(heard([*left, zombie], [fact(0, {0: 10})]))
    assert [one for side, one in found.lasts if side is LEFT] == left
    progress = InputProgress()
    for side, one in found.lasts:
        progress.note(side, one)
    progress.note(LEFT, zombie)
    progress.note(LEFT, fact(3, {0: 30})._replace(run="later"))
    progress.read(LEFT, {0: 3})
    assert progress.consumed(LEFT) == {("in", 0): 30}


def test_of_runs_of_several_queries_none_looks_recreated() -> None:
    a = [fact(7, {0: 70}, query="a"), fact(9, {0: 90}, query="a")._replace(run="later")]
    b = [fact(8, {0: 80}, query="b")]
    progress = InputProgress()
    assert not any(progress.note(*said) for said in opened(heard([*a, *b], [fact(0, {0: 90})])).lasts)


def test_an_output_that_ends_earlier_than_before_is_another_topic() -> None:
    left = [fact(0, {0: 10}, written=500), fact(1, {0: 20}, written=5)]
    found = opened(heard(left, [fact(0, {0: 10})]))
    assert first_of(found.firsts[LEFT], ("in", 0)) == 20


def test_a_place_may_be_spelled_otherwise() -> None:
    cut = cut_of([fact(0, {0: 10})], [fact(0, {0: 5})])
    assert cut.lacks(LEFT, ["in:00:9", None, "nothing", "in:0:12"]) is None
    assert behind(cut, LEFT, "in:00:9", "in:00:10", "in:0:010") == ["in:00:10", "in:0:010"]


def test_what_a_query_says_that_is_new_and_before_the_cut_is_no_hole() -> None:
    cut = cut_of([fact(0, {0: 10})], [fact(0, {0: 10})])
    assert cut.hear(RIGHT, fact(0, {0: 10}, query="second")) is None
    assert cut.hear(RIGHT, fact(1, {0: 900}, query="second")) is None
    assert cut.hear(RIGHT, fact(1, {0: 11}, query="third")) is not None


def test_what_was_lost_may_lie_behind_the_start() -> None:
    cut = cut_of([fact(0, {0: 10})], [fact(0, {0: 10})])
    cut.begin(NONE)
    assert cut.gap(LEFT, 0) is None
