"""Where a comparison begins: what lies before the cut is the same on both sides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from twinstream.core.arrivals.run import Run
from twinstream.core.events import Form, Side
from twinstream.core.start.cut import BarrierCut, EventTimeCut, Passed
from twinstream.errors import DecodeError

WHOLE = {side: {0: 0} for side in Side}


def _run(texts: str, partition: int = 0, offset: int = 0) -> Run:
    """Events by word; one in capitals is a barrier."""
    forms = [
        Form(None, word.encode(), "barrier" if word.isupper() else "event", word.encode())
        for word in texts.split()
    ]
    places = range(offset, offset + len(forms))
    return Run(forms, partition, places, [0] * len(forms), 0.0)


def _texts(passed: Passed, side: Side) -> str:
    runs = [run for of, run, behind in passed.parts if behind and of is side]
    return " ".join(form.content.decode() for run in runs for form in run.forms)


def _before(passed: Passed) -> list[int]:
    """How much of each side lies before the start."""
    return [
        sum(len(run.forms) for of, run, behind in passed.parts if of is side and not behind) for side in Side
    ]


def _number(record: bytes) -> int:
    if not record.isdigit():
        raise DecodeError("no time")
    return int(record)


def _event_time(positions: dict[Side, dict[int, int]] | None = None) -> EventTimeCut:
    cut = EventTimeCut(_number, 10, "10")
    cut.begin(positions or WHOLE)
    return cut


def test_events_from_before_the_start_are_left_out_wherever_they_come() -> None:
    passed = _event_time().take(Side.LEFT, _run("9 10 3 11 9"))
    assert _texts(passed, Side.LEFT) == "10 11"
    assert (_before(passed), passed.held, passed.refused) == ([3, 0], (0, 0), ())


def test_an_event_without_a_time_is_refused_by_its_place() -> None:
    passed = _event_time().take(Side.RIGHT, _run("9 x 12"))
    assert _texts(passed, Side.RIGHT) == "12"
    assert (_before(passed), passed.refused) == ([0, 1], ((1, "no time"),))


def test_a_partition_without_its_beginning_must_begin_before_the_start() -> None:
    cut = _event_time({Side.LEFT: {0: 5}, Side.RIGHT: {0: 0}})
    cut.take(Side.LEFT, _run("10 11"))
    assert cut.refused is not None
    assert "the reference is read from offset 5 in partition 0 on" in cut.refused
    cut = _event_time({Side.LEFT: {0: 5}, Side.RIGHT: {0: 0}})
    cut.take(Side.LEFT, _run("9 11"))
    cut.take(Side.LEFT, _run("12"))
    cut.take(Side.RIGHT, _run("12"))
    assert cut.refused is None


@pytest.mark.parametrize(
    ("written_ms", "start_ms", "sure"),
    [(999, 1000, True), (1000, 1000, False), (999, None, False), (-1, 1000, False)],
)
def test_nothing_is_gone_behind_the_start_if_what_is_left_was_written_before_it(
    written_ms: int, start_ms: int | None, *, sure: bool
) -> None:
    cut = EventTimeCut(_number, 10, "10", start_ms)
    cut.begin({Side.LEFT: {0: 5}, Side.RIGHT: {0: 0}})
    assert cut.doubt is None
    cut.take(Side.LEFT, _run("9 11")._replace(timestamps_ms=[written_ms, 2000]))
    assert (cut.refused, cut.doubt is None) == (None, sure)


def test_of_a_partition_of_which_all_is_gone_nobody_knows_what_it_had() -> None:
    cut = _event_time({Side.LEFT: {0: 5}, Side.RIGHT: {0: 0}})
    assert cut.unread is not None
    assert cut.unread[1:] == (Side.LEFT, 0, 5)
    cut.take(Side.LEFT, _run("9 11"))
    assert cut.unread is None


def _barrier(partitions: int = 1, limit: int = 100) -> BarrierCut:
    cut = BarrierCut(bytes, limit, ["barrier"])
    cut.begin({side: dict.fromkeys(range(partitions), 0) for side in Side})
    return cut


def _fed(cut: BarrierCut, *runs: tuple[Side, Run]) -> tuple[list[str], list[int], list[int]]:
    """What passes of each side, how much of it lies before the start, how much is held."""
    passed, before, held = ["", ""], [0, 0], [0, 0]
    for side, run in runs:
        result = cut.take(side, run)
        for of, count in zip(Side, _before(result), strict=True):
            passed[of] = f"{passed[of]} {_texts(result, of)}".strip()
            before[of] += count
            held[of] += result.held[of]
    return passed, before, held


def test_comparison_begins_at_the_first_barrier_that_is_equal_on_both_sides() -> None:
    cut = _barrier()
    assert cut.waiting is not None
    assert _fed(
        cut, (Side.LEFT, _run("a A b B c C d")), (Side.RIGHT, _run("x B c C")), (Side.RIGHT, _run("d"))
    ) == (["B c C d", "B c C d"], [3, 1], [0, 0])
    assert (cut.found, cut.waiting) == (True, None)


def test_events_after_a_barrier_are_held_until_the_cut_is_found() -> None:
    assert _fed(_barrier(), (Side.LEFT, _run("a A b")), (Side.RIGHT, _run("B c"))) == (
        ["", ""],
        [1, 0],
        [2, 2],
    )


def test_a_barrier_that_came_twice_is_no_cut() -> None:
    cut = _barrier()
    passed, before, _ = _fed(cut, (Side.LEFT, _run("A b A c D e")), (Side.RIGHT, _run("A c D e")))
    assert passed == ["D e", "D e"]
    assert before == [4, 2]


def test_each_partition_is_cut_at_its_own_copy() -> None:
    cut = _barrier(partitions=2)
    passed, before, held = _fed(
        cut,
        (Side.LEFT, _run("a B c", 0)),
        (Side.LEFT, _run("b b B d", 1)),
        (Side.RIGHT, _run("x B c", 0)),
        (Side.RIGHT, _run("y A z", 1)),
        (Side.RIGHT, _run("B d", 1)),
    )
    assert (passed, before, held) == (["B c B d", "B c B d"], [3, 4], [0, 0])


def test_beyond_its_limit_the_oldest_epochs_are_given_up_and_the_start_is_later() -> None:
    cut = _barrier(limit=4)
    passed, before, held = _fed(cut, (Side.LEFT, _run("A b B c C d")), (Side.RIGHT, _run("A b B c C d")))
    assert (passed, before, held) == (["B c C d", "B c C d"], [2, 2], [0, 0])


def test_a_gap_before_the_start_is_no_hole_and_what_was_held_lies_before_it() -> None:
    cut = _barrier()
    _fed(cut, (Side.LEFT, _run("A b c")))
    assert [len(run.forms) for run in cut.gap(Side.LEFT, 0) or ()] == [3]
    passed, _, _ = _fed(cut, (Side.RIGHT, _run("A b B c")), (Side.LEFT, _run("x B c")))
    assert passed == ["B c", "B c"]
    assert cut.gap(Side.LEFT, 0) is None


@pytest.mark.parametrize("texts", [["a", "A", "b", "C", "c"], ["a A", "b C c"], ["a A b C c"]])
def test_it_does_not_matter_how_the_events_are_divided_into_runs(texts: Sequence[str]) -> None:
    cut = _barrier()
    runs = [(Side.LEFT, _run(text)) for text in texts]
    passed, before, _ = _fed(cut, *runs, (Side.RIGHT, _run("z C c")))
    assert (passed, before) == (["C c", "C c"], [3, 1])


# -- barriers that have a number with a tolerance ----------------------------------------------------------


def _letters(record: bytes) -> bytes:
    return record.rstrip(b"0123456789")


def _near(one: bytes, other: bytes) -> bool:
    """Whether the numbers of two words differ by at most 1."""
    return abs(int(one.strip(b"ABCD") or 0) - int(other.strip(b"ABCD") or 0)) <= 1


def _tolerant(partitions: int = 1) -> BarrierCut:
    cut = BarrierCut(_letters, 100, ["barrier"], _near)
    cut.begin({side: dict.fromkeys(range(partitions), 0) for side in Side})
    return cut


@pytest.mark.parametrize("texts", [("A7 b B5 c", "A1 b B9 c"), ("B5 c", "B9 c")])
def test_barriers_that_are_further_apart_than_the_tolerance_are_no_cut(texts: tuple[str, str]) -> None:
    cut = _tolerant()
    passed, before, _ = _fed(cut, (Side.LEFT, _run(texts[0])), (Side.RIGHT, _run(texts[1])))
    assert (passed, before, cut.found) == (["", ""], [0, 0], False)
    passed, _, held = _fed(cut, (Side.LEFT, _run("C3 d")), (Side.RIGHT, _run("C3 d")))
    assert (passed, held) == (["C3 d", "C3 d"], [-len(text.split()) for text in (texts[0], texts[1])])


def test_barriers_within_the_tolerance_are_one_cut_in_every_partition() -> None:
    cut = _tolerant(partitions=2)
    passed, before, held = _fed(
        cut,
        (Side.LEFT, _run("a B5 c", 0)),
        (Side.LEFT, _run("B6 d", 1)),
        (Side.RIGHT, _run("A1 x B6 c", 0)),
        (Side.RIGHT, _run("y B5 d", 1)),
    )
    assert (passed, before, held) == (["B5 c B6 d", "B6 c B5 d"], [1, 3], [0, 0])


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("B5", "B5", "B7", "B6"), id="those of one side are too far from each other"),
        pytest.param(("B5", "B6", "B7", "B6"), id="or those of two sides"),
        pytest.param(("B5", "B5", "B9", "B9"), id="the sides differ"),
        pytest.param(("B5", "B5", "B5", "B4 x B6"), id="two of a partition are close to that of another"),
        pytest.param(("B5", "B5", "B5", "B5 x B5"), id="it came twice"),
        pytest.param(("B5", "B6", "B6", "B6 x B7"), id="another one is close to some of its copies"),
    ],
)
def test_where_it_is_not_sure_which_barrier_is_the_same_there_is_no_cut(texts: Sequence[str]) -> None:
    orders = [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)]
    for order in orders:
        cut = _tolerant(partitions=2)
        places = [(side, partition) for side in Side for partition in (0, 1)]
        for place in order[:-1]:
            cut.take(places[place][0], _run(texts[place], places[place][1]))
        cut.take(places[order[-1]][0], _run(texts[order[-1]], places[order[-1]][1]))
        assert not cut.found, order
