from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.support.refusals import recorded
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.cautions import cautions
from twinstream.spec.lint.topics import Topic, facts, hints, refusals
from twinstream.spec.load import loads

TODAY = date(2026, 5, 1)
QUIET = {"identity": ["id"], "show": ["id"], "order": {"per_key": ["k"]}}
"""A comparison that nothing is to be said about."""
KINDS = {"a": {"where": {"t": "a"}}, "b": {"where": {"t": "b"}}, "rest": {}}


def spec(**keys: Any) -> Spec:
    sides = {"reference": {"topic": "r"}, "candidate": {"topic": "c"}}
    return loads(json.dumps({"version": 1, "name": "t", **sides, **QUIET, **keys}))


RECORDED = recorded([Path(__file__).with_name("cautions.txt")])


@pytest.mark.parametrize("claim", RECORDED)
def test_a_file_has_the_cautions_that_stand_beside_it(claim: str) -> None:
    text, said, _ = RECORDED[claim]
    found = [f"{note.key}: {note.text}" for note in cautions(loads(text), TODAY)]
    assert "\n".join(found) == said.removesuffix("nothing")


# -- topics ------------------------------------------------------------------------------------------------

VERSIONS = {
    "reference": {"topic": "r", "version": "1"},
    "candidate": {"topic": "c", "version": "2"},
    "control": "said",
}


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


PLAIN = Topic(1, "delete")


def test_what_was_found_of_each_topic_is_told_good_or_bad() -> None:
    clocked = spec(**VERSIONS, overdue={"clock": "input"})
    found = facts(clocked, {"r": Topic(3, "compact"), "c": Topic(1, None), "said": None})
    assert [f"{note.key}: {note.text}" for note in found] == [
        "reference.topic: r has 3 partitions, cleanup.policy compact",
        "candidate.topic: c has 1 partition, cleanup.policy unknown",
        "control: there is no topic said",
    ]


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


def test_a_topic_that_is_compacted_is_refused_also_where_rows_replace_each_other() -> None:
    rows = spec(emits={"upsert": {"key": ["k"], "settled_by": "input"}}, identity=["k"])
    (note,) = refusals(rows, {"r": PLAIN, "c": Topic(1, "compact")})
    assert note.key == "candidate.topic"


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
