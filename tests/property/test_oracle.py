"""The oracle's quick readings agree with their definitions, which try everything."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracle import Wrote, attempts_agree, batch_counts, equivalent_within, matching


class Event(NamedTuple):
    letter: str
    value: int


events = st.builds(Event, st.sampled_from("abc"), st.integers(0, 3))
streams = st.lists(events, max_size=5)
pairs = st.frozensets(st.frozensets(st.sampled_from("abc"), min_size=1, max_size=2))


def close(one: Event, other: Event) -> bool:
    return abs(one.value - other.value) <= 1


@given(streams, st.data(), pairs)
def test_streams_are_equivalent_where_some_pairing_of_close_events_keeps_their_order(
    left: list[Event], data: st.DataObject, dependent: frozenset[frozenset[str]]
) -> None:
    moved = data.draw(st.permutations(left))
    right = [event._replace(value=data.draw(st.integers(0, 3))) for event in moved]

    def depend(one: Event, other: Event) -> bool:
        return frozenset((one.letter, other.letter)) in dependent

    def keeps(pairing: tuple[int, ...]) -> bool:
        ordered = combinations(range(len(left)), 2)
        return all(pairing[i] < pairing[j] for i, j in ordered if depend(left[i], left[j])) and all(
            left[i].letter == right[j].letter and close(left[i], right[j]) for i, j in enumerate(pairing)
        )

    expected = any(map(keeps, permutations(range(len(right)))))
    assert equivalent_within(left, right, depend, lambda event: event.letter, close) == expected


@given(streams, streams)
def test_no_pairing_of_close_events_has_more_pairs(left: list[Event], right: list[Event]) -> None:
    fewer, more = sorted((left, right), key=len)
    largest = max(
        sum(close(one, other) for one, other in zip(fewer, taken, strict=False))
        for taken in permutations(more, len(fewer))
    )
    assert len(matching(left, right, close)) == largest


def wrote(text: str) -> list[Wrote]:
    """Rows from words ``EXECUTION/TASK.ATTEMPT:LETTERS``."""
    rows = []
    for word in text.split():
        marks, letters = word.split(":")
        execution, task, attempt = marks[0], *map(int, marks[2:].split("."))
        rows += [Wrote(execution, task, attempt, letter) for letter in letters]
    return rows


def test_a_batch_put_out_the_most_of_its_executions_and_attempts_and_the_sum_of_its_tasks() -> None:
    assert batch_counts(wrote("e/0.0:aa e/0.1:ab e/1.0:a f/0.0:aaac")) == {"a": 3, "b": 1, "c": 1}


def test_attempts_agree_where_one_of_each_task_has_written_all() -> None:
    assert attempts_agree(wrote("e/0.0:a e/0.1:ab e/1.0:c"))
    assert attempts_agree(wrote("e/0.0:a f/0.0:ab"))
    assert not attempts_agree(wrote("e/0.0:a e/0.1:b"))
    assert not attempts_agree(wrote("e/0.0:ax f/0.0:ab"))
