"""A receipt says what a verdict rests on and leaves out; its schema and its text are kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from loadtest.memory import ManualClock, MemorySource
from tests.support.statuses import START, coverage, diverged, partition, reset
from tests.support.streams import LEFT, RIGHT, record, spec
from twinstream.core.events import Side
from twinstream.explain.receipts.exclusions import exclusions
from twinstream.explain.receipts.markdown import markdown
from twinstream.explain.receipts.receipt import (
    Gate,
    Receipt,
    receipt_of_answer,
    receipt_of_status,
    schema_text,
)
from twinstream.offline.bounded import BoundedCheck
from twinstream.offline.check import check
from twinstream.offline.offset_range import Edge
from twinstream.ports import Line
from twinstream.spec.load import loads
from twinstream.status.common import Sides
from twinstream.status.comparison import Hole, Position
from twinstream.status.groups import Group

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "unit" / "golden"
KEPT = ROOT / "docs" / "receipt.schema.json"
SCHEMA = Draft202012Validator(json.loads(schema_text()))
FILE = """
version: 1
name: rides
reference: {topic: rides.v1, version: "1.8.2"}
candidate: {topic: rides.v2, version: "1.9.0"}
kinds: {heartbeat: {where: {type: hb}, ignore: true}, refund: {where: {type: refund}}, ride: {}}
order: {per_key: [taxi]}
identity: [ride]
equality:
  ignore: [processed_at]
  quantum: {fare: 0.01}
  unordered: [stops]
  sets: [tags]
  absent_is_null: true
  tolerance: {eta: {abs: 0.5, rel: 0.1}}
  per_kind: {refund: {compare_only: [taxi, ride, type]}}
evidence: {may_be_absent: [refund]}
undecodable: {budget: 3}
decode: {tombstones: ignore}
known_differences:
  - id: PRICE-17
    when: {divergences: [changed], where: {country: FR}, fields: [fare]}
    owner: data-platform
    expires: 2026-12-31
    ceiling: {count: 1000}
    ticket: OPS-9
  - id: LATE
    when: {divergences: [missing, extra]}
    owner: night|shift
    expires: 2026-12-31
    ceiling: {share: 0.01}
"""
SPEC = loads(FILE)
GATE = Gate(answer="fail", reason="The outputs differ.")


def lines(values: Iterable[tuple[Side, bytes]]) -> list[Line]:
    return [Line(side, value, 0, 0, 0, "f", 1, 1) for side, value in values]


def of_service() -> Receipt:
    """A comparison that has diverged, with a hole and a reset."""
    place = Position(topic="ads.reference", partition=0, offset=17)
    of = diverged(
        holes=[Hole(reason="Kafka has lost | offsets <b>", side="reference", position=place, seen_at=START)],
        hole_count=3,
        resets=[reset()],
        reset_count=1,
        progress=Sides(reference=[partition(0, 520), partition(1, 480)], candidate=[partition(0, 999)]),
        verified_up_to=Sides[dict[str, int]](reference={"0": 500, "1": 480}, candidate={"0": 990}),
        explained_by_rule={"PRICE-17": 1000, "LATE": 0},
    )
    return receipt_of_status(of, GATE, exclusions(SPEC), START + timedelta(hours=1), "twinstream 9.9.9")


def source_of(rides: int) -> MemorySource:
    """Two topics of so many rides, one a second; the candidate writes a little later."""
    source = MemorySource()
    for side, delay in ((LEFT, 0), (RIGHT, 300)):
        for n in range(rides):
            value = {"taxi": 7, "ride": n, "fare": n / 2, "discount": None, "processed_at": delay}
            source.append(side, 0, record(value), 1000 * n + delay)
    return source


def of_check() -> Receipt:
    """Two topics between two times, compared once."""
    begin, end = (datetime.fromtimestamp(second, UTC) for second in (10, 50))
    return of_range(source_of(60), begin, end)


def of_range(source: MemorySource, begin: Edge, end: Edge) -> Receipt:
    bounded = BoundedCheck(SPEC, source, begin, end, timedelta(seconds=2), ManualClock())
    answer = bounded.run(iter, open_ended=False, allow_empty=False, evidence=False)
    return receipt_of_answer(answer, SPEC, START, "twinstream 9.9.9")


def test_the_schema_that_is_kept_is_the_one_of_the_model() -> None:
    command = "python -m twinstream.explain.receipts.receipt > docs/receipt.schema.json"
    assert KEPT.read_text(encoding="utf-8") == schema_text(), f"run `{command}`"
    Draft202012Validator.check_schema(json.loads(schema_text()))


@pytest.mark.parametrize(("name", "make"), [("service", of_service), ("check", of_check)])
def test_a_receipt_is_valid_and_read_again_as_it_was_and_its_text_is_the_one_that_is_kept(
    name: str, make: Any
) -> None:
    receipt: Receipt = make()
    assert markdown(receipt) == (GOLDEN / f"receipt-{name}.md").read_text(encoding="utf-8")
    data = json.loads(receipt.model_dump_json())
    SCHEMA.validate(data)
    assert Receipt.model_validate_json(orjson.dumps(data)) == receipt
    assert not SCHEMA.is_valid({**data, "verdict": "FINE"})
    assert not SCHEMA.is_valid({name: member for name, member in data.items() if name != "exclusions"})


def test_of_a_file_that_is_strict_only_what_no_rule_can_compare_is_listed() -> None:
    head = FILE.split("kinds:", maxsplit=1)[0]
    strict = loads(f"{head}order: total\non_divergence: halt\nduplicates: {{policy: replays}}")
    assert [one.key for one in exclusions(strict)] == ["decode", "duplicates", "on_divergence"]


@pytest.mark.parametrize(
    ("order", "told"),
    [
        ("{per_key: [k]}", "record keys, headers and timestamps"),
        ("{per_key: [$key]}", "headers, timestamps and partitions"),
        ("{per_key: [$headers.a, $timestamp, $partition]}", "record keys and other headers"),
        ("{per_key: [$key, $headers.a, $timestamp, $partition]}", "other headers"),
    ],
)
def test_the_parts_of_a_record_that_no_rule_names_are_listed(order: str, told: str) -> None:
    head = FILE.split("kinds:", maxsplit=1)[0]
    names = [one.name for one in exclusions(loads(f"{head}order: {order}\n")) if one.key == "decode"]
    assert names == [told]


def test_what_lies_before_a_start_is_listed() -> None:
    head = FILE.split("kinds:", maxsplit=1)[0]

    def told(start: str) -> list[tuple[str, str]]:
        file = f"{head}kinds: {{b: {{where: {{t: b}}}}, e: {{}}}}\norder: {{barrier: b, inner: unordered}}\n"
        found = exclusions(loads(f"{file}start: {start}\n"))
        return [(one.name, one.hides) for one in found if one.key == "start"]

    assert told("earliest") == []
    for start in ("{at: event_time, field: ts, from: 2026-01-01T00:00:00Z, warm_up: 1h}", "barrier"):
        assert told(start) == [("events before the start", "all of them")]


def test_that_rows_were_replaced_is_listed_and_counted() -> None:
    head = FILE.split("kinds:", maxsplit=1)[0]
    rows = loads(f"{head}order: unordered\nemits: {{upsert: {{key: [k], settled_by: input}}}}")
    values = [(side, record({"k": 1, "v": value})) for side, value in ((LEFT, 1), (LEFT, 2), (RIGHT, 2))]
    receipt = receipt_of_answer(check(rows, lines(values)), rows, START, "t")
    assert receipt.verdict == "EQUIVALENT"
    assert [(one.name, one.hides) for one in receipt.exclusions if one.key == "emits.upsert"] == [
        ("replaced rows", "all rows of a key before its last")
    ]
    assert "| superseded | 1 | 0 |" in markdown(receipt)


def test_where_nothing_matched_a_known_difference_has_no_share() -> None:
    nothing = receipt_of_status(diverged(matched=0), GATE, exclusions(SPEC), START, "t")
    assert [(rule.hits, rule.share) for rule in nothing.known_differences] == [(0, None), (0, None)]


def test_a_receipt_of_a_check_tells_what_its_known_differences_have_explained() -> None:
    ride = {"taxi": 7, "ride": 1, "country": "FR"}
    values = [(LEFT, record({**ride, "fare": 10})), (RIGHT, record({**ride, "fare": 11}))]
    receipt = receipt_of_answer(check(SPEC, lines(values)), SPEC, START, "t")
    assert receipt.verdict == "EQUIVALENT"
    assert [(rule.id, rule.hits) for rule in receipt.known_differences] == [("PRICE-17", 1), ("LATE", 0)]
    assert "| PRICE-17 | 1 | - | 1,000 | data-platform, OPS-9 | 2026-12-31 |" in markdown(receipt)


def test_how_many_events_were_looked_at_is_said_once() -> None:
    notes = ["`items` never varied", "fields and keys were looked at in 1,000 of 9,000 events"]
    seen = coverage().model_copy(update={"notes": notes})
    text = markdown(receipt_of_status(diverged(coverage=seen), GATE, exclusions(SPEC), START, "t"))
    assert "- not tested: `items` never varied\n" in text
    assert text.count("fields and keys were looked at in") == 1


def test_a_receipt_of_a_check_lists_its_own_holes() -> None:
    source = source_of(9)
    source.retain(LEFT, 0, 3)
    receipt = of_range(source, "earliest", "latest")
    assert (receipt.verdict, receipt.hole_count) == ("INCONCLUSIVE", 1)
    assert receipt.holes[0].position == Position(topic="rides.v1", partition=0, offset=3)
    assert "- hole: Kafka no longer has anything below offset 3" in markdown(receipt)
    assert "No hole" not in markdown(receipt)


def test_no_value_of_an_event_is_in_a_receipt() -> None:
    values = [(side, record({"taxi": "secret-key", "ride": f"secret-{side}"})) for side in Side]
    answer = check(SPEC, lines(values))
    assert (answer["verdict"], "secret" in json.dumps(answer)) == ("DIVERGED", True)
    receipt = receipt_of_answer(answer, SPEC, START, "t")
    assert "secret" not in receipt.model_dump_json() + markdown(receipt)


def test_what_a_file_calls_itself_is_no_markup() -> None:
    text = markdown(of_service())
    assert "<b>" not in text.replace("\\<b\\>", "")
    for line in text.splitlines():
        if line.startswith("| `known_differences`"):
            assert line.replace("\\|", "").count("|") == 6


def test_no_part_of_a_receipt_is_acted_upon_by_a_terminal() -> None:
    of = diverged(
        reason="all in `a\x1b[2J`", resets=[reset(by="ann\x1b", reason="\0\x9b31m\u202e")], reset_count=1
    )
    text = markdown(receipt_of_status(of, None, exclusions(SPEC), START, "t"))
    assert text.replace("\n", "").isprintable()
    for told in (r"all in `a\x1b[2J`", r"by ann\x1b, when", r": \x00\x9b31m\u202e"):
        assert told in text


def test_a_receipt_sums_up_the_differences_with_ids_and_without_values() -> None:
    file = spec("{per_key: [taxi]}", "identity: [ride]\nmaps: [fares]\n")
    changed = [
        (side, record({"taxi": "secret-key", "ride": ride, "to": to, "fares": {"secret-name": ride + side}}))
        for ride in range(8)
        for side, to in ((LEFT, f"secret-{ride}"), (RIGHT, "secret-constant"))
    ]
    answer = check(file, lines(changed))
    receipt = receipt_of_answer(answer, file, START, "t")
    (group,) = receipt.groups
    assert (group.count, group.fields, group.keys) == (8, ["fares.*", "to"], 1)
    text = markdown(receipt)
    assert "- 8 changed, all in `fares.*` and `to`; 1 key; `fares.*`: value + 1 in 100 %; " in text
    assert f"For example `{answer['examples'][0]['id']}`" in text
    assert "secret" in json.dumps(answer["groups"])
    assert "secret" not in receipt.model_dump_json() + text


def test_a_receipt_of_a_service_has_the_groups_of_its_status() -> None:
    found = Group(
        kind="missing", fields=[], count=12, examples=["5f0c"], text="12 missing.", cause="All are here."
    )
    text = markdown(receipt_of_status(diverged(groups=[found]), GATE, exclusions(SPEC), START, "t"))
    assert "- 12 missing from the candidate. All are here. For example `5f0c`.\n" in text
