"""The bytes of a checkpoint."""

from __future__ import annotations

import pytest

from twinstream.errors import CheckpointError
from twinstream.runtime.checkpoint import FORMAT, MAGIC, decode, encode

STATE = {
    "number": 3,
    "empty": {},
    "waiting": [
        {"records": [b"\x00\xff", b""], "offsets": [1, 2]},
        {"records": [], "offsets": []},
    ],
    "scopes": [{"pieces": [{"records": [b"a"]}, {"records": [b"bc", b"d"]}], "records": [b"e"]}],
}


def test_what_is_encoded_is_decoded_with_every_record_in_its_place() -> None:
    assert decode(encode(STATE)) == STATE


def test_a_newer_format_is_refused_by_name() -> None:
    newer = MAGIC + bytes((FORMAT + 1,)) + encode(STATE)[len(MAGIC) + 1 :]
    with pytest.raises(CheckpointError, match=f"format {FORMAT + 1}, this version reads format {FORMAT}"):
        decode(newer)


@pytest.mark.parametrize("cut", [-1, -10, 30])
def test_a_damaged_state_is_refused(cut: int) -> None:
    with pytest.raises(CheckpointError, match="damaged"):
        decode(encode(STATE)[:cut])


def test_a_flipped_bit_is_refused() -> None:
    data = bytearray(encode(STATE))
    data[len(data) // 2] ^= 1
    with pytest.raises(CheckpointError, match="damaged"):
        decode(bytes(data))


@pytest.mark.parametrize("data", [b"", b"something else", MAGIC])
def test_what_is_no_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(CheckpointError):
        decode(data)
