from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from twinstream.adapters.files.jsonl import JSON, LineShape, read_pair, read_side, read_trace
from twinstream.adapters.files.lines import InputFile
from twinstream.core.canonical import canonical, parse
from twinstream.core.events import Side
from twinstream.errors import InputError
from twinstream.ports import Line
from twinstream.spec.decode.formats.envelope import opened

LEFT, RIGHT = Side


def write(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


def traced(path: Path, *lines: str, shapes: Mapping[Side, LineShape] = JSON) -> list[Line]:
    return list(read_trace(InputFile(write(path, *lines)), shapes))


def refusal(path: Path, *lines: str) -> str:
    with pytest.raises(InputError) as caught:
        traced(path, *lines)
    return str(caught.value).removeprefix(f"{path}")


def test_a_trace_line_is_an_event_or_the_end_of_a_side(trace: Path) -> None:
    lines = traced(trace, '{"side":"reference","value":{"a":1}}', '{"side":"candidate","end":true}')
    assert [(line.side, line.record) for line in lines] == [(LEFT, b'{"a":1}'), (RIGHT, None)]


def test_offsets_count_on_in_their_partition_unless_a_line_names_one(trace: Path) -> None:
    event = '{"side":"reference","value":1}'
    third = '{"side":"reference","value":1,"partition":3}'
    named = '{"side":"reference","value":1,"partition":3,"offset":7,"timestamp_ms":9}'
    lines = traced(trace, event, event.replace("reference", "candidate"), third, named, third, event)
    places = [(0, 0), (0, 0), (3, 0), (3, 7), (3, 8), (0, 1)]
    assert [(line.partition, line.offset) for line in lines] == places
    assert lines[3].timestamp_ms == 9


@pytest.mark.parametrize(
    "value", ["0.10000000000000000001", "123456789012345678901234567890", '"é\\u0000"', "-0.0", "null"]
)
def test_the_value_of_a_trace_line_keeps_its_meaning(trace: Path, value: str) -> None:
    (line,) = traced(trace, f'{{"side":"reference","value":{value}}}')
    assert line.record is not None
    assert canonical(parse(line.record)) == canonical(parse(value.encode()))


@pytest.mark.parametrize(
    "value",
    [
        '{"a":1,"a":2}',
        '{"a": NaN }',
        "[-Infinity]",
        '"\\ud800"',
        "[" * 129 + "]" * 129,
        "1e99999999999999999999",
    ],
)
def test_a_value_that_cannot_be_read_is_a_record_as_it_stands(trace: Path, value: str) -> None:
    (line,) = traced(trace, f'{{"timestamp_ms" : 7, "value":{value} , "side":"candidate"}}')
    assert (line.record, line.side, line.timestamp_ms) == (value.encode(), RIGHT, 7)


@pytest.mark.parametrize("value", ["1", "1e0"])
def test_a_long_time_is_read_however_the_value_beside_it_is_spelt(trace: Path, value: str) -> None:
    nanoseconds = 1_700_000_000_000_000_001
    (line,) = traced(trace, f'{{"side":"reference","value":{value},"timestamp_ms":{nanoseconds}}}')
    assert line.timestamp_ms == nanoseconds


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"side":"reference","side":"candidate","value":1}', ":1: a member stands twice in one object"),
        ('{"side":"reference","value":1,"key":NaN}', ":1: NaN is not a JSON number"),
        ('{"side":"reference","value":NaN,"key":NaN}', ":1: NaN is not a JSON number"),
        ('{"side":"reference","value":NaN} 1', ":1: NaN is not a JSON number"),
        ('{"side":"reference","value":NaN', ":1: "),
        ('{"side":"reference","value":nonsense}', ":1: not JSON: "),
        ('{"side" "reference","value":NaN}', ":1: not JSON: "),
        ("[NaN]", ":1: NaN is not a JSON number"),
    ],
)
def test_a_line_around_a_value_must_be_json_all_the_same(trace: Path, line: str, message: str) -> None:
    assert refusal(trace, line).startswith(message)


def test_a_text_in_utf8_that_cannot_be_read_is_a_line_that_is_none(trace: Path) -> None:
    with pytest.raises(InputError, match="half of a surrogate pair"):
        traced(trace, '{"side":"reference","value":"\\ud800"}', shapes=dict.fromkeys(Side, LineShape("utf8")))


ONE_OF = ':1: needs exactly one of "value", "value_base64" and "end": true'
SHAPE = ':1: a line of a trace is {"side": "reference" or "candidate", "value": …}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", ":1: not JSON: Expecting property name enclosed in double quotes at character 1"),
        ("5", SHAPE),
        ('{"value":1}', SHAPE),
        ('{"side":"left","value":1}', SHAPE),
        ('{"side":["reference"],"value":1}', SHAPE),
        ('{"side":null,"value":1}', SHAPE),
        ('{"side":"reference"}', ONE_OF),
        ('{"side":"reference","end":false}', ONE_OF),
        ('{"side":"reference","end":true,"value":1}', ONE_OF),
        ('{"side":"reference","value_base64":"","value":1}', ONE_OF),
        ('{"side":"reference","end":1,"value":1}', ':1: "end" can only be true, but is 1'),
        ('{"side":"reference","vlaue":1}', ":1: 'vlaue' is not a member of a trace line; known are"),
        ('{"side":"reference","value":1,"offset":-1}', ':1: "offset" must be a whole number from 0 to'),
        (f'{{"side":"reference","value":1,"offset":{1 << 63}}}', ':1: "offset" must be a'),
        ('{"side":"reference","value":1,"offset":-1e99999999}', ':1: "offset" must be a'),
        ('{"side":"reference","value":1,"partition":1e999999999}', ':1: "partition" must be a whole number'),
        ('{"side":"reference","value":1,"partition":true}', ':1: "partition" must be a whole number'),
        ('{"side":"reference","value":1,"partition":2147483648}', ':1: "partition" must be a whole number'),
        ('{"side":"reference","value":1,"timestamp_ms":1.5}', ':1: "timestamp_ms" must be a whole number'),
        ('{"side":"reference","value":1,"headers":{"a":1}}', ':1: "headers" must be an object of texts'),
        ('{"side":"reference","value_base64":"%%"}', ':1: "value_base64" must be a text in base64 or null, '),
        ('{"side":"reference","value_base64":5}', ':1: "value_base64" must be a text in base64 or null, but'),
        ('{"side":"reference","value":1,"headers":"a"}', ':1: "headers" must be an object of texts'),
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_refused_with_file_and_line(trace: Path, line: str, message: str) -> None:
    assert refusal(trace, line).startswith(message)


@pytest.mark.parametrize(
    ("interleave", "order"),
    [("alternate", "RCRCC"), ("reference-first", "RRCCC"), ("candidate-first", "CCCRR")],
)
def test_two_files_are_one_stream(tmp_path: Path, interleave: str, order: str) -> None:
    reference = write(tmp_path / "r.jsonl", "1", "", "2")
    candidate = write(tmp_path / "c.jsonl", "1", "2", "3")
    lines = list(read_pair(InputFile(reference), InputFile(candidate), interleave))
    assert "".join("RC"[line.side] for line in lines) == order
    assert [line.position for line in lines] == [1, 2, 3, 4, 5]
    assert [line.number for line in lines if line.side is LEFT] == [1, 3]
    assert [line.offset for line in lines if line.side is RIGHT] == [0, 1, 2]


BINARY = dict.fromkeys(Side, LineShape("msgpack"))
WHOLE = dict.fromkeys(Side, LineShape("json", whole=True))


def test_a_record_that_is_no_json_is_written_in_base64(tmp_path: Path) -> None:
    raw = base64.b64encode(b"\x81\xa1a\x01").decode()
    (event,) = traced(tmp_path / "t", f'{{"side":"reference","value_base64":"{raw}"}}', shapes=BINARY)
    file = InputFile(write(tmp_path / "f", f'{{"value_base64":"{raw}","partition":2,"offset":5,"key":"k"}}'))
    (line,) = read_side(file, RIGHT, BINARY[RIGHT])
    assert event.record == line.record == b"\x81\xa1a\x01"
    assert (line.partition, line.offset) == (2, 5)


def test_a_record_without_a_value_is_a_tombstone_and_no_end(trace: Path) -> None:
    empty, gone, end = traced(
        trace,
        '{"side":"reference","value_base64":""}',
        '{"side":"reference","value_base64":null}',
        '{"side":"reference","end":true}',
    )
    assert (empty.record, empty.tombstone) == (b"", False)
    assert (gone.record, gone.tombstone) == (None, True)
    assert (end.record, end.tombstone) == (None, False)


def test_a_value_in_utf8_is_a_json_text(tmp_path: Path) -> None:
    (line,) = read_side(InputFile(write(tmp_path / "f", '"a\\n\u00fc"')), LEFT, LineShape("utf8"))
    assert line.record == "a\nü".encode()


@pytest.mark.parametrize(
    ("form", "line", "message"),
    [
        ("utf8", "5", ":1: a value in the format utf8 is a JSON text, but here it is 5"),
        ("utf8", "abc", ":1: not JSON: "),
        ("avro", '{"a":1}', ':1: a line of records in the format avro is {"value_base64": "…"}'),
        ("avro", "5", ':1: a line of records in the format avro is {"value_base64": "…"}'),
        ("bytes", '{"value_base64":"","x":1}', ":1: 'x' is not a member of a line; known are value_base64"),
    ],
)
def test_a_line_in_the_wrong_form_is_refused(tmp_path: Path, form: str, line: str, message: str) -> None:
    file = write(tmp_path / "f", line)
    with pytest.raises(InputError) as caught:
        list(read_side(InputFile(file), LEFT, LineShape(form)))
    assert str(caught.value).removeprefix(file).startswith(message)


def test_a_trace_cannot_hold_a_binary_record_as_a_value(trace: Path) -> None:
    with pytest.raises(
        InputError, match='in the format msgpack is written as "value_base64", not as "value"'
    ):
        traced(trace, '{"side":"reference","value":1}', shapes=BINARY)


def test_a_whole_record_has_key_headers_time_and_partition(trace: Path) -> None:
    members = '"value":1,"partition":3,"timestamp_ms":9,"key":"ü","headers":{"a":"1","b":""}'
    plain, number, named, gone = traced(
        trace,
        '{"side":"reference","value":1,"key":null}',
        '{"side":"reference","value":1,"key":7}',
        f'{{"side":"reference",{members}}}',
        '{"side":"reference","value_base64":null,"key":"k"}',
        shapes=WHOLE,
    )
    found = [(line.partition, line.timestamp_ms, line.tombstone) for line in (named, gone)]
    assert found == [(3, 9, False), (0, 0, False)]
    assert opened(plain.record or b"") == (0, -1, None, [], b"1")
    assert opened(number.record or b"").key == b"7"
    assert opened(named.record or b"") == (3, 9, "ü".encode(), [["a", b"1"], ["b", b""]], b"1")
    assert opened(gone.record or b"") == (0, -1, b"k", [], None)


def test_values_alone_are_refused_where_the_comparison_asks_for_more(tmp_path: Path) -> None:
    file = write(tmp_path / "f", "1")
    with pytest.raises(InputError, match="holds values alone, but the comparison names more of a record"):
        list(read_side(InputFile(file), LEFT, WHOLE[LEFT]))
