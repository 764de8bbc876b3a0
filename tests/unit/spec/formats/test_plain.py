from __future__ import annotations

import pytest

from twinstream.errors import DecodeError
from twinstream.spec.decode.formats import plain


def test_a_text_is_what_the_bytes_say() -> None:
    assert plain.text("\ufeffé😀\x00".encode()) == "\ufeffé😀\x00"
    assert plain.text(b"") == ""


@pytest.mark.parametrize(("record", "place"), [(b"ab\xff", 2), (b"\xed\xa0\x80", 0)])
def test_a_record_that_is_no_text_is_refused_with_the_place(record: bytes, place: int) -> None:
    with pytest.raises(DecodeError, match=f"not UTF-8 at byte {place}"):
        plain.text(record)


def test_raw_bytes_are_themselves() -> None:
    assert plain.raw(b"\x00\xff") == b"\x00\xff"
