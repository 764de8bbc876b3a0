from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from twinstream.adapters.jsonl import read_pair, read_trace
from twinstream.core.canonical import canonical, parse
from twinstream.core.events import Side
from twinstream.errors import InputError

LEFT, RIGHT = Side


def write(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


def refusal(path: Path, *lines: str) -> str:
    file = write(path, *lines)
    with pytest.raises(InputError) as caught:
        list(read_trace(file))
    return str(caught.value).removeprefix(f"{file}")


def test_a_trace_line_is_an_event_or_the_end_of_a_side(trace: Path) -> None:
    lines = list(
        read_trace(write(trace, '{"side":"reference","value":{"a":1}}', '{"side":"candidate","end":true}'))
    )
    assert [(line.side, line.record) for line in lines] == [(LEFT, b'{"a":1}'), (RIGHT, None)]


def test_offsets_count_on_unless_a_line_names_one(trace: Path) -> None:
    event = '{"side":"reference","value":1}'
    more = '"offset":7,"partition":3,"timestamp_ms":9,"key":"k","headers":{"h":"x"}'
    named = f'{{"side":"reference","value":1,{more}}}'
    lines = list(read_trace(write(trace, event, event.replace("reference", "candidate"), named, event)))
    assert [line.offset for line in lines] == [0, 0, 7, 8]
    assert (lines[2].partition, lines[2].timestamp_ms) == (3, 9)


def test_blank_lines_are_skipped_and_counted(trace: Path) -> None:
    lines = list(read_trace(write(trace, "", "  ", '{"side":"reference","value":1}')))
    assert [(line.number, line.position) for line in lines] == [(3, 3)]


@pytest.mark.parametrize(
    "value", ["0.10000000000000000001", "123456789012345678901234567890", '"é\\u0000"', "-0.0", "null"]
)
def test_the_value_of_a_trace_line_keeps_its_meaning(trace: Path, value: str) -> None:
    (line,) = read_trace(write(trace, f'{{"side":"reference","value":{value}}}'))
    assert line.record is not None
    assert canonical(parse(line.record)) == canonical(parse(value.encode()))


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
        ('{"side":"reference"}', ':1: needs either "value" or "end": true'),
        ('{"side":"reference","end":false}', ':1: needs either "value" or "end": true'),
        ('{"side":"reference","end":true,"value":1}', ':1: needs either "value" or "end": true'),
        ('{"side":"reference","vlaue":1}', ":1: 'vlaue' is not a member of a trace line; known are"),
        ('{"side":"reference","value":1,"offset":-1}', ':1: "offset" must be a whole number, 0 or more, but'),
        ('{"side":"reference","value":1,"partition":true}', ':1: "partition" must be a whole number'),
        ('{"side":"reference","value":1,"timestamp_ms":1.5}', ':1: "timestamp_ms" must be a whole number'),
        ('{"side":"reference","value":1,"headers":{"a":1}}', ':1: "headers" must be an object of texts'),
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
    lines = list(read_pair(reference, candidate, interleave))
    assert "".join("RC"[line.side] for line in lines) == order
    assert [line.position for line in lines] == [1, 2, 3, 4, 5]
    assert [line.number for line in lines if line.side is LEFT] == [1, 3]
    assert [line.offset for line in lines if line.side is RIGHT] == [0, 1, 2]


def test_a_packed_file_is_unpacked(tmp_path: Path) -> None:
    packed = tmp_path / "trace.jsonl.gz"
    packed.write_bytes(gzip.compress(b'{"side":"reference","value":1}\n'))
    assert [line.record for line in read_trace(str(packed))] == [b"1"]


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"side":"reference","value":1}\n' * 1000)
    for name, content, message in (
        (
            "cut.gz",
            whole[: len(whole) // 2],
            "Compressed file ended before the end-of-stream marker was reached",
        ),
        ("plain.gz", b"no gzip", "Not a gzipped file"),
        ("damaged.gz", whole[:10] + b"\xff" * 50, "Error -3 while decompressing data"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"cannot be read: {message}"):
            list(read_trace(str(path)))
    for path, message in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file or directory")):
        with pytest.raises(InputError) as caught:
            list(read_trace(str(path)))
        assert str(caught.value) == f"{path}: cannot be read: {message}"
