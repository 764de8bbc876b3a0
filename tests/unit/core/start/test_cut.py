"""Where a comparison begins: what lies before the cut is the same on both sides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from twinstream.core.arrivals.run import Run
from twinstream.core.events import Form, Side
from twinstream.core.start.cut import BarrierCut, Passed


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
