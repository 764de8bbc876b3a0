from __future__ import annotations

import pytest

from twinstream.errors import DecodeError
from twinstream.spec.decode.formats.envelope import envelope, opened, outside


@pytest.mark.parametrize("value", [None, b"", b"{}", b"\x00" * 70_000])
@pytest.mark.parametrize("key", [None, b"", b"\xff"])
@pytest.mark.parametrize("headers", [(), [("a", None), ("a", b"1"), ("é", b"\xff")]])
def test_what_is_put_in_comes_out(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    parts = opened(envelope(value, key, headers, -1, 3))
    assert (parts.value, parts.key, parts.timestamp_ms, parts.partition) == (value, key, -1, 3)
    assert [tuple(header) for header in parts.headers] == list(headers)


def test_the_outside_has_the_names_of_comparison_files() -> None:
    parts = opened(envelope(b"{}", b"k", [("a", b"1"), ("b", None), ("c", b"\xff")], 5, 2))
    assert outside([("$headers", "a"), ("$headers", "b"), ("$headers", "d")])(parts) == {
        "$key": "k",
        "$timestamp": 5,
        "$partition": 2,
        "$headers": {"a": "1", "b": None},
    }


def test_the_last_header_of_a_name_counts() -> None:
    parts = opened(envelope(b"{}", None, [("a", b"1"), ("a", b"2")], 0, 0))
    assert outside([("$headers", "a")])(parts) == {
        "$key": None,
        "$timestamp": 0,
        "$partition": 0,
        "$headers": {"a": "2"},
    }


def test_a_record_without_a_timestamp_lacks_one() -> None:
    assert "$timestamp" not in outside([])(opened(envelope(b"{}", None, [], -1, 0)))


def test_a_key_or_a_named_header_that_is_no_text_is_refused() -> None:
    with pytest.raises(DecodeError, match="the key of the record is not UTF-8 at byte 1"):
        outside([("$key",)])(opened(envelope(b"{}", b"a\xff", [], 0, 0)))
    with pytest.raises(DecodeError, match="the header `h` of the record is not UTF-8 at byte 0"):
        outside([("$headers", "h")])(opened(envelope(b"{}", None, [("h", b"\xff")], 0, 0)))


def test_what_is_not_named_may_be_any_bytes() -> None:
    parts = opened(envelope(b"{}", b"a\xff", [("h", b"\xff")], 0, 0))
    assert outside([])(parts) == {"$key": b"a\xff", "$timestamp": 0, "$partition": 0, "$headers": {}}
