"""Why a record is no event is told without anything that it holds."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest

from tests.support.streams import LEFT, RIGHT, Batch, Driver, spec
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Side
from twinstream.errors import DecodeError
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.cut import cut_of

HIDDEN = "zqhidden"
NUMBER = 918273645
WITHIN = "{dependent: [{pair: [event, event], within: {field: ts, less_than: 1}}]}"
JSON = [
    f"{HIDDEN} is no JSON",
    f'{{"k": "{HIDDEN}"',
    f'{{"k": "{HIDDEN}\\q"}}',
    f'{{"k": 1, "{HIDDEN}": 1, "{HIDDEN}": 2}}',
    f'{{"k": "{HIDDEN}", "ts": "{HIDDEN}"}}',
    f'{{"k": "{HIDDEN}", "ts": [{NUMBER}]}}',
    f'{{"k": 1, "ts": {NUMBER}e{NUMBER}}}',
    f'{{"k": 1, "ts": {NUMBER}e99999999999{NUMBER}}}',
    f'{{"{HIDDEN}": {NUMBER}}}',
    f'{{"k": "{HIDDEN}\\ud800", "ts": 1}}',
    f'{{"k": {"[" * 200}{NUMBER}{"]" * 200}, "ts": 1}}',
    f'["{HIDDEN}"]',
    f'{{"k": {NUMBER}, "ts": NaN}}',
]
PACKED = [
    msgpack.packb({"k": HIDDEN, "ts": HIDDEN}),
    msgpack.packb({HIDDEN: NUMBER}),
    msgpack.packb({HIDDEN.encode(): 1}),
    msgpack.packb({"k": {NUMBER: 1}}),
    msgpack.packb([HIDDEN])[:-1],
    b"\x82" + msgpack.packb(HIDDEN) + b"\x01" + msgpack.packb(HIDDEN) + b"\x02",
    b"\xa9" + HIDDEN.encode() + b"\xff",
]


def reason(codec: Codec, record: bytes) -> str:
    with pytest.raises(DecodeError) as told:
        codec.form(record)
    return str(told.value)


def tells_nothing(told: str) -> bool:
    return HIDDEN not in told and str(NUMBER) not in told


@pytest.mark.parametrize("order", ["{per_key: [k, ts]}", WITHIN])
@pytest.mark.parametrize("record", JSON)
def test_of_json(order: str, record: str) -> None:
    _, refused = Codec(spec(order)).forms([record.encode("utf-8", "surrogatepass")])
    assert all(tells_nothing(one.reason or "") for one in refused)


@pytest.mark.parametrize("record", PACKED)
def test_of_messagepack(record: bytes) -> None:
    assert tells_nothing(reason(Codec(spec(WITHIN, "decode: {format: msgpack}")), record))


@pytest.mark.parametrize("member", [HIDDEN, [NUMBER], {HIDDEN: 1}, NUMBER, True])
@pytest.mark.parametrize("start", ["2026-01-01T00:00:00Z", 5])
def test_of_a_time_that_tells_what_lies_before_the_start(member: Any, start: Any) -> None:
    made = spec("unordered", f"start: {{at: event_time, field: ts, from: {json.dumps(start)}}}")
    codec = Codec(made)
    cut = cut_of(made, codec)
    assert cut is not None
    cut.begin({side: {0: 0} for side in Side})
    forms, _ = codec.forms([json.dumps({"ts": member}).encode()])
    passed = cut.take(LEFT, Run(forms, 0, [0], [0], 0.0))
    assert all(tells_nothing(told) for _, told in passed.refused)


def test_of_kinds_and_functions() -> None:
    kinds = "kinds: {a: {where: {type: a}}}"
    assert tells_nothing(reason(Codec(spec("unordered", kinds)), f'{{"type": "{HIDDEN}"}}'.encode()))
    driver = Driver(spec('{callable: "tests.unit.explain.test_reason:leaking"}'))
    for side in (LEFT, RIGHT):
        driver.take([Batch(side, [f'{{"k": "{HIDDEN}", "n": {int(side)}}}'.encode()])], review=False)
    (hole,) = driver.comparison.holes
    assert "failed with ValueError in line" in hole.reason
    assert tells_nothing(hole.reason)


def leaking(one: object, other: object) -> bool:
    raise ValueError(f"{one} and {other}")
