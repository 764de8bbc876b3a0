"""The JSON Schema says what loading says about the shape of a file."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.support.refusals import HEAD
from twinstream.errors import SpecError
from twinstream.spec.file.schema import comparison_schema, text
from twinstream.spec.file.source import read_source
from twinstream.spec.load import loads

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "docs" / "comparison.schema.json"
CASES = sorted((ROOT / "tests" / "cases").glob("*/spec.yaml"))
SCHEMA = Draft202012Validator(comparison_schema())

EVERYTHING = f"""\
{HEAD}decode: {{format: json, tombstones: ignore}}
kinds:
  end_of_month: {{where: {{type: [eom, 1, true, null]}}}}
  end_of_day: {{where: {{type: eod}}}}
  heartbeat: {{where: {{type: hb}}, ignore: true}}
  gps: {{where: {{type: gps}}}}
  ride: {{}}
emits: append
order:
  barrier: [end_of_month]
  copies: per_partition
  inner:
    by_key: [region]
    inner:
      barrier: end_of_day
      inner:
        parallel:
          positions: {{kinds: [gps], order: {{per_key: [taxi]}}}}
          rides:
            kinds: [ride]
            order:
              dependent:
              - [ride, ride]
              - {{pair: [ride, '*'], same: [taxi], within: {{field: ts, less_than: 0.5}}}}
equality:
  ignore: [processed_at]
  quantum: {{fare: 0.01}}
  tolerance: {{eta: {{abs: 0.5, rel: '0.001'}}}}
  unordered: [stops]
  sets: [tags]
  absent_is_null: false
  per_kind: {{gps: {{compare_only: [region, taxi, type, id]}}}}
identity: [id]
show: [fare]
start: {{at: earliest}}
duplicates: {{policy: replays, horizon: 3}}
overdue: {{clock: arrival, after: 60s, proves: false}}
evidence: {{matched: 10, seconds: 1.5, may_be_absent: [gps]}}
undecodable: {{budget: 3}}
gate: {{max_staleness: 5m}}
on_divergence: halt
limits: {{unmatched_events: 10, unmatched_bytes: 2GiB, lead: 90, scope_events: 32, kept_divergences: 1}}
known_differences:
- id: PRICE-17
  when: {{divergences: [changed], where: {{country: [FR, null]}}, fields: [fare]}}
  owner: data-platform
  expires: 2026-12-31
  ceiling: {{share: 0.5}}
  ticket: T-1
"""
FORMATS = [
    "{format: avro, schema_file: ride.avsc}",
    "{format: protobuf, schema_file: ride.desc, message: ads.Ride}",
    "{format: protobuf, registry: 'https://registry:8081'}",
    "{format: msgpack}",
]
SHORT = [
    "start: earliest",
    "kinds: {a: {where: {x: 1}}, b: {}}\norder: {barrier: a, inner: total}\nstart: barrier",
    "start: {at: event_time, field: ts, from: 2026-01-01T00:00:00Z, warm_up: 10m}",
    "start: {at: event_time, field: ts, from: 1.5, warm_up: 3}",
    "start: {at: offsets, reference: {'0': 5, '1': 0}, candidate: {'0': 2}}",
    "kinds: {a: {where: {x: 1}}, b: {}}\norder: {dependent: [{pair: [a, b], same: [{user: user_id}]}]}",
    "kinds: {a: {where: {x: 1}}, b: {}}\norder: {dependent: [{pair: [a, b], same: [{first: x, second: y}]}]}",
    "order: {callable: 'a.b:c'}",
    "order: {dependent: [{pair: [event, event], same: [x], before: null}]}",
]


def data(text: str) -> Any:
    return read_source(text, "ads.yaml").data


def test_the_schema_that_is_kept_is_the_one_of_the_model() -> None:
    command = "python -m twinstream.spec.file.schema > docs/comparison.schema.json"
    assert KEPT.read_text(encoding="utf-8") == text(), f"renew it: {command}"


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(comparison_schema())


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.parent.name)
def test_a_recorded_case_fits_unless_its_file_is_refused(file: Path) -> None:
    expected = json.loads(file.with_name("expected.json").read_text(encoding="utf-8"))["expect"]
    if expected.get("exit_code") != 2:
        SCHEMA.validate(data(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        EVERYTHING,
        *(f"{HEAD}order: total\ndecode: {decode}" for decode in FORMATS),
        *(f"{HEAD}{more}" if "order:" in more else f"{HEAD}order: total\n{more}" for more in SHORT),
    ],
)
def test_what_loads_fits(text: str) -> None:
    loads(text)
    SCHEMA.validate(data(text))


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every key."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(node, dict):
            yield (*at, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*at, key))


def misspelt(whole: Any, at: tuple[Any, ...]) -> Any:
    whole = copy.deepcopy(whole)
    node = whole
    for part in at[:-1]:
        node = node[part]
    node[f"{at[-1]}x"] = node.pop(at[-1])
    return whole


def test_a_misspelt_key_fits_nowhere() -> None:
    whole = data(EVERYTHING)
    refused = 0
    for at in places(whole):
        wrong = misspelt(whole, at)
        try:
            loads(yaml.safe_dump(wrong, allow_unicode=True, sort_keys=False))
        except SpecError as error:
            if "is not a key of this mapping" in str(error) or "is not an order" in str(error):
                refused += 1
                assert not SCHEMA.is_valid(wrong), at
    assert refused > 80


@pytest.mark.parametrize(
    "more",
    [
        "order: sorted",
        "order: {}",
        "order: {per_key: []}",
        "order: {per_key: [a..b]}",
        "order: {per_key: [a], inner: total}",
        "order: {barrier: a}",
        "order: {dependent: [[a]]}",
        "order: {dependent: [{pair: [a, b], same: [{first: x}]}]}",
        "order: total\nkinds: {a: {where: {x: {}}}}",
        "order: total\nequality: {quantum: {x: 0}}",
        "order: total\nequality: {quantum: {x..y: 1}}",
        "order: total\noverdue: {after: soon}",
        "order: total\nlimits: {unmatched_bytes: big}",
        "order: total\ndecode: {format: xml}",
        "order: total\nstart: latest",
        "order: total\nemits: upsert",
        "equality: {}",
    ],
)
def test_a_wrong_shape_fits_as_little_as_it_loads(more: str) -> None:
    with pytest.raises(SpecError):
        loads(HEAD + more)
    assert not SCHEMA.is_valid(data(HEAD + more))


def test_every_key_is_described() -> None:
    schema = comparison_schema()
    for name, model in {"Spec": schema, **schema["$defs"]}.items():
        for key, member in model.get("properties", {}).items():
            assert member.get("description"), f"{name}.{key}"
