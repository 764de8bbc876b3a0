"""The headers by which a pipeline marks what it writes, and its control records."""

from __future__ import annotations

import pytest

from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.clocks.input import InputPosition
from twinstream.errors import DecodeError
from twinstream.spec.decode.control import control_record
from twinstream.spec.decode.headers import (
    ATTEMPT,
    BATCH,
    INPUT,
    QUERY,
    attempt_headers,
    attempt_of,
    input_header,
    input_mark,
    input_position,
    kept_mark,
)

ATTEMPTS = [Attempt("views", 7, "9f2c", 3, 0), Attempt("ö/:", 0, "e", 0, 12)]
INPUTS = [("clicks", 2, 1041), ("a.b:c", 0, 0)]


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=str)
def test_an_attempt_is_read_as_it_was_written(attempt: Attempt) -> None:
    assert attempt_of([("other", None), *attempt_headers(attempt)]) == attempt


@pytest.mark.parametrize("position", INPUTS, ids=str)
def test_an_input_position_is_read_as_it_was_written(position: InputPosition) -> None:
    mark = input_mark([("other", None), input_header(*position)])
    assert mark is not None
    assert input_position(mark) == position


def test_a_record_without_marks_has_none() -> None:
    assert attempt_of([("trace", b"1")]) is None
    assert input_mark([("trace", b"1")]) is None


def test_of_several_headers_of_one_name_the_last_counts() -> None:
    assert input_mark([(INPUT, b"clicks:0:1"), (INPUT, b"clicks:0:2")]) == "clicks:0:2"


def marks(query: bytes = b"q", batch: bytes = b"1", attempt: bytes = b"e/0.0") -> list[tuple[str, bytes]]:
    return [(QUERY, query), (BATCH, batch), (ATTEMPT, attempt)]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (marks()[:2], "some of the headers"),
        (marks(batch=b"-1"), r"no number \(text, 2 characters\)$"),
        (marks(batch="²".encode()), "no number"),
        (marks(batch=b"9" * 19), "no number"),
        (marks(attempt=b"e/0.%b" % (b"9" * 19)), "EXECUTION/TASK.ATTEMPT"),
        (marks(attempt=b"e/0"), r"not EXECUTION/TASK.ATTEMPT \(text, 3 characters\)$"),
        (marks(query=b"\xff"), "not UTF-8 at byte 0"),
    ],
)
def test_an_attempt_that_cannot_be_read_is_refused_with_the_reason(
    headers: list[tuple[str, bytes]], said: str
) -> None:
    with pytest.raises(DecodeError, match=said):
        attempt_of(headers)


@pytest.mark.parametrize("text", [b"clicks:1", b"clicks:one:2", b":1:2", b"", b"\xff:1:2\n"])
def test_an_input_position_that_cannot_be_read_is_refused(text: bytes) -> None:
    mark = input_mark([(INPUT, text)])
    assert mark is not None
    with pytest.raises(DecodeError, match="TOPIC:PARTITION:OFFSET"):
        input_position(mark)


CONTROL = (
    b'{"version": "1.9.0", "query_id": "q", "run_id": "r", "batch": 3, "attempt": "9f2c/0.0", '
    b'"consumed": {"clicks": {"0": 10}}, "watermark": null, "written": {"views": {"0": 7}}, "rows": 7, '
    b'"mode": "append", "later": 1}'
)


def test_a_control_record_says_what_is_consumed_and_what_is_written() -> None:
    record = control_record(CONTROL)
    assert record.consumed == {"clicks": {0: 10}}
    assert record.written == {"views": {0: 7}}
    assert record.watermark is None


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (None, "tombstone"),
        (b"{", "no control record: `the record`"),
        (CONTROL.replace(b'"batch": 3', b'"batch": -3'), "`batch`"),
        (CONTROL.replace(b'"0": 10', b'"x": 10'), "`consumed.clicks.x"),
        (CONTROL.replace(b'"append"', b'"upsert"'), "`mode`"),
        (CONTROL.replace(b'"batch": 3', b'"batch": 9223372036854775808'), "`batch`"),
        (CONTROL.replace(b'"0": 10', b'"0": 18446744073709551616'), "`consumed.clicks.0`"),
        (CONTROL.replace(b'"0": 10', b'"-1": 10'), "`consumed.clicks.-1"),
        (CONTROL.replace(b'"0": 10', b'"2147483648": 10'), "`consumed.clicks.2147483648"),
        (CONTROL.replace(b"null", b"-9223372036854775809"), "`watermark`"),
    ],
)
def test_what_is_no_control_record_is_refused_with_the_place(record: bytes | None, said: str) -> None:
    with pytest.raises(DecodeError, match=said):
        control_record(record)


@pytest.mark.parametrize(
    ("mark", "kept"), [("clicks:2:7", "clicks:2:7"), ("Ann", ""), ("Ann:2", ""), (None, None)]
)
def test_a_text_that_names_no_input_record_is_not_kept_but_is_still_none(
    mark: str | None, kept: str | None
) -> None:
    assert kept_mark(mark) == kept
