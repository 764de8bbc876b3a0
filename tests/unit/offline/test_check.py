from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest

from tests.support.retries import replays, rows
from tests.support.streams import SPEAKING, record, spec, trace
from twinstream.core.events import Side
from twinstream.errors import InputError
from twinstream.offline.check import EXAMPLES_LIMIT, Check, check
from twinstream.ports import Line
from twinstream.spec.decode.deletions import row_or_deletion
from twinstream.spec.load import loads


def lines(text: str) -> Iterator[Line]:
    """A trace; each word is a line of it."""
    offsets = [0, 0]
    for number, (side, value) in enumerate(trace(text), 1):
        content = None if value is None else record(value)
        yield Line(side, content, 0, offsets[side], 0, "trace", number, number)
        offsets[side] += content is not None


def answer(order: str, text: str, more: str = "", **options: bool) -> dict[str, Any]:
    return check(spec(order, more), lines(text), **options)


OPEN, EMPTY, EVIDENCE = {"open_ended": True}, {"allow_empty": True}, {"evidence": True}
NO_EVENTS, TWO_PAIRS, NO_KEY = "undecodable: {budget: 2}", "evidence: {matched: 2}", "{per_key: [nowhere]}"
NOTHING = "Not decided: neither side has an event, so nothing was compared."
UNDECODABLE = "Not decided: all 2 records are undecodable, so nothing was compared."
ONE_UNDECODABLE = UNDECODABLE.replace("all 2 records are", "the one record is")
LEFT_OUT = "kinds: {a: {where: {k: a}, ignore: true}, b: {}}\nevidence: {may_be_absent: [b]}"
NOTHING_COUNTS = (
    "Not decided: none of the 2 events is behind the start and of a kind that is compared, so noth"
)
UNMATCHED = "1 of the reference and 0 of the candidate are unmatched, and the sides have not ended"
LIMITED = "Not decided: limits.unmatched_events (2) was reached: what came after was not compared."
ALL_2, SO_FAR = "All 2 pairs match. ", "Nothing wrong so far, but"
LACKING = "1 of 2 required pairs"
KINDS = "kinds: {a: {where: {k: a}}, b: {where: {k: b}}}\nevidence: {matched: 1}"
KNOWN_AT, IN_ORDER = "The outputs differ, first proven at", "Compared in one order."
AT_END = f"{KNOWN_AT} the end of the input. "
ANSWERS: list[tuple[str, str, str, dict[str, bool], str, str]] = [
    ("unordered", "L:a1 L:b1 R:b1 R:a1", "", {}, "EQUIVALENT", f"{ALL_2}Compared in any order."),
    ("total", "L:a1 R:a1 L:b1 R:c1 L:c1", "", {}, "DIVERGED", f"{KNOWN_AT} line 4. {IN_ORDER}"),
    ("total", "L:a1", "", {}, "DIVERGED", AT_END),
    ("total", "L:a1 R:.", "", {}, "DIVERGED", AT_END),
    ("total", "L:. R:a1 R:.", "", {}, "DIVERGED", f"{KNOWN_AT} line 2. "),
    ("unordered", "L:a1 R:b1 R:. L:b1", "", {}, "DIVERGED", AT_END),
    ("unordered", "R:. L:a1", "", {}, "DIVERGED", f"{KNOWN_AT} line 2. "),
    ("unordered", "L:a1 L:b1 R:b1", "", OPEN, "PENDING", f"{SO_FAR} {UNMATCHED}."),
    ("unordered", "L:b1 R:b1", "", OPEN, "EQUIVALENT", "The one pair matches. "),
    ("total", "L:a1 L:b1 R:b1", "", OPEN, "DIVERGED", f"{KNOWN_AT} line 3. "),
    ("total", "", "", {}, "INCONCLUSIVE", NOTHING),
    ("total", "L:. R:.", "", {}, "INCONCLUSIVE", NOTHING),
    ("total", "", "", EMPTY, "EQUIVALENT", "Nothing differs, but no pair was compared."),
    (NO_KEY, "L:a1 R:a1", NO_EVENTS, {}, "INCONCLUSIVE", UNDECODABLE),
    (NO_KEY, "L:a1", NO_EVENTS, {}, "INCONCLUSIVE", ONE_UNDECODABLE),
    (NO_KEY, "L:a1", NO_EVENTS, EMPTY, "EQUIVALENT", "Nothing differs, but no pair was compared."),
    ("total", "L:a1 R:a2", LEFT_OUT, {}, "INCONCLUSIVE", NOTHING_COUNTS),
    ("total", "L:a1 R:a2", LEFT_OUT, EMPTY, "EQUIVALENT", "Nothing differs, but no pair was compared."),
    ("total", "L:a1 R:a1", TWO_PAIRS, {}, "EQUIVALENT", "The one pair matches. "),
    ("total", "L:a1 R:a1", TWO_PAIRS, EVIDENCE, "PENDING", f"{SO_FAR} {LACKING}."),
    ("total", "L:a1 R:a1 L:a1 R:a1", TWO_PAIRS, EVIDENCE, "EQUIVALENT", ALL_2),
    ("total", "L:a1 R:a1", KINDS, EVIDENCE, "PENDING", f"{SO_FAR} no `b` has matched."),
    ("total", "L:a1 R:a1", KINDS, {}, "EQUIVALENT", "The one pair matches. "),
    ("total", "L:a1 R:a1 L:b1 R:b1", KINDS, EVIDENCE, "EQUIVALENT", ALL_2),
    ("unordered", "L:a1 L:b1 L:c1 R:c1", "limits: {unmatched_events: 2}", {}, "INCONCLUSIVE", LIMITED),
]  # fmt: skip


ENDS = [("9999-12-31T23:59:59-05:00", 0), ("0001-01-01T00:00:00+05:00", 1)]


@pytest.mark.parametrize(("time", "before"), ENDS)
def test_an_event_of_for_ever_in_another_zone_lies_at_the_end_of_the_calendar(time: str, before: int) -> None:
    start = "start: {at: event_time, field: t, from: 2026-01-01T00:00:00Z}\n"
    both = [Line(side, record({"t": time}), 0, 0, 0, "trace", 1, 1) for side in Side]
    found = check(spec("unordered", start), both)
    assert (found["matched"], found["accounts"]["reference"]["before_start"]) == (1 - before, before)
    assert found["verdict"] == ("INCONCLUSIVE" if before else "EQUIVALENT")


def test_times_beyond_the_calendar_are_shown_as_its_end() -> None:
    microseconds = 1_700_000_000_000_000
    one = next(lines("L:a1"))._replace(timestamp_ms=microseconds)
    (group,) = check(spec("unordered"), [one])["groups"]
    assert group["first_at"] == group["last_at"] == "9999-12-31T23:59:59.999999Z"


@pytest.mark.parametrize(("order", "text", "more", "options", "verdict", "reason"), ANSWERS)
def test_an_answer_says_why(
    order: str, text: str, more: str, options: dict[str, bool], verdict: str, reason: str
) -> None:
    found = answer(order, text, more, **options)
    assert (found["verdict"], found["reason"][: len(reason)]) == (verdict, reason)
    line = re.search("proven at line ([0-9]+)", found["reason"])
    assert found["decided_at"] == (line and int(line[1]))


def test_an_answer_counts_what_was_matched_and_what_waits() -> None:
    assert answer("unordered", "L:a1 R:b1 R:. L:b1")["matched"] == 1
    found = answer("unordered", "L:a1 L:b1 R:c1 R:a1 R:b1 L:c1")
    assert (found["matched"], found["max_unmatched"], found["examples"]) == (3, 3, [])
    assert found["divergences"] == {
        "total": 0, "by_kind": {"missing": 0, "extra": 0, "changed": 0, "reordered": 0, "duplicate": 0},
    }  # fmt: skip
    assert answer("unordered", "L:a1 L:b1 R:b1", **OPEN)["unmatched"] == {"reference": 1, "candidate": 0}
    assert [one["kind"] for one in answer("total", "L:a1 L:b1 R:b1", **OPEN)["examples"]] == ["missing"]
    assert answer(NO_KEY, "L:a1 R:a1", NO_EVENTS)["accounts"]["reference"]["undecodable"] == 1


def test_the_coverage_tells_what_was_seen_and_no_evidence_of_a_service() -> None:
    assert answer("total", "L:a1 R:a1")["coverage"] == {
        "matched_by_kind": {"event": 1},
        "events": 2,
        "kinds": {
            "event": {"sampled": 2, "varied": [], "constant": ["k", "v"], "always_null": []},
        },
        "more_fields": False,
        "keys": None,
        "more_keys": False,
        "notes": [],
    }


def test_of_a_difference_that_is_too_large_the_reason_says_that_not_all_is_explained() -> None:
    events = " ".join(f"L:a{number} R:b{number}" for number in range(2000))
    found = answer("total", events, "limits: {scope_events: 32}\n")
    assert found["reason"] == (
        "The outputs differ, first proven at line 2. Compared in one order. Not all of it is explained:"
        " limits.scope_events (32) was reached."
    )
    for account in found["accounts"].values():
        assert account["divergent"] + account["unmatched"] == 2000
    told = [found["divergences"]["by_kind"][kind] for kind in ("missing", "extra")]
    assert told == [account["divergent"] for account in found["accounts"].values()]


def test_a_barrier_too_many_is_one_difference_however_long_the_next_one_is_to_come() -> None:
    both = [f"L:a{number} R:a{number}" for number in range(100)]
    days = "kinds: {e: {where: {k: e}}, x: {}}\nlimits: {scope_events: 64}\n"
    found = answer("{barrier: e, inner: unordered}", " ".join([*both[:9], "R:e1", *both[9:]]), days)
    assert (found["divergences"]["total"], found["divergences"]["by_kind"]["extra"]) == (1, 1)
    assert "Not all of it is explained" not in found["reason"]


COPIES = "kinds: {day: {where: {k: d}}, e: {}}"
PER_PARTITION = "{barrier: day, copies: per_partition, inner: unordered}"


def test_of_two_topics_with_the_same_partitions_one_that_never_got_a_copy_lacks_it() -> None:
    day, one = record({"k": "d"}), record({"k": "e"})
    told = [
        (Side.LEFT, 0, day),
        (Side.LEFT, 1, one),
        (Side.LEFT, 1, day),
        (Side.RIGHT, 1, one),
        (Side.RIGHT, 1, day),
    ]
    trace = [Line(side, bytes_, partition, 0, 0, "trace", 1, 1) for side, partition, bytes_ in told]
    found = check(spec(PER_PARTITION, f"{COPIES}\nco_partitioned: true"), trace)
    assert found["verdict"] == "INCONCLUSIVE"
    assert "lacks copies of a barrier" in found["reason"]
    assert check(spec(PER_PARTITION, COPIES), trace)["verdict"] == "EQUIVALENT"


def test_a_line_is_counted_where_it_stands() -> None:
    apart = [line._replace(position=10 * line.position) for line in lines("L:a1 R:b1")]
    assert check(spec(), apart)["decided_at"] == 20


def test_what_had_no_partner_at_the_end_is_unmatched_and_divergent() -> None:
    found = answer("unordered", "L:a1 L:b1 R:a1")
    assert found["unmatched"] == {"reference": 1, "candidate": 0}
    assert found["accounts"]["reference"] == {
        "consumed": 2, "matched": 1, "ignored": 0, "before_start": 0, "replayed": 0, "undecodable": 0,
        "explained": 0, "divergent": 1, "unmatched": 0,
    }  # fmt: skip


def test_what_is_doubtful_in_one_way_at_many_places_is_told_once() -> None:
    many = [line._replace(partition=n % 2) for n, line in enumerate(lines("L:a1 L:a2 L:a3 L:a4"))]
    found = check(spec("{per_key: [k]}"), many, open_ended=True)
    assert len(found["holes"]) == 3
    assert found["reason"].count("are in two partitions") == 1


@pytest.mark.parametrize("order", ["{per_key: [k]}", "total"])
@pytest.mark.parametrize("apart", [True, False], ids=["both", "one"])
def test_dependent_events_in_two_partitions_prove_nothing_whichever_come_first(
    order: str, *, apart: bool
) -> None:
    places = [(Side.LEFT, 0, 0, "a1"), (Side.LEFT, 1, 0, "a2"), (Side.RIGHT, 0, 0, "a1")]
    places.append((Side.RIGHT, 1, 0, "a2") if apart else (Side.RIGHT, 0, 1, "a2"))
    for told in permutations(places):
        if apart or told.index(places[2]) < told.index(places[3]):
            given = [
                Line(side, record({"k": value[0], "n": value}), partition, offset, 0, "trace", number, number)
                for number, (side, partition, offset, value) in enumerate(told, 1)
            ]
            found = check(spec(order), given)
            assert (found["verdict"], found["decided_at"]) == ("INCONCLUSIVE", None)
            assert "are in two partitions (0 and 1)" in found["reason"]


@pytest.mark.parametrize(
    ("reference", "candidate", "verdict"),
    [
        ("0/e/1.0:a@1 0/e/0.0:b 1/e/1.0:c@1", "0/e/1.0:a@1 0/f/1.0:b@1 1/g/1.0:c@1 0/f/0.0:a", "EQUIVALENT"),
        ("0/e/1.0:w@1 0/e/0.0:z 1/e/1.0:c@1", "0/e/1.0:x@1 1/g/1.0:c@1 0/f/0.0:z", "INCONCLUSIVE"),
    ],
    ids=["one execution has all", "none has all"],
)
def test_a_batch_is_decided_the_same_in_whatever_order_the_lines_of_partitions_stand(
    reference: str, candidate: str, verdict: str
) -> None:
    *of_one, of_other = rows(candidate)
    for place in range(len(of_one) + 1):
        told = [*of_one[:place], of_other, *of_one[place:]]
        lines = [
            Line(
                side,
                record(row.value),
                row.partition,
                offset,
                0,
                "t",
                offset + 1,
                offset + 1,
                headers=row.headers,
            )
            for side, of_side in ((Side.LEFT, rows(reference)), (Side.RIGHT, told))
            for offset, row in enumerate(of_side)
        ]
        assert check(spec(replays()), lines)["verdict"] == verdict


def test_unmatched_records_take_no_more_bytes_than_their_limit() -> None:
    told = " ".join(f"L:a{number}" for number in range(1000))
    found = answer("unordered", f"{told} {told.replace('L:', 'R:')}", "limits: {unmatched_bytes: 1000}")
    assert found["verdict"] == "INCONCLUSIVE"
    assert "limits.unmatched_bytes (1000) was reached" in found["reason"]


def test_halt_counts_what_came_before_it() -> None:
    found = answer("{per_key: [k]}", "L:a1 R:a1 L:b1 R:b2 L:c1 R:c1", "on_divergence: halt")
    assert (found["verdict"], found["decided_at"], found["matched"]) == ("DIVERGED", 4, 1)
    assert found["accounts"]["reference"]["ignored"] == 1


def test_an_undecodable_event_is_bad_input_beyond_the_budget() -> None:
    bad = [line._replace(record=b"{") for line in lines("L:a1 L:a1")]
    message = "^trace:1: not an event of this comparison: not JSON: Expecting property name"
    with pytest.raises(InputError, match=message):
        check(spec(), bad)
    with pytest.raises(InputError, match=r"^trace:2: not an event"):
        check(spec(more="undecodable: {budget: 1}"), bad)
    found = check(spec(more="undecodable: {budget: 2}"), [*bad, *lines("L:a1 R:a1")])
    assert found["accounts"]["reference"]["undecodable"] == 2
    assert found["verdict"] == "EQUIVALENT"


def test_examples_are_bounded_and_counts_are_not() -> None:
    found = answer("unordered", " ".join(f"L:a{number}" for number in range(EXAMPLES_LIMIT + 5)))
    assert len(found["examples"]) == EXAMPLES_LIMIT
    assert found["divergences"]["total"] == EXAMPLES_LIMIT + 5


def test_long_input_is_reviewed_on_the_way() -> None:
    run = Check(spec())
    text = " ".join(f"L:a{number} R:a{number + (number >= 20)}" for number in range(1000))
    for line in lines(text):
        run.feed(line)
    assert len(run.comparison.scopes) == 0
    assert run.finish(open_ended=True)["divergences"]["by_kind"]["missing"] == 1


def test_a_table_of_which_one_side_has_no_row_was_not_compared() -> None:
    """Its one row was deleted again, so that nothing differs in the end."""
    emits = "emits: {upsert: {key: [k], settled_by: input}}\n"
    row = record({"k": 1, "v": 3})
    table, deleted = loads(f"{SPEAKING}overdue: {{clock: input}}\n{emits}"), row_or_deletion(None, b"1")
    rows = [Line(Side.LEFT, text, 0, n, 0, "t", n + 1, n + 1) for n, text in enumerate((row, deleted))]
    found = check(table, rows)
    assert found["verdict"] == "INCONCLUSIVE"
    assert "the candidate has no row, so nothing was compared" in found["reason"]
    assert check(table, rows, allow_empty=True)["verdict"] == "EQUIVALENT"
    assert "has no row" not in check(table, rows, open_ended=True)["reason"], "it may still come"
