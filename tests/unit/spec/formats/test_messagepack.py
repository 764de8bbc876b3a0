from __future__ import annotations

import struct
from math import inf, isnan, nan
from typing import Any

import msgpack
import pytest

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


def test_the_depth_of_nesting_is_bounded() -> None:
    assert decode(b"\x91" * 128 + b"\xc0") is not None
