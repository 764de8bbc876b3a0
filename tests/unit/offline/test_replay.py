"""What a changed comparison file makes of divergences that are kept: exact where it answers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest

from tests.support.streams import LEFT, RIGHT
from twinstream.errors import InputError
from twinstream.offline.replay import Replay, cases_of
from twinstream.ports import KeptRecord
from twinstream.spec.file.paths import ABSENT
from twinstream.spec.load import loads

HEAD = "version: 1\nname: rides\nreference: {topic: a}\ncandidate: {topic: b}\n"
BAG, PER_KEY = "order: unordered\n", "order: {per_key: [taxi]}\n"
IGNORING = "equality: {ignore: [fare]}\n"
KINDS = "kinds: {hb: {where: {type: hb}, ignore: true}, ride: {}}\n"


def known(ceiling: str = "{count: 10}", expires: str = "2099-01-01", where: str = "{}") -> str:
    when = f"{{divergences: [changed, missing, duplicate], fields: [fare], where: {where}}}"
    return (
        f"known_differences: [{{id: F, when: {when}, owner: me, expires: {expires}, ceiling: {ceiling}}}]\n"
    )


def kept(
    kind: str, reference: Any = None, candidate: Any = None, number: int = 1, **more: Any
) -> dict[str, Any]:
    """A divergence as a service keeps it."""
    sides = {"reference": reference, "candidate": candidate}
    topics = {"reference": "a", "candidate": "b"}
    at = {side: {"topic": topics[side], "partition": 0, "offset": number} for side in sides}
    positions = {side: None if value is None else at[side] for side, value in sides.items()}
    seen = f"2026-03-01T12:00:{number:02}Z"
    base = {"id": f"d{number}", "kind": kind, "positions": positions, "witness": [], "first_seen": seen}
    return {**base, **sides, **more}


def swapped(first: Any, second: Any) -> dict[str, Any]:
    """The first event came first on the reference, and behind the second on the candidate."""
    witness = [
        {"side": side, "position": {"topic": topic, "partition": 0, "offset": offset}, "value": second}
        for side, topic, offset in (("reference", "a", 2), ("candidate", "b", 0))
    ]
    return kept("reordered", first, first, witness=witness)


def told(rules: str, *reports: dict[str, Any]) -> list[tuple[str, str]]:
    answers = Replay(loads(HEAD + rules)).answers(cases_of("kept", reports))
    return [(answer.outcome, answer.why) for answer in answers]


RIDE, DEARER = {"taxi": 1, "fare": 2}, {"taxi": 1, "fare": 3}


CHANGED, COPY = kept("changed", RIDE, DEARER), kept("duplicate", None, RIDE)
MASKED = kept("missing", {"type": "hb", "at": "‹number›"})
EXPORTED = {name: kept("missing", RIDE)[name] for name in ("id", "kind", "positions", "first_seen")}
PLACES, IDENTITY = swapped({"taxi": 1}, {"taxi": 2}), "identity: [taxi]\n"
GONE = "the events that prove it may change places, and others are not kept"
TABLES = "emits: {upsert: {key: [taxi], settled_by: input}}\n"
ONE_ROW = "the row of the other side, which decides it, is not kept"
LONE = kept("changed", RIDE), kept("changed", None, RIDE), kept("extra", RIDE), kept("missing", None, RIDE)
ALONE: list[tuple[str, dict[str, Any], str, str]] = [
    (BAG, CHANGED, "reported", "as missing and extra"),
    (BAG + IDENTITY, CHANGED, "reported", ""),
    (BAG + IGNORING, CHANGED, "hidden", "the events are equal"),
    (PER_KEY + IGNORING, CHANGED, "equal", ""),
    (PER_KEY + IDENTITY + known(), CHANGED, "explained", "by F"),
    (PER_KEY + IDENTITY + known(where="{taxi: 2}"), CHANGED, "reported", ""),
    (BAG + "equality: {quantum: {fare: 10}}\n", CHANGED, "hidden", "the events are equal"),
    (KINDS + PER_KEY, MASKED, "hidden", "its kind is left out"),
    ("order: total\n", PLACES, "reported", ""),
    (BAG, PLACES, "hidden", "their order is free"),
    (PER_KEY, PLACES, "unknown", GONE),
    (PER_KEY + known(), COPY, "explained", "by F"),
    (PER_KEY + known(), {**COPY, "kind": "extra"}, "reported", ""),
    *[(BAG + TABLES, one, "unknown", ONE_ROW) for one in LONE],
    (BAG + TABLES, kept("missing", RIDE), "reported", ""),
    (BAG, EXPORTED, "unknown", "only its place is kept; --brokers reads the record"),
]


@pytest.mark.parametrize(("rules", "report", "outcome", "why"), ALONE)
def test_what_becomes_of_one(rules: str, report: dict[str, Any], outcome: str, why: str) -> None:
    assert told(rules, report) == [(outcome, why)]


def test_a_missing_event_is_still_missing_unless_another_divergence_has_an_equal_one() -> None:
    missing, extra = kept("missing", RIDE), kept("extra", None, DEARER, number=2)
    assert told(BAG, missing, extra) == [("reported", ""), ("reported", "")]
    hidden = [("hidden", f"it is equal to the event of {other}") for other in ("d2", "d1")]
    assert told(BAG + IGNORING, missing, extra) == hidden
    assert {outcome for outcome, _ in told(PER_KEY + IGNORING, missing, extra)} == {"unknown"}


@pytest.mark.parametrize(
    ("missing", "extra", "outcomes"),
    [
        ([10], [10.5], ["hidden", "hidden"]),
        ([10], [99], ["reported", "reported"]),
        ([10, 10.6], [10.3, 9.6], ["hidden"] * 4),
        ([10, 10.6], [10.3, 10.2], ["hidden"] * 4),
        ([10, 10.6], [10.3, 99], ["hidden", "reported", "hidden", "reported"]),
    ],
)
def test_events_of_two_divergences_are_equal_within_the_tolerance_only(
    missing: list[float], extra: list[float], outcomes: list[str]
) -> None:
    tolerance = "identity: [taxi]\nequality: {tolerance: {fare: {abs: 0.5}}}\n"
    lacking = [kept("missing", {"taxi": 1, "fare": fare}, number=n) for n, fare in enumerate(missing, 1)]
    more = [kept("extra", None, {"taxi": 1, "fare": fare}, number=n) for n, fare in enumerate(extra, 5)]
    assert [outcome for outcome, _ in told(BAG + tolerance, *lacking, *more)] == outcomes


def test_what_could_be_paired_across_divergences_is_unknown() -> None:
    changed = kept("changed", {"taxi": 1, "fare": 2}, {"taxi": 2, "fare": 2})
    extra = kept("extra", None, {"taxi": 1, "fare": 9}, number=2)
    answers = told(BAG + IGNORING, changed, extra)
    assert answers[0] == ("unknown", "an event of it is equal to one of d2, and may be paired with it")
    assert answers[1][0] == "unknown"


def test_a_ceiling_holds_over_all_divergences_in_the_order_in_which_they_were_seen() -> None:
    three = [kept("missing", RIDE, number=number) for number in (3, 1, 2)]
    within, beyond = ("explained", "by F"), ("reported", "F covers it, beyond its ceiling")
    assert told(PER_KEY + known("{count: 2}"), *three) == [within, within, beyond]
    outcomes = [outcome for outcome, _ in told(PER_KEY + known("{share: 0.5}"), *three)]
    assert outcomes == ["explained", "unknown", "unknown"]


def test_a_place_under_a_ceiling_is_freed_by_another_rule_as_in_a_comparison() -> None:
    when = "divergences: [missing]"
    rules = "".join(
        f"- {{id: {name}, when: {{{when}{more}}}, owner: me, expires: 2099-01-01, ceiling: {{count: 1}}}}\n"
        for name, more in (("A", ""), ("B", ", where: {taxi: 1}"))
    )
    two = [kept("missing", {"taxi": taxi, "fare": 2}, number=taxi) for taxi in (1, 2)]
    assert [outcome for outcome, _ in told(f"{BAG}known_differences:\n{rules}", *two)] == ["explained"] * 2


def test_events_that_were_not_all_compared_are_unknown() -> None:
    ((outcome, why),) = told("order: {callable: tests.unit.offline.test_replay:failing}\n", CHANGED)
    assert (outcome, why.partition(":")[0]) == ("unknown", "not all of it was compared")


def failing(_one: Any, _other: Any) -> bool:
    raise ValueError


def test_a_rule_that_has_expired_by_the_time_of_the_record_is_judged_by_that_alone() -> None:
    report = {**kept("missing", RIDE), "first_seen": "2026-03-04T00:00:00Z"}
    rules = PER_KEY + known(expires="2026-03-01")
    assert told(rules, report)[0][0] == "unknown"
    day_ms = 86_400_000
    for at_ms, outcome in ((1_772_323_200_000 - 1, "explained"), (1_772_323_200_000 + day_ms, "reported")):
        records = {(LEFT, 0, 1): KeptRecord(orjson.dumps(RIDE), at_ms)}
        (answer,) = Replay(loads(HEAD + rules), records).answers(cases_of("kept", [report]))
        assert answer.outcome == outcome


@pytest.mark.parametrize(
    "value",
    [
        "‹text, 3 characters›",
        "abc… ‹cut: 9,000 characters›",
        "0.10000000000000000001",
        str(Decimal("1e400")),
        str(Decimal("-2.5e-400")),
        "nan",
        ["‹3 more›"],
    ],
)
def test_nothing_is_told_of_values_that_are_not_all_there(value: Any) -> None:
    report = kept("changed", {"taxi": 1, "x": value}, {"taxi": 1, "x": value, "fare": 3})
    assert told(BAG, report)[0][0] == "unknown"
    assert told(BAG + "equality: {ignore: [fare, x]}\n", report)[0][0] == "hidden"


def test_records_that_are_read_again_stand_for_the_values() -> None:
    masked = {"taxi": "‹number›", "fare": "‹number›"}
    report = {**kept("changed", masked, masked), "reference": None}
    records = {
        (LEFT, 0, 1): KeptRecord(b'{"taxi":1,"fare":2}', 5),
        (RIGHT, 0, 1): KeptRecord(b'{"taxi":1,"fare":3}', 5),
    }
    spec = loads(HEAD + BAG + IGNORING)
    (answer,) = Replay(spec, records).answers(cases_of("kept", [report]))
    assert answer.outcome == "hidden"
    (answer,) = Replay(spec, {**records, (RIGHT, 0, 1): None}).answers(cases_of("kept", [report]))
    assert answer.why == "Kafka does not have offset 1 of partition 0 of b any more"


SEEN_MS = 1_772_366_401_000
"""When the divergences of `kept` were first seen."""
OTHER = "Kafka has another record at offset 1 of partition 0 of a by now"
MAYBE = f"{OTHER}, or the new rules decode it differently"
AGAIN: list[tuple[Any, Any, int, str]] = [
    (RIDE, RIDE, 5, ""),
    (RIDE, RIDE, SEEN_MS + 2_000, ""),  # The clocks of the hosts differ a little.
    (RIDE, RIDE, SEEN_MS + 10_000, OTHER),
    (ABSENT, RIDE, SEEN_MS + 10_000, OTHER),
    (ABSENT, RIDE, 5, ""),
    (RIDE, DEARER, 5, MAYBE),
    (RIDE, {"taxi": 1}, 5, MAYBE),
    (RIDE, {**RIDE, "tip": 1}, 5, MAYBE),
    ({"$value": RIDE, "$key": "1"}, RIDE, 5, ""),
    ({"$value": RIDE, "$key": "1"}, DEARER, 5, MAYBE),
    ({"taxi": "‹number, #17173fdf›", "fare": 2}, RIDE, 5, ""),
    ({"taxi": "‹number, #17173fdf›", "fare": 3}, RIDE, 5, MAYBE),
    ({"taxi": 1, "fare": 2, "‹name, 1 characters, #17173fdf›": 1}, {**RIDE, "x": 2}, 5, ""),
    ({"taxi": 1, "x": "{}"}, {"taxi": 1, "x": {"y": 1}}, 5, ""),
    ({"taxi": 1, "x": [1, "‹2 more›"]}, {"taxi": 1, "x": [1, 2, 3]}, 5, ""),
    ({"taxi": 1, "x": [1, "‹2 more›"]}, {"taxi": 1, "x": [2, 2, 3]}, 5, MAYBE),
    ({"taxi": 1, "x": [1, 2]}, {"taxi": 1, "x": [1, 2, 3]}, 5, MAYBE),
    ({"taxi": 1, "x": {}}, {"taxi": 1, "x": None}, 5, MAYBE),
    ("‹not read again from Kafka›", RIDE, 5, ""),
]


@pytest.mark.parametrize(("value", "record", "at_ms", "why"), AGAIN)
def test_a_record_that_is_not_the_reported_one_is_recognised(
    value: Any, record: Any, at_ms: int, why: str
) -> None:
    report = kept("missing", value)
    if value is ABSENT:
        del report["reference"]
    records = {(LEFT, 0, 1): KeptRecord(orjson.dumps(record), at_ms)}
    (answer,) = Replay(loads(HEAD + BAG), records).answers(cases_of("kept", [report]))
    assert (answer.outcome, answer.why) == ("unknown" if why else "reported", why)


def test_what_is_no_event_under_the_new_rules_is_unknown() -> None:
    outcome, why = told(PER_KEY, kept("missing", {"fare": 2}))[0]
    assert outcome == "unknown"
    assert why.startswith("offset 1 of partition 0 of a is not an event under the new rules:")


@pytest.mark.parametrize(
    "odd",
    [
        {"id": 3},
        kept("missing", RIDE, first_seen="2026-03-01T12:00:00"),
        kept("missing", RIDE, positions={}),
        kept("missing", RIDE, positions={"reference": None}),
    ],
)
def test_what_is_no_divergence_is_named_by_its_line(odd: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"kept:2: is not a divergence of Twinstream"):
        cases_of("kept", [kept("missing", RIDE), odd])
