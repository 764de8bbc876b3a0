"""The keys of rows that replace each other, and the records that delete them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import twinstream
from tests.support.streams import SPEAKING, record
from twinstream.core.events import Form, Side
from twinstream.offline.check import check
from twinstream.ports import Line
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.rows import DELETED
from twinstream.spec.decode.deletions import MARK, deletion, row_or_deletion
from twinstream.spec.load import loads

HEAD = "version: 1\nname: t\nreference: {topic: r}\ncandidate: {topic: c}\n"
ONE = HEAD + "order: unordered\nemits: {upsert: {key: [k], settled_by: input}}\n"
TWO = HEAD + "order: unordered\nemits: {upsert: {key: [k, at.w], settled_by: input}}\n"
LIVES = (
    HEAD + "order: {per_key: [k]}\nemits: {retract: {id: k, valid_from: a, valid_to: b, settled_by: input}}\n"
)
WINDOWS = HEAD + "order: unordered\nemits: {upsert: {key: [k], settled_by: {watermark: end}}}\n"


UPSERT = {"upsert": {"key": ["k"], "settled_by": "input"}}
RETRACT = {"retract": {"id": "k", "valid_from": "a", "valid_to": "b", "settled_by": "input"}}


def read(file: str, *records: bytes | None) -> tuple[Codec, list[Form], list[str | None]]:
    codec = Codec(loads(file))
    forms, refused = codec.forms(records)
    return codec, forms, [one.reason for one in refused]


def keys(file: str, *records: bytes | None) -> list[bytes]:
    """The keys of rows and deletions, all of which are events."""
    codec, forms, refused = read(file, *records)
    assert refused == []
    return [codec.row_key(form[3]) for form in forms]


def refusal(file: str, row: bytes | None) -> str:
    ((reason),) = read(file, row)[2]
    assert reason is not None
    return reason


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (7, b"7"),
        ("7", b"7"),
        ("seven", b"seven"),
        ("seven", b'"seven"'),
        (7, b'{"k":7}'),
        (-70, b"-70"),
        (2**64 - 1, b"18446744073709551615"),
        ("0070", b"0070"),
        ("-0", b"-0"),
        ("q", b'"q"'),
        (True, b"true"),
        ("false", b"false"),
        ("null", b'"null"'),
        (None, b'{"k":null}'),
        ("1.10", b'"1.10"'),
    ],
)
def test_a_deletion_of_one_field_has_the_key_of_the_row_that_it_deletes(value: Any, key: bytes) -> None:
    row, gone = keys(ONE, record({"k": value, "v": 1}), deletion(key))
    assert row == gone


def test_the_key_of_several_fields_is_an_object_with_them() -> None:
    row = record({"k": 1, "at": {"w": "2026"}, "v": 1})
    same, other = record({"at": {"w": "2026"}, "k": 1}), record({"at": {"w": "2027"}, "k": 1})
    found = keys(TWO, row, deletion(same), deletion(other))
    assert found[0] == found[1] != found[2]


def test_where_absent_is_null_keys_are_the_same_with_and_without_what_is_null() -> None:
    file = ONE.replace("unordered", "{per_key: [k]}") + "equality: {absent_is_null: true}\n"
    whole, less = record({"k": {"a": 1, "b": None}}), record({"k": {"a": 1}})
    codec, forms, _ = read(file, whole, less, deletion(whole), deletion(less))
    assert len({codec.row_key(form[3]) for form in forms}) == len({form[0] for form in forms}) == 1


def test_where_absent_is_null_an_absent_field_of_a_key_is_null_in_a_deletion_too() -> None:
    row = record({"k": 1, "at": {"w": None}, "v": 1})
    found = keys(TWO + "equality: {absent_is_null: true}\n", row, deletion(b'{"k":1}'), deletion(b'{"k":2}'))
    assert found[0] == found[1] != found[2]


def test_keys_of_different_rows_differ() -> None:
    values = [1, "a", True, None, 1.5, [1], "[1]", "null", "[[1]]", {"k": 1}, "\0null", '\0"a"']
    found = keys(ONE, *(record({"k": value}) for value in values))
    assert len(set(found)) == len(values)


def test_a_truth_value_and_its_text_are_one_key() -> None:
    assert len(set(keys(ONE, record({"k": True}), record({"k": "true"}), deletion(b"true")))) == 1
    _, forms, _ = read(ONE.replace("unordered", "{per_key: [k]}"), b'{"k":true}', b'{"k":"true"}')
    assert forms[0][0] == forms[1][0]


def test_numbers_of_one_value_are_one_key() -> None:
    assert len(set(keys(ONE, *(b'{"k":%b}' % text for text in (b"7", b"7.0", b"70e-1"))))) == 1


@pytest.mark.parametrize(
    ("file", "row", "reason"),
    [
        (ONE, record({"v": 1}), "field `k`, that tells which rows replace each other, is missing"),
        (ONE, None, "a tombstone (a record without a value) is not an event"),
        (ONE, deletion(b"\xff"), "the key of a deletion is not UTF-8 at byte 0"),
        (ONE, deletion(b'{"j":1}'), "the key of a deletion has no `k`"),
        (ONE, deletion(b"{"), "the key of a deletion is not JSON: "),
        (ONE, deletion(b"1.50"), "may be a text or a number; write it in quotes or as a JSON object"),
        (ONE, deletion(b"null"), "may be a text or null; write it in quotes or as a JSON object"),
        (TWO, deletion(b"7"), "the key of a deletion is no JSON object with k, at.w (number)"),
        (TWO, deletion(b'{"k":1}'), "the key of a deletion has no `at.w`"),
        (LIVES, record({"k": 1, "a": 1}), "field `b`, that tells which rows replace each other, is missing"),
        (WINDOWS, record({"k": 1}), "field `end`, that tells when a row is final, holds no time"),
        (WINDOWS, record({"k": 1, "end": "soon"}), "field `end`, that tells when a row is final, holds no"),
        (WINDOWS, deletion(b'{"k":1}'), "field `end`, that tells when a row is final, holds no time"),
    ],
)
def test_a_record_of_which_no_key_can_be_told_is_no_event(file: str, row: bytes | None, reason: str) -> None:
    assert reason in refusal(file, row)


@pytest.mark.parametrize("emits", [UPSERT, RETRACT])
def test_where_absent_is_null_an_absent_field_tells_which_rows_replace_each_other(emits: Any) -> None:
    spec = {"order": "unordered", "equality": {"absent_is_null": True}, "emits": emits}
    rows = [{"k": None, "a": 1, "b": None, "n": n} for n in (1, 2)]
    absent = {"a": 1, "n": 2}
    assert twinstream.check(spec, rows, [absent]).verdict == "EQUIVALENT"
    assert twinstream.check(spec, rows, [{**absent, "n": 1}]).verdict == "DIVERGED"


def test_a_deletion_equals_no_row_and_every_deletion_of_its_key() -> None:
    """Also where all of a row is its key."""
    file = ONE + "equality: {compare_only: [k]}\n"
    codec, forms, _ = read(file, record({"k": 7, "v": 1}), deletion(b"7"), deletion(b'{"k":"7"}'))
    row, one, other = (codec.canonical(form[1]) for form in forms)
    assert row != one == other
    assert one.startswith(DELETED)
    assert codec.decode(forms[1][3]) == {"k": 7}


@pytest.mark.parametrize(
    ("key", "order"), [(b'{"k":"7"}', "{per_key: [k]}"), (b"7", "{per_key: [k]}"), (b"7", "unordered")]
)
def test_rows_and_deletions_of_one_key_depend_on_each_other_however_the_key_is_written(
    key: bytes, order: str
) -> None:
    file = ONE.replace("unordered", order) + "equality: {compare_only: [k]}\n"
    rows = record({"k": 7, "v": 1}), record({"k": "7", "v": 1}), deletion(key)
    assert len({form[0] for form in read(file, *rows)[1]}) == (1 if order != "unordered" else 3)


@pytest.mark.parametrize(
    ("file", "row"),
    [
        (TWO.replace("unordered", "{per_key: [k, at.w]}"), deletion(b'{"k":1}')),
        (LIVES, record({"a": 5, "b": 5})),
    ],
)
def test_where_absent_is_null_a_deletion_may_lack_a_field_that_the_order_reads(
    file: str, row: bytes | None
) -> None:
    assert read(file + "equality: {absent_is_null: true}\n", row)[2] == []


@pytest.mark.parametrize("order", ["unordered", "{per_key: [k]}"])
def test_rows_of_one_key_that_differ_have_changed_however_the_key_is_written(order: str) -> None:
    file = ONE.replace("unordered", order)
    codec, forms, _ = read(file, record({"k": 7}), record({"k": "7"}), deletion(b"7"), record({"k": "7.0"}))
    assert codec.identity is not None
    assert [codec.identity(form[3]) for form in forms[:3]] == [codec.identity(forms[0][3])] * 3
    assert codec.identity(forms[3][3]) != codec.identity(forms[0][3]), "a text is its own"
    spec = {"order": "unordered", "emits": UPSERT}
    answer = twinstream.check(spec, [{"k": 7, "v": 1}], [{"k": "7", "v": 1}])
    assert answer.divergences.by_kind["changed"] == answer.divergences.total == 1


def test_an_identity_of_the_file_tells_a_number_from_a_text() -> None:
    """As equality does: only the key of rows is compared as text."""
    codec = Codec(loads(HEAD + "order: unordered\nidentity: [k]\n"))
    assert codec.identity is not None
    assert codec.identity(record({"k": 7})) == codec.identity(record({"k": 7.0}))
    assert codec.identity(record({"k": 7})) != codec.identity(record({"k": "7"}))


def test_an_empty_lifetime_takes_an_event_back() -> None:
    whole, empty = (record({"k": 1, "a": 5, "b": end}) for end in (9, 5.0))
    _, forms, _ = read(LIVES, whole, empty)
    assert [form[1].startswith(DELETED) for form in forms] == [False, True]


def test_only_a_record_without_a_value_deletes() -> None:
    assert row_or_deletion(b"null", b"7") == b"null"
    assert row_or_deletion(None, b"7") == MARK + b"7"
    assert row_or_deletion(None, None) is None


def test_sides_of_different_formats_delete_alike() -> None:
    file = ONE.replace("candidate: {topic: c}", "candidate: {topic: c, decode: {format: msgpack}}")
    codec = Codec(loads(file))
    ((left,), _), ((right,), _) = (codec.forms([deletion(b"7")], side) for side in Side)
    assert left[1] == right[1]
    assert json.dumps(codec.decode(left[3])) == json.dumps(codec.decode(right[3])) == '{"k": 7}'


def test_a_check_of_fields_is_not_about_deletions() -> None:
    spec = loads(ONE + "checks: [{id: there, not_null: [v]}]\n")
    rows = (record({"k": 7, "v": 1}), deletion(b"7"))
    lines = [Line(side, row, 0, offset, 0, "f", 1, 1) for side in Side for offset, row in enumerate(rows)]
    answer = check(spec, lines, allow_empty=True)
    (found,) = answer["checks"]
    assert (answer["verdict"], found["reference"]["violations"]) == ("EQUIVALENT", 0)


ASKED = """\
kinds: {night: {where: {k: night}}, row: {}}
order: {barrier: night, inner: unordered}
emits: {upsert: {key: [k], settled_by: barrier, intermediate: {monotone: [n.v], final_after_settled: true}}}
equality: {ignore: [seen]}
"""


def asked(*rows: bytes | None) -> dict[str, tuple[str, list[int]]]:
    """What the checks of `intermediate` say of these rows, if both versions write them: state and offsets."""
    head = "version: 1\nname: rows\nreference: {topic: r}\ncandidate: {topic: c}\n"
    lines = [Line(side, row, 0, offset, 0, "f", 1, 1) for side in Side for offset, row in enumerate(rows)]
    answer = check(loads(head + ASKED), lines)
    assert answer["verdict"] == "EQUIVALENT"
    told = {one["id"].removeprefix("intermediate."): one["candidate"] for one in answer["checks"]}
    return {
        name: (one["state"], [first["position"]["offset"] for first in one["first"]])
        for name, one in told.items()
    }


def row(key: str | int, value: Any, **more: Any) -> bytes:
    return record({"k": key, "n": {"v": value}, **more})


NIGHT = record({"k": "night"})


def test_what_is_asked_of_intermediate_rows_is_a_check_of_each_side() -> None:
    smaller, later = row("a", 1), row("b", 6)
    found = asked(row("a", 2), smaller, row("a", 2), row("b", 5), NIGHT, row("a", 2, seen=7), later)
    assert found == {"monotone.n.v": ("violated", [1]), "final_after_settled": ("violated", [6])}


def test_a_deletion_ends_the_rows_of_its_key_however_the_key_is_written() -> None:
    gone = (row("7", 5), deletion(b"7"), row(7, 3), row("7", 4), NIGHT)
    assert asked(*gone) == {"monotone.n.v": ("holds", []), "final_after_settled": ("holds", [])}
    assert asked(*gone, deletion(b'{"k":"7"}'))["final_after_settled"] == ("violated", [5])


def test_an_intermediate_row_without_a_number_leaves_it_undecided() -> None:
    assert asked(row("a", 2), row("a", None), row("a", 3), NIGHT)["monotone.n.v"] == ("undecided", [])


def test_recorded_output_does_not_tell_which_windows_a_watermark_has_settled() -> None:
    rows_of = "{key: [k], settled_by: {watermark: end}, intermediate: {final_after_settled: true}}"
    file = f"{SPEAKING}emits: {{upsert: {rows_of}}}\n"
    rows = [record({"k": "a", "end": 5}), record({"k": "a", "end": 5, "v": 1})]
    lines = [Line(side, one, 0, offset, 0, "f", 1, 1) for side in Side for offset, one in enumerate(rows)]
    (told,) = check(loads(file), lines)["checks"]
    assert (told["id"], told["candidate"]["state"]) == ("intermediate.final_after_settled", "not_checked")
