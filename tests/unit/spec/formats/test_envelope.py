from __future__ import annotations

from typing import Any

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


HEADERS = [("a", b"1"), ("b", None), ("c", b"\xff"), ("a", b"2")]


@pytest.mark.parametrize(
    ("key", "named", "stamp", "outer"),
    [
        (b"k", "abd", 5, {"$key": "k", "$timestamp": 5, "$headers": {"a": "2", "b": None}}),
        (None, "", 0, {"$key": None, "$timestamp": 0, "$headers": {}}),
        (b"a\xff", "", -1, {"$key": b"a\xff", "$headers": {}}),
    ],
)
def test_the_outside_has_the_names_of_comparison_files_and_only_named_headers_the_last_of_a_name(
    key: bytes | None, named: str, stamp: int, outer: dict[str, Any]
) -> None:
    parts = opened(envelope(b"{}", key, HEADERS, stamp, 2))
    assert outside([("$headers", name) for name in named])(parts) == {**outer, "$partition": 2}


def test_a_key_or_a_named_header_that_is_no_text_is_refused() -> None:
    with pytest.raises(DecodeError, match="the key of the record is not UTF-8 at byte 1"):
        outside([("$key",)])(opened(envelope(b"{}", b"a\xff", [], 0, 0)))
    with pytest.raises(DecodeError, match="the header `h` of the record is not UTF-8 at byte 0"):
        outside([("$headers", "h")])(opened(envelope(b"{}", None, [("h", b"\xff")], 0, 0)))
