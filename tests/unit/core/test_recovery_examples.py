"""What is said about a fault, and that the comparison goes on behind it: named examples, through `check`.

Each is run with the sides in turn and with either first, and with and without a long equal tail behind the
fault, since an answer must not depend on when the sides meet again.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.examples import INTERLEAVINGS, compare, differences, found

BAGS = {"barrier": "E", "inner": "unordered"}
SEQUENCES = {"barrier": "E", "inner": "total"}
RULES = {"dependent": [["E", "*"]]}
"""Bags between markers, too, said in rules."""
EPOCHS = pytest.mark.parametrize("order", [BAGS, SEQUENCES, RULES], ids=["bags", "sequences", "rules"])
KEYED = {"per_key": ["k"]}
KEYED_DAYS = {"barrier": "E", "inner": KEYED}

ways = pytest.mark.parametrize("interleave", INTERLEAVINGS)
tails = pytest.mark.parametrize("tail", [0, 60], ids=["no tail", "long tail"])


def flow(first: int, last: int, *, every: int = 0, keys: str = "") -> str:
    """The events t<first> to t<last>, a marker after each `every`, in turn for each of some keys."""
    words = []
    for number in range(first, last + 1):
        words.append(f"t{number}" + (f"@{keys[number % len(keys)]}" if keys else ""))
        if every and number % every == 0:
            words.append("E")
    return " ".join(words)


def marked(tail: int) -> str:
    return flow(1, tail, every=6)


def check_found(answer: dict[str, Any], *expected: str) -> None:
    """Exactly these differences, and everything else matched."""
    assert answer["verdict"] == ("DIVERGED" if expected else "EQUIVALENT")
    assert sorted(found(answer).elements()) == sorted(expected)
    settled = answer["accounts"]["reference"]
    apart = sum(not words.startswith(("extra", "duplicate")) for words in expected)
    assert answer["matched"] == settled["consumed"] - apart


KINDS = ("E", "r", "s", "t")
FULL = flow(100, 130, every=5)

# -- markers, and what stands between them -------------------------------------------------------------------

NAMED = {"identity": ["type", "n"]}


@ways
@tails
@EPOCHS
@pytest.mark.parametrize(
    ("reference", "candidate", "expected", "more"),
    [
        pytest.param("r1 E r2 E r3 E", "r1 E E r2 E r3 E", "duplicate E", {}, id="a marker too many"),
        pytest.param("r1 E r2 E r3 E", "r1 r2 E r3 E", "missing E", {}, id="a marker lost"),
        pytest.param(f"{FULL} r1 E r2 E", f"{FULL} r1 r2 E", "missing E", {}, id="a marker lost among many"),
        pytest.param("r1 E1 r2 E2", "r1 E1 r2 E7 E2", "extra E7", {}, id="a marker with a number too many"),
        pytest.param("r1 E1=1 r2 E2=1", "r1 E1=1 r2 E2=5", "changed E2=1 E2=5", NAMED, id="a marker changed"),
        pytest.param(
            "E r1 r2 r3 r4 E", "E r1 r3 r4 s1 E", "missing r2, extra s1", {}, id="two faults in one"
        ),
        pytest.param("r1 r2 E r3 r4 E r5 E", "r1 E r3 s1 r4 E r5 E", "missing r2, extra s1", {}, id="in two"),
        pytest.param(
            "r1 r2 E1 r3 E2 r4 E3", "r1 r3 E2 r4 E3", "missing r2, missing E1", {}, id="one and its marker"
        ),
        pytest.param(
            "r1 E1 r2 r3 r4", "r2 r3 r4", "missing r1, missing E1", {}, id="one and its marker, the last"
        ),
        pytest.param(
            "E1 r1 E3 r2 E4", "E7 E8 r1 E3 r2 E4", "missing E1, extra E7, extra E8", {}, id="two for one"
        ),
        pytest.param(
            "r0 E1 r5 E2 r9 E3 r1",
            "E1 r5 E2 r1",
            "missing r0, missing r9, missing E3",
            {},
            id="one and its marker behind where the sides met",
        ),
        pytest.param(
            "r1=1 r2=2 r3=3 E", "r1=1 r2=7 r3=3 E", "changed r2=2 r2=7", NAMED, id="an event changed"
        ),
    ],
)
def test_faults_between_markers_shift_no_epoch(
    order: Any,
    tail: int,
    interleave: str,
    reference: str,
    candidate: str,
    expected: str,
    more: dict[str, Any],
) -> None:
    streams = (f"{side} {marked(tail)}" for side in (reference, candidate))
    answer = compare(order, *streams, interleave, kinds=KINDS, **more)
    check_found(answer, *expected.split(", "))


@ways
@tails
@EPOCHS
def test_an_event_that_crossed_a_marker_is_one_reordered(order: Any, interleave: str, tail: int) -> None:
    behind = marked(tail)
    answer = compare(order, f"a e E b E {behind}", f"a E e b E {behind}", interleave)
    assert differences(answer) == {"reordered": 1}
    assert set(found(answer)) <= {"reordered e", "reordered E"}


@ways
@tails
@EPOCHS
def test_the_first_event_behind_a_marker_that_came_before_it_is_one_reordered(
    order: Any, interleave: str, tail: int
) -> None:
    behind = marked(tail)
    answer = compare(order, f"E e {behind}", f"e E {behind}", interleave)
    assert differences(answer) == {"reordered": 1}


# -- a sequence ----------------------------------------------------------------------------------------------


@ways
def test_batches_of_fifty_that_have_changed_places_are_told_by_the_fewest_moves(interleave: str) -> None:
    blocks = [flow(first, first + 49) for first in range(1, 2001, 50)]
    swapped = [block for pair in zip(blocks[1::2], blocks[::2], strict=True) for block in pair]
    answer = compare("total", " ".join(blocks), " ".join(swapped), interleave)
    assert differences(answer) == {"reordered": 50 * len(blocks) // 2}


# -- one event that moved far --------------------------------------------------------------------------------

FAR: dict[str, tuple[Any, int, str]] = {
    "total": ("total", 0, ""),
    "per key": (KEYED, 0, "xyz"),
    "over many bags": (BAGS, 10, ""),
    "over many sequences": (SEQUENCES, 10, ""),
    "over many days of keys": (KEYED_DAYS, 10, "xyz"),
}


@ways
@pytest.mark.parametrize("form", list(FAR))
@pytest.mark.parametrize("late", [True, False], ids=["late", "early"])
@pytest.mark.parametrize("tail", [20, 300])
def test_an_event_that_moved_by_a_thousand_places_is_one_reordered(
    form: str, late: bool, tail: int, interleave: str
) -> None:
    order, every, keys = FAR[form]
    before, behind = flow(1, 30, every=every, keys=keys), flow(2001, 2000 + tail, every=every, keys=keys)
    moved, middle = "m1" + (f"@{keys[0]}" if keys else ""), flow(101, 1100, every=every, keys=keys)
    streams = [f"{before} {moved} {middle} {behind}", f"{before} {middle} {moved} {behind}"]
    answer = compare(order, *(streams if late else streams[::-1]), interleave)
    check_found(answer, f"reordered {moved}")


# -- two faults ----------------------------------------------------------------------------------------------


@ways
@tails
@pytest.mark.parametrize("order", [KEYED, KEYED_DAYS, {"by_key": ["k"], "inner": SEQUENCES}])
def test_faults_in_two_keys_are_told_apart(order: Any, interleave: str, tail: int) -> None:
    behind = flow(1, tail, keys="xyz")
    reference = f"r1@x r1@y r1@z r2@x r2@y r2@z r3@x r3@y r3@z {behind}"
    candidate = f"r1@x r1@y r1@z r2@y r2@z r3@x r9@y r3@y r3@z {behind}"
    answer = compare(order, reference, candidate, interleave, kinds=KINDS)
    check_found(answer, "missing r2@x", "extra r9@y")


TWO_CLASSES = {
    "dependent": [
        {"pair": ["c", "c"], "same": ["k"], "within": {"field": "ts", "less_than": 1}},
        {"pair": ["a", "b"], "same": ["k", {"first": "k", "second": "m"}]},
    ]
}


@ways
def test_a_fault_in_one_class_of_rules_touches_no_other(interleave: str) -> None:
    """Though the keys of both look alike: the second class, key 0, and the keys 1 and 0."""
    first, second = ({"type": "c", "k": 0, "ts": 1, "v": value} for value in (1, 2))
    other = {"type": "b", "k": 1, "m": 0}
    answer = compare(TWO_CLASSES, [second, other], [first, second, other], interleave, kinds="abc")
    assert differences(answer) == {"extra": 1}
    assert answer["matched"] == 2


# -- going on while the sides are open -----------------------------------------------------------------------


@ways
@pytest.mark.parametrize("order", [BAGS, SEQUENCES, KEYED_DAYS])
def test_the_sides_meet_again_at_the_next_equal_barrier(order: Any, interleave: str) -> None:
    answer = compare(order, "r1@x r2@x E r3@x E", "r1@x E r3@x E", interleave, open_ended=True)
    assert answer["verdict"] == "DIVERGED"
    assert found(answer) == {"missing r2@x": 1}
    assert (answer["matched"], answer["unmatched"]) == (4, {"reference": 0, "candidate": 0})
    assert answer["accounts"]["reference"]["divergent"] == 1


@ways
def test_another_key_goes_on_while_one_is_set_aside(interleave: str) -> None:
    answer = compare(KEYED, "r1@x r2@x r1@y r2@y", "r2@x r1@y r2@y", interleave, open_ended=True)
    assert answer["matched"] == 2
    assert found(answer) == {"missing r1@x": 1}


@ways
def test_another_key_goes_on_under_barriers_of_its_own(interleave: str) -> None:
    order = {"by_key": ["k"], "inner": BAGS}
    reference, candidate = "r1@x E@x r1@y E@y r2@x E@x r2@y", "E@x r1@y E@y r2@x E@x r2@y"
    answer = compare(order, reference, candidate, interleave, open_ended=True)
    assert found(answer) == {"missing r1@x": 1}
    assert answer["unmatched"] == {"reference": 0, "candidate": 0}
