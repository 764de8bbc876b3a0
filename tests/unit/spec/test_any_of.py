"""`equality.any_of`: values that a function of the user accepts are equal, and no others are."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from tests.support.workers import SPEC, Bench
from twinstream import check
from twinstream.answers import Sides
from twinstream.core.arrivals.attempts import Attempt
from twinstream.errors import RelationError
from twinstream.explain.receipts.exclusions import exclusions
from twinstream.spec.codec.codec import Codec, UnjudgedRecord
from twinstream.spec.compile.cut import cut_of
from twinstream.spec.load import digest

HERE = "tests.unit.spec.test_any_of"
Event = Mapping[str, Any]


def one_of_the_group(event: Event) -> bool:
    return event["pick"] in event["group"]


def both_of_the_group(event: Event) -> bool:
    return sorted(event["pair"]) == sorted(event["group"])


def is_even(event: Event) -> bool:
    return event["pick"] % 2 == 0


def sums_up(event: Event) -> bool:
    return bool(event["a"] + event["b"] == 10)


def failing(_event: Event) -> bool:
    raise KeyError("pick")


def vague(_event: Event) -> str:
    return "perhaps"


def failing_on_7(event: Event) -> bool:
    return bool(1 / (7 - event["pick"]))


def is_no_poison(event: Event) -> bool:
    if event["k"] == "poison":
        raise ValueError
    return True


def none_or_one(event: Event) -> bool:
    picks = event.get("picks", [event])
    return all(one.get("pick") in (None, 1) for one in picks)


_turns = itertools.count()


def in_turns(_event: Event) -> bool:
    return next(_turns) % 2 == 0


def tearing(event: dict[str, Any]) -> bool:
    event.pop("pick")
    event["group"].clear()
    return True


def comparison(name: str = "one_of_the_group", field: str = "pick", **more: Any) -> dict[str, Any]:
    return {"order": "unordered", "equality": {"any_of": {field: f"{HERE}:{name}"}, **more}}


def picked(pick: Any, group: Any = (1, 2, 3), key: str = "k") -> dict[str, Any]:
    return {"key": key, "pick": pick, "group": list(group)}


def test_two_right_values_for_one_input_are_equal() -> None:
    answer = check(comparison(), [picked(1)], [picked(3)])
    assert (answer.verdict, answer.matched) == ("EQUIVALENT", 1)


def test_a_wrong_value_equals_no_right_one_and_only_itself() -> None:
    assert check(comparison(), [picked(1)], [picked(4)]).verdict == "DIVERGED"
    assert check(comparison(), [picked(5)], [picked(4)]).verdict == "DIVERGED"
    assert check(comparison(), [picked(4)], [picked(4)]).equivalent, "both are wrong in the same way"


@pytest.mark.parametrize("wrong", [[], [1], None, "[]", 0, True])
def test_no_wrong_value_is_taken_for_a_right_one(wrong: Any) -> None:
    assert check(comparison(), [picked(1)], [picked(wrong, (1, 2))]).verdict == "DIVERGED"


def test_right_values_for_different_inputs_differ() -> None:
    assert check(comparison(), [picked(1)], [picked(1, (1, 2))]).verdict == "DIVERGED"
    assert check(comparison(), [picked(1)], [picked(1, key="other")]).verdict == "DIVERGED"


def test_the_input_may_be_a_bag_and_the_value_too() -> None:
    equality = comparison("both_of_the_group", "pair", unordered=["group"])
    first = {"pair": [1, 2], "group": [2, 1]}
    assert check(equality, [first], [{"pair": [2, 1], "group": [1, 2]}]).equivalent
    assert not check(equality, [first], [{"pair": [2, 2], "group": [1, 2]}]).equivalent


def test_functions_of_two_fields_judge_them_together() -> None:
    names = {"a": f"{HERE}:sums_up", "b": f"{HERE}:sums_up"}
    both = {"order": "unordered", "equality": {"any_of": names}}
    assert check(both, [{"a": 1, "b": 9}], [{"a": 4, "b": 6}]).equivalent
    assert not check(both, [{"a": 1, "b": 9}], [{"a": 4, "b": 9}]).equivalent


@pytest.mark.parametrize("value", [{}, {"pick": None}, {"pick": 1}, {"pick": 2}])
@pytest.mark.parametrize("other", [{}, {"pick": None}, {"pick": 1}, {"pick": 2}])
def test_where_absent_is_null_a_right_value_may_be_either(value: Event, other: Event) -> None:
    right = 2 not in (*value.values(), *other.values()) or value == other
    for wrap in (lambda one: one, lambda one: {"picks": [one]}):
        path = "pick" if wrap(value) is value else "picks.pick"
        equality = {"any_of": {path: f"{HERE}:none_or_one"}, "absent_is_null": True}
        answer = check({"order": "total", "equality": equality}, [wrap(value)], [wrap(other)])
        assert (answer.verdict == "EQUIVALENT") is right
        keyed = {"order": "total", "identity": ["n"], "equality": equality}
        (changed,) = check(keyed, [wrap(value) | {"n": 1, "x": 1}], [wrap(other) | {"n": 1, "x": 2}]).examples
        assert (list(changed.fields) == ["x"]) is right, "two right values are not part of a difference"


def test_an_ignored_field_is_not_seen() -> None:
    answer = check(comparison(ignore=["group"]), [picked(1)], [picked(2)])
    assert answer.verdict == "INCONCLUSIVE"
    assert "failed with KeyError" in answer.reason


def test_a_kind_may_have_a_function_of_its_own() -> None:
    kinds = {"even": {"where": {"key": "e"}}, "rest": {}}
    per_kind = {"per_kind": {"even": {"any_of": {"pick": f"{HERE}:is_even"}}}}
    both = {"kinds": kinds, "order": "unordered", "equality": per_kind}
    assert check(both, [picked(2, key="e"), picked(1)], [picked(4, key="e"), picked(1)]).equivalent
    assert not check(both, [picked(2, key="e"), picked(2)], [picked(4, key="e"), picked(4)]).equivalent


def test_where_the_key_is_compared_the_function_still_gets_the_value(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    lines = [
        {"side": side, "key": "k", "value": picked(pick)}
        for side, pick in (("reference", 1), ("candidate", 2))
    ]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert check({**comparison(), "identity": ["$key"]}, trace=trace).equivalent


# -- rows that replace each other --------------------------------------------------------------------------

ROWS = {
    "kinds": {"night": {"where": {"key": "night"}}, "row": {}},
    "order": {"barrier": "night", "inner": "unordered"},
    "emits": {
        "upsert": {
            "key": ["key"],
            "settled_by": "barrier",
            "intermediate": {"final_after_settled": True},
        }
    },
    "equality": {"per_kind": {"row": {"any_of": {"pick": f"{HERE}:one_of_the_group"}}}},
}


def test_the_last_rows_of_a_key_are_equal_if_both_are_right() -> None:
    answer = check(ROWS, [picked(9), picked(1), picked(3)], [picked(2)])
    assert (answer.verdict, answer.matched) == ("EQUIVALENT", 1)
    answer = check(ROWS, [picked(1)], [picked(3), picked(9)])
    assert (answer.verdict, answer.examples[0].kind) == ("DIVERGED", "changed")


@pytest.mark.parametrize(
    ("emits", "gone"),
    [
        ({"upsert": {"key": ["key"], "settled_by": "input"}}, {"key": "k", "value_base64": None}),
        (
            {"retract": {"id": "key", "valid_from": "from", "valid_to": "to", "settled_by": "input"}},
            {"value": {"key": "k", "from": 1, "to": 1}},
        ),
    ],
)
def test_no_function_judges_a_deletion(tmp_path: Path, emits: dict[str, Any], gone: dict[str, Any]) -> None:
    rows = [{**picked(pick, key=key), "from": 1, "to": 2} for pick, key in ((1, "k"), (2, "other"))]
    lines = [
        {"side": side, **line}
        for side in ("reference", "candidate")
        for line in (*({"value": row} for row in rows), gone)
    ]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    file = {
        "order": "unordered",
        "emits": emits,
        "equality": {"any_of": {"pick": f"{HERE}:one_of_the_group"}},
    }
    answer = check(file, trace=trace)
    assert (answer.verdict, answer.matched) == ("EQUIVALENT", 1)


def test_another_right_value_changes_no_key_that_was_settled_and_a_wrong_one_does() -> None:
    night = {"key": "night"}
    rows = [picked(1), night, picked(2), picked(3), night]
    answer = check(ROWS, rows, rows)
    assert (answer.verdict, answer.checks_hold) == ("EQUIVALENT", True)
    answer = check(ROWS, rows, [*rows[:2], picked(9), *rows[3:]])
    assert (answer.verdict, answer.checks_hold) == ("EQUIVALENT", False), "the last row is right again"


@given(st.lists(st.tuples(st.integers(0, 4), st.sets(st.integers(0, 3))), min_size=3, max_size=3))
def test_it_is_an_equivalence_on_any_three_events(drawn: list[tuple[int, set[int]]]) -> None:
    events = [picked(pick, sorted(group)) for pick, group in drawn]

    def equal(one: Event, other: Event) -> bool:
        return check(comparison(), [one], [other]).equivalent

    def by_hand(one: Event, other: Event) -> bool:
        both = one["pick"] in one["group"] and other["pick"] in other["group"]
        return bool(one["group"] == other["group"] and (both or one["pick"] == other["pick"]))

    for one, other in itertools.product(events, repeat=2):
        assert equal(one, other) == by_hand(one, other) == equal(other, one)


# -- explanations ------------------------------------------------------------------------------------------


def test_a_difference_shows_the_values_as_they_came() -> None:
    answer = check({**comparison(), "identity": ["key"]}, [picked(1)], [picked(9)])
    (found,) = answer.examples
    assert (found.kind, found.fields) == ("changed", {"pick": Sides(reference=1, candidate=9)})
    assert found.text.endswith(" The candidate's `pick` is not one of its right values.")


def test_values_that_are_both_right_are_no_part_of_a_difference() -> None:
    one, other = {**picked(1), "n": 1}, {**picked(2), "n": 2}
    answer = check({**comparison(), "identity": ["key"]}, [one], [other])
    assert answer.examples[0].fields == {"n": Sides(reference=1, candidate=2)}


def test_what_it_hides_stands_in_the_receipt() -> None:
    rows = exclusions(spec("unordered", f"equality: {{any_of: {{pick: '{HERE}:is_even'}}}}"))
    (row,) = (row for row in rows if row.key == "equality.any_of")
    assert (row.name, row.hides) == ("pick", f"changes from one value that {HERE}:is_even accepts to another")


# -- functions that fail -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("failing", r"failed with KeyError in line \d+ of test_any_of.py"),
        ("vague", r"answered a str, not True or False"),
        ("in_turns", r"must depend on the event alone: asked twice about one, it says True and then False"),
    ],
)
def test_a_function_that_fails_or_breaks_a_law_is_no_match_and_no_difference(name: str, said: str) -> None:
    answer = check(comparison(name), [picked(1), picked(2)], [picked(1), picked(5)])
    assert (answer.verdict, answer.matched, answer.divergences.total) == ("INCONCLUSIVE", 0, 0)
    named = f"`equality.any_of.pick` {HERE}:{name} "
    place = r", for the event at offset 0 of .* \(reference\); from there on nothing was compared"
    assert re.search(re.escape(named) + said + place, answer.reason), answer.reason


def test_a_function_gets_a_copy() -> None:
    assert check(comparison("tearing"), [picked(1)], [picked(2)]).equivalent
    assert not check(comparison("tearing"), [picked(1, (1,))], [picked(1, (2,))]).equivalent


def test_what_was_matched_before_a_failure_counts_and_nothing_behind_it() -> None:
    answer = check(comparison("failing_on_7"), [picked(1), picked(7), picked(3)], [picked(2), picked(7)])
    assert (answer.verdict, answer.matched) == ("INCONCLUSIVE", 1)
    assert "offset 1 of" in answer.reason
    assert "ZeroDivisionError" in answer.reason
    accounts = answer.accounts.reference
    assert (accounts.consumed, accounts.matched, accounts.unmatched, accounts.undecodable) == (3, 1, 2, 0)


def test_a_difference_before_a_failure_stays_one() -> None:
    more = {"order": "total", "equality": {"any_of": {"pick": f"{HERE}:failing_on_7"}}}
    assert check(more, [picked(1), picked(7)], [picked(1, key="x"), picked(7)]).verdict == "DIVERGED"


def test_a_matcher_ends_at_the_event_in_the_middle_of_a_batch_and_stays_there_after_a_crash() -> None:
    equality = f"equality: {{ignore: [n], any_of: {{k: '{HERE}:is_no_poison'}}}}\n"
    bench = Bench(SPEC.replace("{per_key: [k]}", "unordered") + equality)
    worker = bench.started()
    bench.write(LEFT, ("a", 1), ("b", 2))
    bench.run(worker)
    bench.write(RIGHT, ("c", 3), ("poison", 4), ("d", 5))
    named = rf"`equality.any_of.k` {HERE}:is_no_poison failed with ValueError in line \d+ of test_any_of.py"
    place = r", for the event at offset 1 of .*candidate.*; from there on nothing was compared"
    status = bench.run(worker)
    for _ in range(2):
        assert (status.verdict, status.matched) == ("INCONCLUSIVE", 1)
        assert re.search(named + place, status.reason), status.reason
        assert (status.accounts.candidate.consumed, status.accounts.candidate.undecodable) == (3, 0)
        status = bench.run(bench.restarted())


def test_a_restart_judges_the_waiting_events_again() -> None:
    driver = Driver(spec("unordered", f"equality: {{any_of: {{pick: '{HERE}:one_of_the_group'}}}}"))
    driver.feed(LEFT, [record(picked(1)), record(picked(9))])
    driver.restart()
    driver.feed(RIGHT, [record(picked(2)), record(picked(8))])
    assert (driver.comparison.matched, driver.comparison.unmatched(LEFT)) == (1, 1)


def test_a_form_that_cannot_be_made_again_is_no_form() -> None:
    codec = Codec(spec("unordered", f"equality: {{any_of: {{pick: '{HERE}:failing'}}}}"))
    (refused,) = codec.forms([record(picked(1))])[1]
    assert isinstance(refused, UnjudgedRecord)
    with pytest.raises(RelationError, match="failing failed with KeyError"):
        codec.form_again(record(picked(1)))


def test_with_hashes_only_right_values_are_equal_too() -> None:
    equality = f"equality: {{any_of: {{pick: '{HERE}:one_of_the_group'}}}}"
    driver = Driver(spec("unordered", f"keep: hashes\n{equality}"))
    driver.feed(LEFT, [record(picked(1)), record(picked(9))])
    driver.feed(RIGHT, [record(picked(2)), record(picked(8))])
    assert (driver.comparison.matched, driver.comparison.unmatched(LEFT)) == (1, 1)


def test_a_retry_that_chose_another_right_value_is_a_replay() -> None:
    more = f"equality: {{any_of: {{pick: '{HERE}:one_of_the_group'}}}}\nduplicates: {{policy: replays}}"
    driver = Driver(spec("unordered", more))
    tries = [Attempt("q", 0, "run", 0, number) for number in range(2)]
    driver.feed(LEFT, [record(picked(1)), record(picked(2))], attempts=tries)
    driver.feed(RIGHT, [record(picked(3))], attempts=tries[:1])
    driver.end()
    assert [account.replayed for account in driver.comparison.accounts] == [1, 0]
    assert (driver.comparison.matched, driver.comparison.diverged) == (1, False)
    assert not driver.comparison.holes


def test_files_without_it_keep_their_digest() -> None:
    plain = spec("total", "equality: {ignore: [n], per_kind: {a: {ignore: [m]}}}\nkinds: {a: {}}")
    assert "any_of" in plain.equality.model_dump()
    assert digest(plain) == "85e2d31012c52a6e", "as it was before there was `any_of`"
    other = spec("total", f"equality: {{any_of: {{pick: '{HERE}:failing'}}}}")
    assert digest(other) != digest(spec("total"))


def test_an_event_of_an_ignored_kind_does_not_reach_the_function() -> None:
    """A heartbeat before the first row made the function fail for all rows."""
    file = {
        "kinds": {"heartbeat": {"where": {"k": "hb"}, "ignore": True}, "row": {}},
        "order": "unordered",
        "equality": {"any_of": {"pick": f"{HERE}:one_of_the_group"}},
    }
    events = [{"k": "hb"}, {"k": "row", "pick": 1, "group": [1, 2]}]
    answer = check(file, events, [events[0], {**events[1], "pick": 2}])
    assert (answer.verdict, answer.matched) == ("EQUIVALENT", 1)


FROM_10 = {"at": "event_time", "field": "at", "from": 10}


def test_an_event_before_a_start_at_a_time_does_not_reach_the_function() -> None:
    """Old events lacked the field that the function reads, so that nothing was compared."""
    row = {"k": "row", "at": 10, "pick": 1, "group": [1, 2]}
    rules = {
        "order": "unordered",
        "start": FROM_10,
        "undecodable": {"budget": 1},
        "equality": {"any_of": {"pick": f"{HERE}:one_of_the_group"}},
    }
    answer = check(rules, [{"k": "row", "at": 9, "pick": 1}, row], [{**row, "pick": 2}])
    assert (answer.verdict, answer.matched, answer.accounts.reference.before_start) == ("EQUIVALENT", 1, 1)
    unread = check(rules, [{"k": "row", "pick": 1}, row], [row])
    assert (unread.verdict, unread.accounts.reference.undecodable) == ("EQUIVALENT", 1)


def test_a_reset_to_another_start_decides_which_events_reach_the_function() -> None:
    codec = Codec(spec("unordered", f"equality: {{any_of: {{pick: '{HERE}:one_of_the_group'}}}}"))
    old = record({"k": "row", "at": 9, "pick": 3, "group": [1, 2]})
    at_10 = spec("unordered", f"start: {FROM_10}")
    contents = []
    for start in (at_10, spec("unordered")):
        cut_of(start, codec)
        contents.append(codec.form(old).content)
    assert contents[0] == codec.form(record({"k": "row", "at": 9, "pick": 1, "group": [1, 2]})).content
    assert contents[1] != contents[0]
