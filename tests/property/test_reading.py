"""The fast readers say of every record what the exact reading says, or leave it to that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.events import Form
from twinstream.errors import DecodeError
from twinstream.spec.codec import IGNORED, Codec
from twinstream.spec.load import loads

SPEC = "version: 1\nname: x\nreference: {{topic: a}}\ncandidate: {{topic: b}}\norder: {}\nequality: {}\n"
ORDERS = ["unordered", "total", "{per_key: [a]}", "{per_key: [a, b]}"]
EQUALITIES = ["{}", "{ignore: [c]}", "{ignore: [c.d]}"]

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(max_size=5)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner)
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)
separators = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")])
numbers = st.sampled_from(
    ["1", "1.0", "1e0", "-0", "0.10000000000000000001", "1e16", "1e400", "18446744073709551616"]
)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """JSON objects as different writers write them, some with a member twice, some damaged."""
    text = json.dumps(draw(objects), separators=draw(separators), ensure_ascii=draw(st.booleans()))
    kind = draw(st.sampled_from(["plain", "plain", "number", "twice", "cut"]))
    if kind == "number":
        text = f'{{"a":{draw(numbers)},"b":"x"}}'
    elif kind == "twice":
        text = '{"a":1,"b":2,"a":3}'
    elif kind == "cut":
        text = text[:-1]
    return text.encode("utf-8", "surrogatepass")


def _exactly(codec: Codec, record: bytes) -> Form | None:
    try:
        return codec.form(record)
    except DecodeError:
        return None


@pytest.mark.parametrize("equality", EQUALITIES)
@pytest.mark.parametrize("order", ORDERS)
@given(batch=st.lists(records(), min_size=1, max_size=4))
def test_forms_are_those_of_the_exact_reading(order: str, equality: str, batch: list[bytes]) -> None:
    codec = Codec(loads(SPEC.format(order, equality)))
    again: list[Any] = [*batch, *batch]
    forms, refused = codec.forms(again)
    expected = [_exactly(codec, record) for record in again]
    assert [None if form is IGNORED else tuple(form) for form in forms] == expected
    assert [place for place, _ in refused] == [place for place, form in enumerate(expected) if form is None]
    assert all(reason for _, reason in refused)
