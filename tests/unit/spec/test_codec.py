from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import spec
from twinstream.core.events import Form
from twinstream.spec.codec.codec import IGNORED, Codec, RefusedRecord

KINDS = """
kinds:
  heartbeat: {where: {type: hb}, ignore: true}
  ride: {where: {type: [ride, 1, null], n: true}}
"""


def codec(order: str = "total", more: str = "") -> Codec:
    return Codec(spec(order, more))


def reasons(codec: Codec, *records: bytes | None) -> list[RefusedRecord]:
    forms, refused = codec.forms(records)
    assert len(forms) == len(records)
    assert all(forms[place] is IGNORED for place, _ in refused)
    return refused


def equal(codec: Codec, one: bytes, other: bytes) -> bool:
    forms = [codec.form(record) for record in (one, other)]
    return codec.canonical(forms[0].content) == codec.canonical(forms[1].content)


# -- forms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["total", "unordered", "{per_key: [k]}"])
def test_equal_events_have_equal_forms_however_they_are_written(order: str) -> None:
    reader = codec(order)
    one, other = b'{"k":1,"v":"a"}', b'{ "v": "\\u0061", "k": 1.0 }'
    assert equal(reader, one, other)
    assert reader.form(one).route == reader.form(other).route
    assert not equal(reader, one, b'{"k":1,"v":"b"}')


def test_a_bag_has_a_lane_for_each_value_and_a_sequence_has_one() -> None:
    records = (b'{"k":1}', b'{"k":2}')
    assert len({codec("unordered").form(record).route for record in records}) == 2
    assert len({codec("total").form(record).route for record in records}) == 1


@pytest.mark.parametrize("fields", ["k", "j, k", "o.k"])
@pytest.mark.parametrize(
    "record", [b'{"j":1}', b'{"j":1,"o":{}}', b'{"j":1,"o":5}', b"[1]", b'"k"', b"5", b"null"]
)
def test_an_event_without_the_key_is_refused_with_the_field(fields: str, record: bytes) -> None:
    (refused,) = reasons(codec(f"{{per_key: [{fields}]}}"), record)
    assert refused.reason is not None
    assert "that the order needs, is missing" in refused.reason


def test_a_null_key_is_a_key() -> None:
    reader = codec("{per_key: [k]}")
    assert reader.form(b'{"k":null}').route == reader.form(b'{"k": null }').route


# -- kinds -----------------------------------------------------------------------------------------------


def events() -> Iterator[tuple[str, str, str]]:
    """The rows of `kinds.txt`: declared kinds, a record, and its kind or why it has none."""
    for section in Path(__file__).with_name("kinds.txt").read_text(encoding="utf-8").split("\n\n"):
        kinds, *rows = section.splitlines()
        for row in rows:
            record, _, said = row.strip().partition(" => ")
            yield kinds, record, said


@pytest.mark.parametrize(("kinds", "record", "said"), list(events()))
def test_the_first_kind_that_fits_is_that_of_an_event(kinds: str, record: str, said: str) -> None:
    forms, refused = codec(more=f"kinds: {{{kinds}}}").forms([record.encode()])
    assert [form[2] or refused[0].reason or "left out" for form in forms] == [said]


# -- runs of records -------------------------------------------------------------------------------------


def test_refused_records_are_named_by_their_place() -> None:
    refused = reasons(codec(more=KINDS), b'{"type":"ride","n":true}', b"{", b'{"type":"hb"}', None)
    assert [place for place, _ in refused] == [1, 2, 3]
    assert refused[0].reason == "not JSON: Expecting property name enclosed in double quotes at character 1"
    assert refused[2].reason == "a tombstone (a record without a value) is not an event"


def test_an_empty_record_is_refused_though_one_was_ignored_before() -> None:
    reader = codec(more=KINDS)
    reasons(reader, b'{"type":"hb"}')
    assert reasons(reader, b"")[0].reason == "not JSON: Expecting value at character 0"


def test_a_record_whose_form_is_known_is_not_read() -> None:
    known = Form("k", b"", "event", b"")
    forms, refused = codec("{per_key: [k]}").forms([b'{"k":1}', b"no record"], known=[None, known])
    assert ([form[0] for form in forms], refused) == ([1, "k"], [])


# -- identity and scope ----------------------------------------------------------------------------------


def test_identity_tells_a_missing_member_from_null() -> None:
    identity = codec(more="identity: [id, x.y]").identity
    assert identity is not None
    records: list[bytes] = [b'{"id":1,"x":{"y":2}}', b'{"id":1}', b'{"id":1,"x":{"y":null}}', b'{"id":2}']
    assert len({identity(record) for record in records}) == 4
    assert identity(b'{"id":1}') == identity(b'{"id":1.0,"z":5}')


def test_a_scope_names_the_fields_of_the_order() -> None:
    record = b'{"a":1,"b":{"c":null}}'
    expected: dict[str, dict[str, Any]] = {
        "total": {},
        "unordered": {},
        "{per_key: [a, b.c]}": {"a": 1, "b.c": None},
    }
    for order, scope in expected.items():
        assert codec(order).scope(record) == scope
