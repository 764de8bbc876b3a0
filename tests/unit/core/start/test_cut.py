"""Where a comparison begins: what lies before the cut is the same on both sides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from twinstream.core.arrivals.run import Run
from twinstream.core.events import Form, Side
from twinstream.core.start.cut import BarrierCut

Told = tuple[list[str], list[int], list[int]]


def _run(words: Sequence[str], partition: int) -> Run:
    """Events by word; one in capitals is a barrier."""
    forms = [
        Form(None, word.encode(), "barrier" if word.isupper() else "event", word.encode()) for word in words
    ]
    return Run(forms, partition, range(len(forms)), [0] * len(forms), 0.0)


def _barrier(partitions: int = 1, limit: int = 100, *, tolerant: bool = False) -> BarrierCut:
    """A cut at a barrier; a tolerant one has numbers that may differ by 1."""
    cut = (
        BarrierCut(_letters, limit, ["barrier"], _near) if tolerant else BarrierCut(bytes, limit, ["barrier"])
    )
    cut.begin({side: dict.fromkeys(range(partitions), 0) for side in Side})
    return cut


def _letters(record: bytes) -> bytes:
    return record.rstrip(b"0123456789")


def _near(one: bytes, other: bytes) -> bool:
    """Whether the numbers of two words differ by at most 1."""
    return abs(int(one.strip(b"ABCD") or 0) - int(other.strip(b"ABCD") or 0)) <= 1


def _fed(cut: BarrierCut, *runs: str) -> Told:
    """What passes of each side, how much of it lies before the start, how much is held.

    A run is written as side, partition and words: ``L0 a A b``.
    """
    passed, before, held = ["", ""], [0, 0], [0, 0]
    for text in runs:
        name, *words = text.split()
        result = cut.take(Side("LR".index(name[0])), _run(words, int(name[1:])))
        for side, run, behind in result.parts:
            if behind:
                passed[side] = (
                    f"{passed[side]} {' '.join(form.content.decode() for form in run.forms)}".strip()
                )
            else:
                before[side] += len(run.forms)
        for side in Side:
            held[side] += result.held[side]
    return passed, before, held


def test_comparison_begins_at_the_first_barrier_that_is_equal_on_both_sides() -> None:
    cut = _barrier()
    assert cut.waiting is not None
    told = _fed(cut, "L0 a A b B c C d", "R0 x B c C", "R0 d")
    assert told == (["B c C d", "B c C d"], [3, 1], [0, 0])
    assert (cut.found, cut.waiting) == (True, None)


@pytest.mark.parametrize(
    ("cut", "runs", "told"),
    [
        pytest.param({}, ["L0 a A b", "R0 B c"], (["", ""], [1, 0], [2, 2]), id="until then events are held"),
        pytest.param(
            {},
            ["L0 A b A c D e", "R0 A c D e"],
            (["A b A c D e", "A c D e"], [0, 0], [0, 0]),
            id="at the first copy of one that came twice",
        ),
        pytest.param(
            {"partitions": 2},
            ["L0 a B c", "L1 b b B d", "R0 x B c", "R1 y A z", "R1 B d"],
            (["B c B d", "B c B d"], [3, 4], [0, 0]),
            id="in each partition at its own copy",
        ),
        pytest.param(
            {"limit": 4},
            ["L0 A b B c C d", "R0 A b B c C d"],
            (["B c C d", "B c C d"], [2, 2], [0, 0]),
            id="later where more than the limit would be held",
        ),
        pytest.param(
            {"partitions": 2, "tolerant": True},
            ["L0 a B5 c", "L1 B6 d", "R0 A1 x B6 c", "R1 y B5 d"],
            (["B5 c B6 d", "B6 c B5 d"], [1, 3], [0, 0]),
            id="at one that is within the tolerance in every partition",
        ),
    ],
)
def test_where_a_comparison_begins(cut: dict[str, int], runs: list[str], told: Told) -> None:
    assert _fed(_barrier(**cut), *runs) == told  # type: ignore[arg-type]


def test_a_gap_before_the_start_is_no_hole_and_what_was_held_lies_before_it() -> None:
    cut = _barrier()
    _fed(cut, "L0 A b c")
    assert [len(run.forms) for run in cut.gap(Side.LEFT, 0) or ()] == [3]
    assert _fed(cut, "R0 A b B c", "L0 x B c")[0] == ["B c", "B c"]
    assert cut.gap(Side.LEFT, 0) is None


def test_what_is_lost_of_a_partition_that_was_added_lies_before_the_start_which_is_sought_there_too() -> None:
    cut = _barrier()
    _fed(cut, "L0 A b B c")
    assert cut.gap(Side.LEFT, 1) == []
    assert _fed(cut, "R0 A b B c")[0] == ["", ""]
    assert _fed(cut, "L1 x B d")[0] == ["B c B d", "B c"]


@pytest.mark.parametrize(
    "texts",
    [("B5", "B5", "B5", "B4 x B6"), ("B5", "B5", "B5", "B5 x B5"), ("B5", "B6", "B6", "B6 x B7")],
)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_of_several_close_barriers_the_first_of_each_partition_is_taken(
    texts: Sequence[str], order: Sequence[int]
) -> None:
    cut, places = _barrier(partitions=2, tolerant=True), ("L0", "L1", "R0", "R1")
    passed, before, _ = _fed(cut, *(f"{places[place]} {texts[place]}" for place in order))
    assert sorted(" ".join(passed).split()) == sorted(" ".join(texts).split())
    assert before == [0, 0]


def test_a_barrier_behind_the_start_that_came_before_it_elsewhere_is_a_hole_also_after_a_restart() -> None:
    cut, again = _barrier(), _barrier()
    _fed(cut, "L0 A B c A", "R0 B")
    again.restore(cut.state())
    for one in (cut, again):
        one.found = True
        holes = [one.take(Side.RIGHT, _run(words.split(), 0)).hole for words in ("C d", "e A", "A")]
        assert [hole and hole[1:] for hole in holes] == [None, (Side.RIGHT, 0, 1), None]


def test_a_barrier_that_comes_again_where_it_came_before_the_start_is_no_hole() -> None:
    """A retry may write it again, and each partition has a copy of it."""
    cut, again = _barrier(2), _barrier(2)
    _fed(cut, "L0 A B", "L1 A B", "R0 B", "R1 B")
    again.restore(cut.state())
    for one in (cut, again):
        one.found = True
        holes = [one.take(side, _run(["A"], 1)).hole for side in Side]
        assert [hole and hole[1:] for hole in holes] == [None, (Side.RIGHT, 1, 0)]


@pytest.mark.parametrize("texts", [["a", "A", "b", "C", "c"], ["a A", "b C c"], ["a A b C c"]])
def test_it_does_not_matter_how_the_events_are_divided_into_runs(texts: Sequence[str]) -> None:
    passed, before, _ = _fed(_barrier(), *(f"L0 {text}" for text in texts), "R0 z C c")
    assert (passed, before) == (["C c", "C c"], [3, 1])


@pytest.mark.parametrize("texts", [("A7 b B5 c", "A1 b B9 c"), ("B5 c", "B9 c")])
def test_barriers_that_are_further_apart_than_the_tolerance_are_no_cut(texts: tuple[str, str]) -> None:
    cut = _barrier(tolerant=True)
    passed, before, _ = _fed(cut, f"L0 {texts[0]}", f"R0 {texts[1]}")
    assert (passed, before, cut.found) == (["", ""], [0, 0], False)
    passed, _, held = _fed(cut, "L0 C3 d", "R0 C3 d")
    assert (passed, held) == (["C3 d", "C3 d"], [-len(text.split()) for text in texts])


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("B5", "B5", "B7", "B6"), id="those of one side are too far from each other"),
        pytest.param(("B5", "B6", "B7", "B6"), id="or those of two sides"),
        pytest.param(("B5", "B5", "B9", "B9"), id="the sides differ"),
        pytest.param(("B5", "B5", "B5", "B7 x B9"), id="or those of one of its partitions"),
    ],
)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_where_it_is_not_sure_which_barrier_is_the_same_there_is_no_cut(
    texts: Sequence[str], order: Sequence[int]
) -> None:
    cut, places = _barrier(partitions=2, tolerant=True), ("L0", "L1", "R0", "R1")
    _fed(cut, *(f"{places[place]} {texts[place]}" for place in order))
    assert not cut.found
