from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from twinstream.adapters.files.jsonl import LineShape
from twinstream.adapters.files.values import read_values, record_of
from twinstream.core.events import Side
from twinstream.errors import InputError


@dataclass
class Ride:
    fare: float | None
    unset: int = field(init=False)
    _seen: int = 0

    def __post_init__(self) -> None:
        self.set_later = 7


@dataclass(slots=True)
class Stop:
    fare: float | None
    unset: int = field(init=False)


class Fare(Enum):
    FREE = None
    UNKNOWN = float("nan")


@pytest.mark.parametrize(
    ("value", "record"),
    [
        ({"a": [1, 2.5, None, True, "ü"]}, '{"a":[1,2.5,null,true,"ü"]}'),
        (Decimal("0.10000000000000000001"), "0.10000000000000000001"),
        ({"n": 10**30, "d": Decimal("1.50"), "l": [-(10**25)]}, f'{{"n":{10**30},"d":1.50,"l":[-{10**25}]}}'),
        (None, "null"),
        ("text", '"text"'),
        (datetime(2026, 5, 1, tzinfo=UTC), '"2026-05-01T00:00:00+00:00"'),
        ([Ride(2.5, 1)], '[{"fare":2.5,"set_later":7}]'),
        ([Ride(None, 1), Fare.FREE], '[{"fare":null,"set_later":7},null]'),
        ([Stop(None)], '[{"fare":null}]'),
    ],
)
def test_a_value_is_written_without_loss(value: Any, record: str) -> None:
    assert record_of(value) == record.encode()


def test_bytes_are_a_record_in_every_format() -> None:
    assert record_of(b'{"a": 1}') == b'{"a": 1}'
    assert record_of(b"\x81", "msgpack") == b"\x81"
    assert record_of("ü", "utf8") == "ü".encode()


@pytest.mark.parametrize(
    ("value", "form", "message"),
    [
        ({"a": float("nan")}, "json", "candidate:3: nan is no JSON number"),
        ({"a": [{"b": float("-inf")}]}, "json", "candidate:3: -inf is no JSON number"),
        (Ride(float("inf")), "json", "candidate:3: inf is no JSON number"),
        ([Fare.UNKNOWN], "json", "candidate:3: nan is no JSON number"),
        (Decimal("NaN"), "json", "candidate:3: cannot be written as JSON: NaN is no JSON value"),
        ({"a": {1, 2}}, "json", "candidate:3: cannot be written as JSON: set is no JSON value"),
        ({1: 2}, "json", "candidate:3: cannot be written as JSON: Dict key must be str"),
        ({"a": 1}, "avro", "candidate:3: a record in the format avro is given as bytes, not as dict"),
        (5, "utf8", "candidate:3: a record in the format utf8 is given as text or bytes, not as int"),
    ],
)
def test_a_value_that_cannot_be_written_is_refused_with_its_number(
    value: Any, form: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        list(read_values([b"", b"", value], Side.RIGHT, LineShape(form)))
    assert str(caught.value) == message


def test_a_null_among_the_members_is_no_number_that_was_lost() -> None:
    assert record_of({"a": None, "b": "null", "c": 1.5}) == b'{"a":null,"b":"null","c":1.5}'
