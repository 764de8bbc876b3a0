"""The bytes of a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.checkpoints.format import FORMAT, MAGIC, decode, encode
from twinstream.errors import CheckpointError

STATE = {
    "number": 3,
    "empty": {},
    "waiting": [
        {"records": [b"\x00\xff", b""], "offsets": [1, 2]},
        {"records": [], "offsets": []},
    ],
    "scopes": [{"pieces": [{"records": [b"a"]}, {"records": [b"bc", b"d"]}], "records": [b"e"]}],
}

STORED = Path(__file__).parents[1] / "golden"

# What the files in `golden` hold.
GOLDEN: dict[str, Any] = {
    "accounts": [{"matched": 7, "ignored": 0}, {"matched": 7, "ignored": 1}],
    "matched_by_kind": {"ride": 6, "day": 1},
    "ended": [False, True],
    "moments": [12, None, None],
    "halted": None,
    "holes": [["a gap", 0, None, 5]],
    "newest_matched_ms": [1_700_000_000_000, -1],
    "share": 0.25,
    "waiting": [
        {
            "records": [b'{"k":"a","n":%d}' % n for n in range(40)],
            "partitions": [n % 3 for n in range(40)],
            "offsets": [2**40 + 7 * n for n in range(40)],
            "timestamps_ms": [1_700_000_000_000 - n * n for n in range(40)],
            "marks": [None if n % 2 else n for n in range(40)],
            "since_ms": [1_700_000_000_000 - n * n for n in range(40)],
        },
        {"records": [], "partitions": [], "offsets": [], "timestamps_ms": [], "marks": [], "since_ms": []},
    ],
    "scopes": [{"pieces": [{"records": [b"\x00\xff", b""]}, {"records": []}], "lost": False}],
    "strays": [{"records": [b"s"], "witnesses": [{"records": [b"w1", b"w2"]}], "kinds": ["missing"]}],
}

whole_numbers = st.integers(-(2**63), 2**64 - 1) | st.integers(-200, 200)
scalars = st.none() | st.booleans() | whole_numbers | st.text() | st.binary() | st.floats(allow_nan=False)
long_lists = st.one_of(
    st.lists(kind, min_size=16, max_size=40)
    for kind in (whole_numbers, st.binary(), st.none() | whole_numbers, st.just(b"same"), scalars)
)
values = st.recursive(
    scalars | long_lists,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.parametrize("state", [STATE, GOLDEN], ids=["small", "golden"])
def test_what_is_encoded_is_decoded_with_every_record_in_its_place(state: dict[str, Any]) -> None:
    assert decode(encode(state)) == state


@given(st.dictionaries(st.text(), values, max_size=4))
def test_whatever_is_encoded_is_decoded_with_the_same_values_and_types(state: dict[str, Any]) -> None:
    assert repr(decode(encode(state))) == repr(state)


def test_a_stored_checkpoint_of_this_format_is_read() -> None:
    assert decode((STORED / "checkpoint-format-3.bin").read_bytes()) == GOLDEN


@pytest.mark.parametrize("older", range(1, FORMAT))
def test_a_checkpoint_of_an_older_format_is_refused_by_name(older: int) -> None:
    with pytest.raises(
        CheckpointError, match=f"format {older}, this version reads format {FORMAT}: remove the comparison's"
    ):
        decode((STORED / f"checkpoint-format-{older}.bin").read_bytes())


def test_a_newer_format_is_refused_by_name() -> None:
    newer = MAGIC + bytes((FORMAT + 1,)) + encode(STATE)[len(MAGIC) + 1 :]
    with pytest.raises(
        CheckpointError, match=f"format {FORMAT + 1}, this version reads format {FORMAT}: upgrade"
    ):
        decode(newer)


@pytest.mark.parametrize("cut", [-1, -10, 30, len(MAGIC) + 1, len(MAGIC) + 3])
def test_a_damaged_state_is_refused(cut: int) -> None:
    with pytest.raises(CheckpointError, match=r"damaged.*restore Redis from a backup"):
        decode(encode(STATE)[:cut])


@given(st.integers(0, 8 * len(encode(STATE)) - 1))
def test_a_flipped_bit_is_refused(place: int) -> None:
    data = bytearray(encode(STATE))
    data[place // 8] ^= 1 << place % 8
    with pytest.raises(CheckpointError, match=r"damaged|not a Twinstream checkpoint|has format"):
        decode(bytes(data))


@pytest.mark.parametrize("data", [b"", b"something else", MAGIC])
def test_what_is_no_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(CheckpointError):
        decode(data)
