"""What a retry has written again where numbers have a tolerance: close to what stands, or another row."""

from __future__ import annotations

import orjson
import pytest

from tests.support.retries import Reader, Row, attempt, replays
from tests.support.streams import LEFT, RIGHT
from twinstream.core.arrivals import leaders as module
from twinstream.core.arrivals.leaders import CloseTo, Leaders
from twinstream.core.arrivals.run import Run

BAG = ("unordered", "identity: [k]\n")
SEQUENCE = ("{per_key: [k]}", "")
SAYS_SO = "several times with different rows"


def reader_of(order: str, more: str) -> Reader:
    return Reader(replays(order, more=f"{more}equality: {{tolerance: {{v: {{abs: 0.5}}}}}}\n"))


def wrote(marks: str, *numbers: float) -> list[Row]:
    """Rows of one key that an attempt wrote."""
    return [Row(attempt(marks), {"k": "a", "v": number}) for number in numbers]


def run_of(reader: Reader, rows: list[Row]) -> Run:
    """The rows as a comparison is fed them."""
    forms, _ = reader.codec.forms([orjson.dumps(row.value) for row in rows])
    places = list(range(len(rows)))
    return Run(forms, 0, places, [0] * len(rows), 0.0, attempts=[row.attempt for row in rows])


def compared(
    reference: list[float], candidate: list[Row], order: tuple[str, str] = BAG, *, restarts: bool = False
) -> Reader:
    """A reference that wrote its rows once, and a candidate that may have retried, to their ends."""
    reader = reader_of(*order)
    reader.read(LEFT, wrote("1/e/0.0", *reference))
    for row in candidate:
        reader.read(RIGHT, [row])
        if restarts:
            reader.restart()
    assert not reader.comparison.diverged
    reader.end()
    return reader


@pytest.mark.parametrize("order", [BAG, SEQUENCE])
@pytest.mark.parametrize("marks", ["1/y/0.0", "1/x/0.1"])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("first", "again"),
    [
        pytest.param([10], [10.4], id="one row"),
        pytest.param([10, 20, 30], [10.2, 19.8, 30.1], id="rows that are far from each other"),
        pytest.param([10.1, 10.3, 10.2], [10.11, 10.29, 10.21], id="rows that are close to each other"),
        pytest.param([10.1, 10.3, 10.1], [10.1, 10.1, 10.3], id="the same rows in another order"),
        pytest.param([10, 10, 10.4], [10, 10, 10], id="copies in the place of a close row"),
        pytest.param([10], [10, 10.4], id="more rows than before"),
    ],
)
def test_a_retry_within_the_tolerance_is_a_replay(
    order: tuple[str, str], marks: str, first: list[float], again: list[float], *, restarts: bool
) -> None:
    rows = wrote("1/x/0.0", *first) + wrote(marks, *again)
    reader = compared([*first, *[10] * (len(again) - len(first))], rows, order, restarts=restarts)
    assert reader.reasons() == []
    assert not reader.comparison.diverged
    assert reader.replayed(RIGHT) == len(first)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("reference", "again"),
    [
        pytest.param([0, 0.8], [0.4, 0], id="each row has a partner"),
        pytest.param([-0.4, -0.4], [0.4, 0], id="a row has no partner"),
        pytest.param([0, 0.4, 0.4], [0.4, 0.4, 0], id="two rows are taken for one"),
    ],
)
def test_a_row_that_was_taken_for_a_copy_of_a_close_one_that_came_itself_is_a_hole(
    reference: list[float], again: list[float], *, restarts: bool
) -> None:
    rows = wrote("1/x/0.0", 0) + wrote("1/y/0.0", *again)
    reader = compared(reference, rows, restarts=restarts)
    assert ["and its rows are close to each other" in reason for reason in reader.reasons()] == [True]
    assert not reader.comparison.diverged


def test_a_row_that_was_taken_for_a_copy_is_none_beside_those_of_the_next_attempt() -> None:
    rows = wrote("1/x/0.0", 0) + wrote("1/y/0.0", 0.4) + wrote("1/y/0.1", 0, 0)
    assert compared([0, 0], rows).reasons() == []


def test_rows_before_the_start_are_told_apart_by_the_tolerance_too() -> None:
    outcomes = []
    for number in (10.2, 99):
        reader = reader_of(*SEQUENCE)
        reader.comparison.arrivals.before_start(RIGHT, run_of(reader, wrote("1/x/0.0", 10)), by_place=True)
        reader.comparison.feed(RIGHT, run_of(reader, wrote("1/y/0.0", number)))
        reader.comparison.end(RIGHT)
        outcomes.append((reader.replayed(RIGHT), [SAYS_SO in reason for reason in reader.reasons()]))
    assert outcomes == [(1, []), (0, [True])]


def test_only_so_many_rows_of_a_form_are_told_apart_and_beyond_that_a_close_one_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LOOKED_AT", 2)
    first = [10.0, 20.0, 30.0]
    same = compared(first, wrote("1/x/0.0", *first) + wrote("1/y/0.0", *first))
    assert same.reasons() == []
    close = compared(first, wrote("1/x/0.0", *first) + wrote("1/y/0.0", 10.1, 20.1, 30.1))
    assert [SAYS_SO in reason for reason in close.reasons()] == [True]


def test_a_delta_has_only_the_leaders_that_are_new() -> None:
    leaders = Leaders()
    states = [leaders.state(whole=True)]
    for number in range(3):
        near = CloseTo(b"%016d" % number, b"record %d" % number, lambda *_: True)
        leaders.take(b"%016d" % 7, near, lambda _leader: module.FULL)
        states.append(leaders.state(whole=False))
    assert [[row[-1] for row in state["rows"]] for state in states[1:]] == [
        [b"record %d" % n] for n in range(3)
    ]
    assert module.joined(states) == leaders.state(whole=True)
    assert Leaders.restored(module.joined(states)).state(whole=True) == leaders.state(whole=True)
