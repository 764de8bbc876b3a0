from __future__ import annotations

import struct
from math import inf, isnan, nan
from typing import Any

import msgpack
import pytest

from twinstream.errors import DecodeError
from twinstream.spec.decode.formats.messagepack import decode


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1, 2**64 - 1, -(2**63), 0.1, inf, "é", b"\xff", [], [1, [2]], {"a": {"b": [None]}}],
)
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    assert decode(msgpack.packb(value)) == value


def test_not_a_number_is_a_value() -> None:
    assert isnan(decode(msgpack.packb(nan)))


def test_a_short_float_is_the_long_one_of_the_same_value() -> None:
    assert decode(b"\xca" + struct.pack(">f", 0.1)) == struct.unpack(">f", struct.pack(">f", 0.1))[0]


def test_a_timestamp_is_its_number_of_nanoseconds() -> None:
    stamp = msgpack.Timestamp(seconds=-1, nanoseconds=999_999_999)
    assert decode(msgpack.packb({"at": [stamp]})) == {"at": [-1]}


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


def test_the_depth_of_nesting_is_bounded() -> None:
    assert decode(nested(128)) is not None
    for depth in (129, 1_000, 100_000):
        with pytest.raises(DecodeError, match="nested deeper than 128"):
            decode(nested(depth))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"", "not MessagePack: Unpack failed: incomplete input"),
        (b"\x93\x01", "not MessagePack: "),
        (b"\x01\x01", "not MessagePack: more bytes follow the value"),
        (b"\xc1", "not MessagePack: "),
        (b"\xa1\xff", "not MessagePack: a text of it is not UTF-8"),
        (b"\x82\xa1a\x01\xa1a\x02", "a member stands twice in one map"),
        (b"\x81\x01\x01", "not MessagePack: int is not allowed for map key"),
        (b"\x81\xc4\x01a\x01", "a member of a map has a name that is no text"),
        (b"\x81\x90\x01", "not MessagePack: list is not allowed for map key"),
        (msgpack.packb(msgpack.ExtType(7, b"abc")), r"extension type 7 \(3 bytes\) has no value"),
    ],
)
def test_what_is_no_value_is_refused_with_the_reason(record: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode(record)
