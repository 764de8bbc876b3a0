from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from twinstream.spec.file.model import Spec
from twinstream.spec.lint.cautions import cautions, one_partition
from twinstream.spec.lint.topics import Topic, hints, refusals
from twinstream.spec.load import loads

TODAY = date(2026, 5, 1)
QUIET = {"identity": ["id"], "show": ["id"], "order": {"per_key": ["k"]}}
"""A comparison that nothing is to be said about."""
KINDS = {"a": {"where": {"t": "a"}}, "b": {"where": {"t": "b"}}, "rest": {}}


def spec(**keys: Any) -> Spec:
    sides = {"reference": {"topic": "r"}, "candidate": {"topic": "c"}}
    return loads(json.dumps({"version": 1, "name": "t", **sides, **QUIET, **keys}))


def notes(**keys: Any) -> dict[str, str]:
    return {note.key: note.text for note in cautions(spec(**keys), TODAY)}


def test_a_plain_comparison_has_no_cautions() -> None:
    assert notes() == {}
    assert notes(kinds=KINDS) == {}


def test_a_kind_that_an_earlier_one_covers_is_named_and_so_is_the_evidence_that_waits() -> None:
    kinds = {
        "any": {"where": {"t": ["a", "b", 1]}},
        "some": {"where": {"t": "b", "u": 1}},
        "true": {"where": {"t": True}},
    }
    found = notes(kinds=kinds)
    waits = "no event is ever of this kind: `any` fits first, and `evidence` waits for one in vain"
    assert found["kinds.some"] == waits
    assert "kinds.true" not in found
    found = notes(kinds=kinds, evidence={"may_be_absent": ["some"]})
    assert found["kinds.some"] == "no event is ever of this kind: `any` fits first"


def test_a_file_without_a_last_kind_for_the_rest_is_told_what_happens_to_it() -> None:
    kinds = {"a": {"where": {"t": "a"}}}
    assert notes(kinds=kinds) == {
        "kinds": "an event that fits none of them is undecodable; a last kind `{}` fits the rest"
    }


def test_replays_need_marks() -> None:
    text = notes(duplicates={"policy": "replays"})["duplicates.policy"]
    assert (
        "twinstream-query, twinstream-batch and twinstream-attempt, which both pipelines have to write"
        in text
    )
    assert "a record without them is an event like any other" in text
    assert text.endswith(
        "; without `control` a difference in the last batch counts only when the next one comes"
    )
    found = notes(**VERSIONS, duplicates={"policy": "replays"})
    assert "control" not in found
    assert found["duplicates.policy"].endswith("shows as duplicates")
    assert "no batch is remembered" in notes(duplicates={"horizon": 3})["duplicates.horizon"]


def test_a_function_costs_more_the_more_waits() -> None:
    found = notes(order={"callable": "os.path:samefile"})
    assert found["order.callable"].startswith(
        "a function may relate any two events, and Kafka keeps no order"
    )
    texts = [note.text for note in cautions(spec(order={"callable": "os.path:samefile"}), TODAY)]
    assert any(text.startswith("os.path:samefile is asked of every unmatched event") for text in texts)


def test_a_kind_that_no_rule_names_is_told() -> None:
    order = {"dependent": [{"pair": ["a", "b"], "same": ["k"]}]}
    text = "no rule names `rest`: its events may change places with all others"
    assert notes(kinds=KINDS, order=order)["order.dependent"] == text
    every = {"dependent": [{"pair": ["a", "*"], "same": ["k"]}]}
    assert "order.dependent" not in notes(kinds=KINDS, order=every)


PARTITIONS: list[tuple[Any, list[str]]] = [
    ("unordered", []),
    ("total", ["order"]),
    ({"per_key": ["k"]}, []),
    ({"by_key": ["k"], "inner": {"barrier": "a", "inner": "total"}}, []),
    ({"barrier": "a", "inner": "total"}, ["order.barrier"]),
    ({"barrier": "a", "inner": {"per_key": ["k"]}, "copies": "per_partition"}, []),
    ({"barrier": "a", "inner": "total", "copies": "per_partition"}, ["order.inner"]),
    ({"dependent": [["a", "b"]]}, ["order.dependent"]),
    ({"dependent": [{"pair": ["a", "b"], "same": ["k"]}]}, []),
    (
        {"parallel": {"x": {"kinds": ["a"], "order": "total"},
                      "y": {"kinds": ["b", "rest"], "order": "unordered"}}},
        ["order.parallel.x.order"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("order", "places"), PARTITIONS, ids=lambda value: str(value)[:40])
def test_what_relates_events_of_different_keys_needs_one_partition(order: Any, places: list[str]) -> None:
    found = spec(kinds=KINDS, order=order)
    assert [place for place, _ in one_partition(found)] == places
    assert set(places) <= set(notes(kinds=KINDS, order=order))


def test_values_near_a_rounding_boundary_are_told_with_an_example() -> None:
    found = notes(
        equality={"quantum": {"fare": 0.01}, "per_kind": {"a": {"quantum": {"eta": 5}}}}, kinds=KINDS
    )
    assert found["equality.quantum"].endswith("0.0049 becomes 0 and 0.0051 becomes 0.01")
    assert found["equality.per_kind.a.quantum"].endswith("2.45 becomes 0 and 2.55 becomes 5")


def test_that_nothing_is_compared_is_told() -> None:
    text = "nothing of an event is compared, so any two are equal and only their number and order count"
    found = notes(equality={"compare_only": []}, order="total", identity=None)
    assert found["equality.compare_only"] == f"{text}; name what must not differ"


def test_what_absent_is_null_hides_is_told() -> None:
    (text,) = notes(equality={"absent_is_null": True}).values()
    assert text == (
        "a version that leaves a member out is not told from one that writes null; "
        "an event without `id` or `k` counts as one where it is null"
    )


def test_where_only_time_can_tell_a_loss_the_verdict_it_leads_to_is_told() -> None:
    text = "events of `event` depend on nothing, so only time can tell that one is lost: after 60 s it makes"
    assert notes(order="unordered")["overdue.proves"].startswith(text)
    found = notes(order="unordered", overdue={"proves": True, "after": "5m"})
    assert found["overdue.proves"].startswith("an event that is 300 s overdue counts as lost")
    order = {"barrier": "a", "inner": "unordered"}
    assert "overdue.proves" not in notes(kinds=KINDS, order=order)


VERSIONS = {
    "reference": {"topic": "r", "version": "1"},
    "candidate": {"topic": "c", "version": "2"},
    "control": "said",
}


def test_what_the_clock_of_the_input_cannot_judge_is_told() -> None:
    found = notes(**VERSIONS, order="unordered", overdue={"clock": "input"})
    assert set(found) == {"overdue.window_end"}
    assert found["overdue.window_end"].startswith(
        "an event without the header twinstream-input is never overdue; where events are aggregates, name"
    )
    found = notes(**VERSIONS, overdue={"clock": "input", "window_end": "end"})
    assert found["overdue.window_end"] == (
        "an event with neither the header twinstream-input nor a time in `end` is never overdue"
    )


def test_a_key_of_another_clock_and_a_control_topic_that_nobody_reads_are_told() -> None:
    found = notes(**VERSIONS, overdue={"clock": "arrival", "max_jump": "1h", "idle_after": "5s"})
    assert found == {
        "control": "is read for `overdue: {clock: input}`, `start: {at: input}` and `duplicates: {policy: "
        "replays}` only, so nothing on it has a meaning",
        "overdue.max_jump": "is for `clock: event_time`; `clock: arrival` does not use it",
        "overdue.idle_after": "is for `clock: event_time`; `clock: arrival` does not use it",
    }


def test_what_a_start_at_the_input_cannot_place_is_told() -> None:
    found = notes(**VERSIONS, start={"at": "input"})
    assert set(found) == {"start.at"}
    assert found["start.at"].startswith("an event without the header twinstream-input has no place before or")


def test_the_control_topic_has_one_partition_and_may_come_later() -> None:
    clocked = spec(**VERSIONS, overdue={"clock": "input"})
    both = {"r": Topic(1, "delete"), "c": Topic(1, "delete")}
    (note,) = refusals(clocked, {**both, "said": Topic(3, "delete")})
    assert note == (
        "control",
        "said has 3 partitions, and only one would be read: use a control topic of one",
    )
    (note,) = refusals(clocked, {**both, "said": Topic(1, "compact,delete")})
    assert note.text == (
        "said has cleanup.policy compact,delete: compaction removes control records that are to be read; "
        "use a control topic without it"
    )
    assert list(refusals(clocked, {**both, "said": Topic(1, None)})) == []
    assert list(refusals(clocked, {**both, "said": None})) == []
    (hint,) = hints(clocked, {**both, "said": None})
    assert hint == ("control", "there is no topic said yet; until there is, nothing is overdue")
    assert list(hints(clocked, {**both, "said": Topic(1, "delete")})) == []
    (hint,) = hints(spec(**VERSIONS, duplicates={"policy": "replays"}), {**both, "said": None})
    assert hint.text.endswith("until there is, the last batch is not known to be whole")
    (hint,) = hints(spec(**VERSIONS, start={"at": "input"}), {**both, "said": None})
    assert hint.text.endswith("until there is, nothing is compared")


def test_what_cannot_be_told_to_people_is_named() -> None:
    assert notes(identity=None, show=[]) == {
        "identity": "without it a changed event is told as one that is missing and one that is extra",
        "show": "is empty, so the service masks every value; `check` shows all",
    }


def test_deletions_that_are_left_out_are_named_by_side() -> None:
    candidate = {"topic": "c", "decode": {"tombstones": "ignore"}}
    assert list(notes(decode={"tombstones": "ignore"}, candidate=candidate)) == [
        "decode.tombstones",
        "candidate.decode.tombstones",
    ]


@pytest.mark.parametrize(("expires", "told"), [("2026-05-01", True), ("2026-05-02", False)])
def test_a_known_difference_that_has_expired_is_told(expires: str, told: bool) -> None:
    known = {"id": "P-1", "when": {"divergences": ["changed"]}, "owner": "o", "ceiling": {"count": 1}}
    assert ("known_differences.P-1" in notes(known_differences=[{**known, "expires": expires}])) == told


def test_what_can_never_come_about_is_told() -> None:
    assert notes(gate={"max_staleness": 0}) == {
        "gate.max_staleness": "is 0: what is verified is always a little older, so no gate passes"
    }
    left_out = {"hb": {"ignore": True}}
    text = "all of them are left out of the comparison, so nothing is compared"
    assert notes(kinds=left_out, order="unordered") == {"kinds": text}


@pytest.mark.parametrize(("divergences", "told"), [(["changed"], True), (["changed", "missing"], False)])
def test_changed_events_are_never_found_without_identity(divergences: list[str], told: bool) -> None:
    when = {"divergences": divergences}
    known = {"id": "P-1", "when": when, "owner": "o", "ceiling": {"count": 1}, "expires": "2026-12-31"}
    assert ("known_differences.P-1" in notes(known_differences=[known], identity=None)) == told
    assert "known_differences.P-1" not in notes(known_differences=[known])


# -- topics ------------------------------------------------------------------------------------------------


PLAIN = Topic(1, "delete")


def refused(order: Any, reference: Topic | None, candidate: Topic | None = PLAIN) -> list[str]:
    found = refusals(spec(order=order, kinds=KINDS), {"r": reference, "c": candidate})
    return [f"{note.key}: {note.text}" for note in found]


def test_topics_that_fit_are_not_refused() -> None:
    assert refused("total", PLAIN) == []
    assert refused({"per_key": ["k"]}, Topic(12, "delete"), Topic(12, "delete")) == []


def test_a_topic_that_is_missing_is_refused() -> None:
    assert refused("total", None, None) == [
        "reference.topic: there is no topic r",
        "candidate.topic: there is no topic c",
    ]


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_topic_that_is_compacted_is_refused(policy: str) -> None:
    (text,) = refused({"per_key": ["k"]}, Topic(1, policy))
    assert text.startswith(f"reference.topic: r has cleanup.policy {policy}: compaction removes records")


def test_an_order_over_partitions_is_refused_where_there_are_several() -> None:
    (text,) = refused({"barrier": "a", "inner": "unordered"}, Topic(3, "delete"))
    assert text.startswith(
        "order.barrier: r has 3 partitions: a relates events of all keys, and Kafka keeps no"
    )


def test_different_numbers_of_partitions_are_no_reason_to_refuse() -> None:
    topics = {"r": Topic(3, "delete"), "c": Topic(4, "delete")}
    (note,) = hints(spec(), topics)
    assert note.text == "the topics have 3 and 4 partitions: the work cannot be divided by partition"
    assert list(hints(spec(), {**topics, "c": Topic(3, "delete")})) == []
    assert list(hints(spec(), {**topics, "c": None})) == []
