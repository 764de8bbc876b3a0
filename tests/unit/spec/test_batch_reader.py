"""Batches of plain JSON records are read as columns, and the reader of single ones gets what is not plain."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from twinstream.core.canonical import canonical
from twinstream.spec.codec.batch_reader import AT_ONCE, LONGEST_PAUSE, MOST_BYTES, BatchReader
from twinstream.spec.codec.codec import IGNORED, Codec
from twinstream.spec.codec.structs import MEMBERS
from twinstream.spec.load import loads

SPEC = "version: 1\nname: x\nreference: {topic: a}\ncandidate: {topic: b}\n"
ORDERED, BAG = "order: {per_key: [ad]}\n", "order: unordered\n"
NO_TIME = "equality: {ignore: [at]}\n"
KINDS = "kinds: {eod: {where: {type: eod}}, hb: {where: {type: hb}, ignore: true}, ride: {}}\n"


def columns(*parts: str) -> BatchReader:
    made = Codec(loads(SPEC + "".join(parts)))._columns
    assert made is not None
    return made


def batch(*values: Any) -> list[bytes]:
    return [json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() for value in values]


PLAIN = [{"ad": f"ad-{n % 3}", "n": n, "paid": n % 2 == 0, "note": None, "at": f"t{n}"} for n in range(10)]


def read(reader: BatchReader, records: list[Any]) -> list[bool]:
    """Which records were read."""
    return [form is not None for form in reader.forms(records)]


@pytest.mark.parametrize("rules", [ORDERED, BAG, ORDERED + NO_TIME, BAG + NO_TIME, "order: total\n"])
def test_plain_records_are_read_as_columns(rules: str) -> None:
    assert all(read(columns(rules), batch(*PLAIN)))


def test_the_content_is_the_canonical_form_of_what_is_compared() -> None:
    forms = columns(ORDERED, NO_TIME).forms(batch(*PLAIN))
    compared = [{name: value for name, value in member.items() if name != "at"} for member in PLAIN]
    assert [form[1] for form in forms] == list(map(canonical, compared))


def test_members_may_be_absent() -> None:
    reader = columns(ORDERED, NO_TIME)
    less = [{name: member for name, member in value.items() if name != "note"} for value in PLAIN]
    assert all(read(reader, batch(*PLAIN)))
    assert all(read(reader, batch(*less, *PLAIN)))


def test_a_shape_is_learned_anew_when_members_come() -> None:
    reader = columns(BAG)
    assert all(read(reader, batch(*PLAIN)))
    assert all(read(reader, batch(*({"new": 1.5, **value, "last": "x"} for value in PLAIN))))
    assert all(read(reader, batch(*PLAIN)))


def test_where_members_hold_others_no_canonical_form_is_written_and_the_record_may_be_kept() -> None:
    nested = batch(*({**value, "items": [{"n": 1}]} for value in PLAIN))
    assert not any(read(columns(BAG), nested))
    assert all(read(columns(ORDERED), nested))


def test_spaces_after_separators_lose_nothing() -> None:
    assert all(read(columns(ORDERED), [json.dumps(value).encode() for value in PLAIN]))


@pytest.mark.parametrize(
    "awkward",
    [
        b'{"ad":"x","ad":"x"}',
        b'{"ad":"x","n":1,"n":1}',
        b'{"ad":"\\u00e9"}',
        b'{"ad":"x", "note":"a, b"}',
        b'{"ad":"x","n":-0}',
        b'{"ad":"x","n":0.10000000000000000001}',
        b' {"ad":"x"}',
        b'{"ad":1.0}',
        b'{"n":1}',
    ],
)
def test_one_that_loses_something_is_left_to_others_and_alone(awkward: bytes) -> None:
    reader = columns(ORDERED)
    reader.forms(batch(*PLAIN))
    assert (
        read(reader, [*batch(*PLAIN[:5]), awkward, *batch(*PLAIN[5:])]) == [True] * 5 + [False] + [True] * 5
    )


@pytest.mark.parametrize(
    "records",
    [
        [b'{"ad":"x"},{"ad":"y"}', b'{"ad":"z"', b'"n":1}', b'{"ad":"x"}'],
        [b'{"ad":"x"}\n{"ad":"y"}', b'{"ad":"z"}', b'{"ad":"x"}', b'{"ad":"x"}'],
        [b'{"ad":"x"}\n{"ad":"y"}', b"", b'{"ad":"x"}', b'{"ad":"x"}'],
        [b'{"ad":"x"}\n{"ad":"y"}', b" ", b'{"ad":"x"}', b'{"ad":"x"}'],
        [b'{"ad":"x}', b'{","n":1}', b'{"ad":"x"},{"ad":"y"}', b'{"ad":"x"}'],
    ],
)
def test_records_that_make_up_for_each_other_are_not_taken_for_whole_ones(records: list[bytes]) -> None:
    reader = columns(ORDERED)
    reader.forms(batch(*PLAIN))
    assert not any(read(reader, records)[:3])


@pytest.mark.parametrize("number", ["1.5", "0.25", "123456.78", "0.001", "999999999999999.1"])
@pytest.mark.parametrize("other", ["1.0", "0.0", "1e16", "0.0001", "1e-7", "123456789012345680.0"])
def test_a_number_is_read_where_it_is_written_in_its_canonical_form(number: str, other: str) -> None:
    records = [b'{"ad":"x","fare":%s}' % text.encode() for text in (number, number, number, other)]
    assert [form and form[1] for form in columns(BAG).forms([*records * 3])] == [*records[:3], None] * 3


@pytest.mark.parametrize("ad", [2**70, 2**64, -(2**70), 1e300, True, None, [1]])
def test_keys_that_are_no_texts_or_small_whole_numbers_give_the_lane_of_the_exact_reading(ad: Any) -> None:
    for keys in (("x", 7, ad), (7, ad), ("x", ad)):
        codec = Codec(loads(SPEC + ORDERED))
        records = batch(*({"ad": key, "n": n} for n in range(5) for key in keys))
        forms, _ = codec.forms(records)
        assert [form[0] for form in forms] == [codec.form(record)[0] for record in records]


def test_what_more_than_one_member_orders_is_read_as_columns() -> None:
    codec = Codec(loads(SPEC + "order: {per_key: [ad, n]}\n"))
    records = batch(*PLAIN, {"ad": "x"})
    assert codec._columns is not None
    assert codec._columns.forms(records) == [*map(codec.form, records[:-1]), None]


@pytest.mark.parametrize("number", [2**63, 2**64, 10**22, -(10**22), 2**63 - 1, -(2**63)])
def test_a_large_whole_number_has_its_canonical_form_whoever_reads_it(number: int) -> None:
    codec = Codec(loads(SPEC + BAG))
    records = batch(*({"ad": "x", "n": n} for n in (1, 2, 3, number, 4, 5)))
    forms, _ = codec.forms(records)
    assert [form[1] for form in forms] == [codec.form(record)[1] for record in records]


def test_where_the_order_reads_the_kind_alone_each_record_has_its_route() -> None:
    kinds = "kinds: {eod: {where: {type: eod}}, note: {where: {type: note}}, ride: {}}\n"
    rest = "{kinds: [eod, ride], order: {barrier: eod, inner: unordered}}"
    order = f"order: {{parallel: {{a: {{kinds: [note], order: unordered}}, b: {rest}}}}}\n"
    records = batch(
        *({"type": kind, "n": n} for n, kind in enumerate(["ride", "eod", "note", "ride", "ride"]))
    )
    codec = Codec(loads(SPEC + kinds + order))
    found = columns(kinds, order).forms(records)
    singly = [codec.forms([record])[0][0] for record in records]
    assert [form[:3] for form in found if form] == [form[:3] for form in singly]


def test_a_record_that_is_nested_too_deep_is_left_to_others() -> None:
    deep = [b'{"ad":"x","n":%s1%s}' % (b"[" * depth, b"]" * depth) for depth in (1, 2, 127, 128, 300)]
    assert read(columns(ORDERED), [*deep * 2, *deep[:2] * 3])[:5] == [True, True, True, False, False]


def test_kinds_are_told_by_their_member_and_placed_each_in_its_way() -> None:
    barrier = "order: {barrier: eod, inner: {per_key: [ad]}}\n"
    codec = Codec(loads(SPEC + KINDS + barrier))
    records = batch(
        {"type": "ride", "ad": "x"}, {"type": "eod"}, {"type": "hb"}, {"ad": "x"}, {"type": True, "ad": 1}
    )
    assert codec._columns is not None
    forms = codec._columns.forms(records)
    exact = [codec.form(record) for record in records]
    assert forms[2] is IGNORED
    assert forms[4] is None
    assert [*forms[:2], forms[3]] == [*exact[:2], exact[3]]


def test_where_nothing_can_be_read_as_columns_it_is_tried_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, tried = columns(BAG), []
    monkeypatch.setattr(reader, "_read", lambda _shape, records: tried.append(len(records)))
    for _ in range(100):
        reader.forms([b"no record"] * 8)
    assert 3 < len(tried) < 10
    assert reader._pause <= LONGEST_PAUSE


def test_large_batches_are_read_in_parts_and_very_large_records_left_alone() -> None:
    values = [{"ad": "x", "n": n} for n in range(2 * AT_ONCE + 1)]
    forms = columns(ORDERED).forms(batch(*values))
    assert [form[3] for form in forms] == batch(*values)
    assert not any(read(columns(ORDERED), batch(*({"ad": "x" * MOST_BYTES, "n": n} for n in range(4)))))


def test_records_of_very_many_members_are_left_alone_for_good() -> None:
    reader = columns(BAG)
    assert not any(read(reader, batch(*[{f"m{n}": 1 for n in range(MEMBERS + 1)}] * 8)))
    assert not any(read(reader, batch(*PLAIN)))


def test_texts_are_written_as_the_definition_writes_them() -> None:
    points = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    assert msgspec.json.encode("".join(points)) == canonical("".join(points))
