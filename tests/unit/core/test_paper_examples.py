"""The examples of the DiffStream paper (sections 2 to 4), each as a comparison file and two small streams.

Source: Kallas, Niksic, Stanford, Alur, "DiffStream" (OOPSLA 2020).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.examples import INTERLEAVINGS, Events, compare, events, lines
from tests.support.oracle import PlainMatcher
from tests.support.orders import dependent


def decided_at(order: Any, reference: Events, candidate: Events, interleave: str) -> int | None:
    """The line at which the plain matcher knows that the streams differ, if it does before their end."""
    streams = {0: list(events(reference)), 1: list(events(candidate))}
    plain = PlainMatcher[dict[str, Any]](lambda a, b: dependent(order, a, b), lambda a, b: a == b)
    for line in lines(reference, candidate, interleave):
        plain.feed(line.side, streams[line.side].pop(0))
    return plain.decided_at


def check_same(order: Any, reference: Events, candidate: Events, **more: Any) -> None:
    """Equivalent, however the streams are interleaved."""
    for interleave in INTERLEAVINGS:
        answer = compare(order, reference, candidate, interleave, **more)
        assert (answer["verdict"], answer["decided_at"]) == ("EQUIVALENT", None)
        assert answer["divergences"]["total"] == 0


def check_differ(order: Any, reference: Events, candidate: Events, at: int | None, **more: Any) -> None:
    """Different, known at this line where the sides take turns, else at the line of the plain matcher."""
    for interleave in INTERLEAVINGS:
        answer = compare(order, reference, candidate, interleave, **more)
        assert answer["verdict"] == "DIVERGED"
        assert answer["decided_at"] == decided_at(order, reference, candidate, interleave)
        assert interleave != "alternate" or answer["decided_at"] == at


# -- section 2: sums between barriers ----------------------------------------------------------------------

SUMS = {"barrier": "mark", "inner": "unordered"}
"""Values of one block may come in any order: their sum is the same."""


def test_values_between_two_barriers_may_change_places() -> None:
    check_same(SUMS, "v1 v3 v2 mark1 v4 v5 mark2", "v3 v2 v1 mark1 v5 v4 mark2")


def test_a_value_may_not_leave_its_block() -> None:
    check_differ(SUMS, "v1 v2 mark1 v3 mark2", "v1 mark1 v2 v3 mark2", at=4)


def test_a_block_without_one_of_its_values_is_known_at_its_barrier() -> None:
    check_differ(SUMS, "v1 v2 v3 mark1", "v3 v1 mark1", at=6)


def test_a_value_that_stands_twice_counts_twice() -> None:
    check_same(SUMS, "v1 v1 v2 mark1", "v1 v2 v1 mark1")
    check_differ(SUMS, "v1 v1 v2 mark1", "v1 v2 v2 mark1", at=7)


def test_an_empty_block_is_a_block() -> None:
    check_same(SUMS, "mark1 mark2 v1", "mark1 mark2 v1")
    check_differ(SUMS, "mark1 v1 mark2", "mark1 mark2 v1", at=4)


def test_barriers_that_look_alike_still_divide_blocks() -> None:
    check_same(SUMS, "v1 mark v2 mark", "v1 mark v2 mark")
    check_differ(SUMS, "v1 mark v2 mark", "v2 mark v1 mark", at=3)


# -- section 2: a wrong and a right way to compute them in parallel ------------------------------------------


def test_sums_themselves_are_a_sequence() -> None:
    check_same("total", "sum6 sum15", "sum6 sum15")
    check_differ("total", "sum6 sum15", "sum15 sum6", at=2)


def test_the_same_sums_with_no_order_declared_are_a_bag() -> None:
    check_same("unordered", "sum6 sum15", "sum15 sum6")


# -- section 3: increments and decrements --------------------------------------------------------------------

COUNTER = {"dependent": [["inc", "dec"], ["mark", "*"]]}
"""Increments commute among themselves, and so do decrements; they do not commute with each other."""


def test_increments_commute_and_so_do_decrements() -> None:
    check_same(COUNTER, "inc1 inc2 dec1 dec2 mark", "inc2 inc1 dec2 dec1 mark")


def test_an_increment_does_not_commute_with_a_decrement() -> None:
    check_differ(COUNTER, "inc1 dec1 mark", "dec1 inc1 mark", at=2)


def test_an_increment_between_two_decrements_stays_between_them() -> None:
    check_same(COUNTER, "dec1 inc1 inc2 dec2 mark", "dec1 inc2 inc1 dec2 mark")
    check_differ(COUNTER, "dec1 inc1 dec2 mark", "dec1 dec2 inc1 mark", at=4)


def test_the_counter_has_its_barriers_in_order_with_everything() -> None:
    check_differ(COUNTER, "inc1 mark dec1", "inc1 dec1 mark", at=4)
    check_same(
        {"barrier": "mark", "inner": {"dependent": [["inc", "dec"]]}}, "inc1 mark dec1", "inc1 mark dec1"
    )


# -- section 3: keyed output ---------------------------------------------------------------------------------

KEYED = {"per_key": ["k"]}


def test_output_of_different_keys_may_change_places() -> None:
    check_same(KEYED, "r1@x r1@y r2@x r2@y", "r1@y r2@y r1@x r2@x")


def test_output_of_one_key_may_not() -> None:
    check_differ(KEYED, "r1@x r1@y r2@x", "r1@y r2@x r1@x", at=4)


def test_a_key_that_is_wrong_shows_in_the_key_that_goes_on() -> None:
    check_differ(KEYED, "r1@x r2@x r1@y", "r1@z r2@x r1@y", at=4)


# -- section 2 and 6: taxi rides -----------------------------------------------------------------------------

DAYS = {"barrier": "eod", "inner": {"per_key": ["k"]}}
MONTHS = {"dependent": [["eod", "*"], ["eom", "eom"], {"pair": ["ride", "ride"], "same": ["k"]}]}
RULED_DAYS = {"dependent": [["eod", "*"], {"pair": ["ride", "ride"], "same": ["k"]}]}


@pytest.mark.parametrize("order", [DAYS, RULED_DAYS, MONTHS])
def test_rides_of_different_taxis_may_change_places_within_a_day(order: Any) -> None:
    check_same(
        order,
        "ride1@a ride1@b ride2@a eod1 ride3@a ride2@b eod2",
        "ride1@b ride1@a ride2@a eod1 ride2@b ride3@a eod2",
        kinds=("eod", "eom", "ride"),
    )


@pytest.mark.parametrize("order", [DAYS, RULED_DAYS])
def test_rides_of_one_taxi_may_not(order: Any) -> None:
    check_differ(order, "ride1@a ride2@a eod1", "ride2@a ride1@a eod1", at=2)


@pytest.mark.parametrize("order", [DAYS, RULED_DAYS])
def test_a_ride_belongs_to_its_day(order: Any) -> None:
    check_differ(order, "ride1@a eod1 ride1@b eod2", "ride1@a ride1@b eod1 eod2", at=4)


def test_an_end_of_month_floats_among_the_rides_between_two_days() -> None:
    check_same(MONTHS, "eod1 ride1@a eom ride1@b eod2", "eod1 ride1@b ride1@a eom eod2")
    check_same(MONTHS, "eod1 eom ride1@a ride2@a eod2", "eod1 ride1@a ride2@a eom eod2")


def test_an_end_of_month_stays_between_its_days() -> None:
    check_differ(MONTHS, "ride1@a eod1 eom ride1@b eod2", "ride1@a eom eod1 ride1@b eod2", at=4)


def test_ends_of_months_keep_their_order() -> None:
    check_differ(MONTHS, "eom1 eom2 ride1@a eod1", "eom2 eom1 ride1@a eod1", at=2)


# -- section 3: punctuation ----------------------------------------------------------------------------------

PUNCTUATION = {
    "dependent": [
        ["stamp", "stamp"],
        {"pair": ["reading", "stamp"], "before": {"field": "ts"}},
        {"pair": ["reading", "reading"], "same": ["ts"]},
    ]
}


def timed(text: str) -> list[dict[str, Any]]:
    """Readings (r) and punctuations (p), each with its time: ``r2 p3``."""
    names = {"r": "reading", "p": "stamp"}
    return [{"type": names[event["type"]], "ts": event["n"], **_value(event)} for event in events(text)]


def _value(event: dict[str, Any]) -> dict[str, Any]:
    return {"v": event["v"]} if "v" in event else {}


def test_a_reading_may_not_cross_a_punctuation_of_a_later_time() -> None:
    check_differ(PUNCTUATION, timed("r2 p3 r5"), timed("p3 r2 r5"), at=2)


def test_a_reading_of_a_later_time_may_cross_a_punctuation() -> None:
    check_same(PUNCTUATION, timed("r2 p3 r5 p6"), timed("r5 r2 p3 p6"))


def test_a_reading_at_the_time_of_a_punctuation_may_cross_it() -> None:
    check_same(PUNCTUATION, timed("r3 p3 r4"), timed("p3 r3 r4"))


def test_readings_of_one_time_keep_their_order_and_others_need_not() -> None:
    check_same(PUNCTUATION, timed("r1 r2 p3"), timed("r2 r1 p3"))
    check_differ(PUNCTUATION, timed("r1=1 r1=2 p3"), timed("r1=2 r1=1 p3"), at=2)


def test_punctuations_keep_their_order() -> None:
    check_differ(PUNCTUATION, timed("p3 p6 r9"), timed("p6 p3 r9"), at=2)


# -- section 4: the algorithm, step by step ------------------------------------------------------------------


def test_an_event_that_depends_on_two_waits_for_both() -> None:
    check_same({"dependent": [["a", "b"], ["c", "b"]]}, "a c b", "c a b")


def test_with_one_dependence_more_the_second_line_decides() -> None:
    check_differ({"dependent": [["a", "b"], ["c", "b"], ["a", "c"]]}, "a c b", "c a b", at=2)


def test_an_equal_event_that_is_not_minimal_is_no_partner() -> None:
    check_differ({"dependent": [["a", "b"]]}, "a a b", "a b", at=4)


def test_independent_events_are_never_known_to_differ_before_an_end() -> None:
    check_differ("unordered", "a1 a2 a3", "b1 b2 b3", at=None)
    open_sides = compare("unordered", "a1 a2 a3", "b1 b2 b3", open_ended=True)
    assert (open_sides["verdict"], open_sides["max_unmatched"]) == ("PENDING", 6)


def test_of_equal_events_each_pairs_once() -> None:
    check_same("unordered", "a a a b", "b a a a")
    check_differ("unordered", "a a a b", "b a a b", at=None)
