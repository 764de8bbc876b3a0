"""What `overdue` declares, compiled."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf, nan
from pathlib import Path

import pytest

from twinstream.core.clocks.event_time import EventTime
from twinstream.core.overdue.points import Input
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.clocks import clock_of
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.decode.formats.jsontext import decode
from twinstream.spec.decode.times import UNITS, milliseconds
from twinstream.spec.load import digest, loads

HEAD = """\
version: 1
name: test
reference: {topic: r, version: "1"}
candidate: {topic: c, version: "2"}
order: unordered
"""
TIMES = Path(__file__).with_name("times.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("claim", TIMES)
def test_a_time_is_a_number_of_units_or_a_text_and_is_rounded_up(claim: str) -> None:
    value, unit, _, expected = claim.encode().rsplit(b" ", 3)
    assert milliseconds(decode(value), UNITS[unit.decode()]) == decode(expected)


@pytest.mark.parametrize("value", [nan, inf])
def test_what_is_no_finite_number_is_no_time(value: float) -> None:
    assert milliseconds(value, UNITS["ms"]) is None


def test_the_clock_of_event_time_reads_its_field_also_inside_an_envelope() -> None:
    more = "overdue: {clock: event_time, field: meta.at, unit: s, after: 7s, max_jump: 2m, idle_after: 9s}\n"
    spec = loads(HEAD + more)
    clock = clock_of(spec, Codec(spec))
    assert isinstance(clock, EventTime)
    assert clock[1:] == (7000, 120_000, 9.0)
    assert clock.time_of(b'{"meta":{"at":3}}') == 3000
    assert clock.time_of(b'{"meta":3}') is None


def test_the_clock_of_the_input_reads_marks_and_ends_of_windows() -> None:
    spec = loads(HEAD + "control: said\noverdue: {clock: input, window_end: end}\n")
    clock = clock_of(spec, Codec(spec))
    assert isinstance(clock, Input)
    assert clock.place_of("a:b:0:17") == ("a:b", 0, 17)
    assert clock.place_of("17") is None
    assert clock.window_end_of is not None
    assert clock.window_end_of(b'{"end":"1970-01-01T00:00:01Z"}') == 1000


def test_on_kafkas_clock_and_offline_no_time_is_read() -> None:
    for more in ("", "overdue: {clock: event_time, field: at}\n"):
        spec = loads(HEAD + more)
        assert rules_of(spec, Codec(spec), running_at=datetime.now(UTC)).passing is None
    assert rules_of(loads(HEAD), Codec(loads(HEAD))).passing is None


def test_the_digest_is_of_what_the_clock_uses() -> None:
    plain = digest(loads(HEAD))
    assert digest(loads(HEAD + "overdue: {max_jump: 5s, idle_after: 1s, unit: s}")) == plain
    timed = HEAD + "overdue: {clock: event_time, field: at"
    found = {
        digest(loads(timed + more)) for more in ("}", ", unit: s}", ", max_jump: 5s}", ", idle_after: 1s}")
    }
    assert len(found | {plain}) == 5
    said = HEAD + "control: said\noverdue: {clock: input"
    found = {digest(loads(said + more)) for more in ("}", ", unit: s}", ", window_end: end}")}
    assert len(found) == 3
