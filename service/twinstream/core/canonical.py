"""The canonical form of a value: two values are equal when these bytes are.

Every record format decodes to values: null, boolean, number, text, bytes, array, or object with texts
as names. Rules of equality:

- Values are typed: a boolean is not a number, bytes are not a text, null is not an absent member.
- Numbers compare by value, exactly: 1, 1.0 and 1e0 are one number, 0.1 and 0.10000000000000000001 are two.
- A binary float stands for the shortest decimal that reads back as the same float, as in every JSON writer;
  so the double 0.1 of a binary format is the 0.1 of a JSON text. NaN and the infinities equal themselves.
- The order of members never matters, the order of an array does.

The form is a JSON text wherever the value has one. Values that JSON lacks are written as words that JSON
lacks, too: ``NaN``, ``Infinity``, ``-Infinity``, and ``x"00ff"`` for bytes.

This is the definition: slow, exact, on the standard library. `spec.codec.canonical` has a fast path that
must agree with it.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

from twinstream.errors import DecodeError

DEPTH_LIMIT = 128
_PLAIN_EXPONENTS = range(-4, 16)
_FLOAT_DIGITS = 10**15
"""A decimal of fewer digits is the shortest one that reads back as its nearest float."""
_INT = 10**18
"""A larger whole number is a decimal: Python's `int` is slow to read and to write then, and bounded."""

_LONGEST_OF_64_BITS = 20
"""The digits, or sign and digits, of the longest whole number that orjson reads as one."""


def parse(record: bytes, around: int = 0) -> Any:
    """Read a JSON text exactly: numbers as int or Decimal, nothing rounded, nothing repaired.

    Raises DecodeError unless the record is one JSON value in UTF-8, and for NaN, infinities, duplicate member
    names, lone surrogates and nesting deeper than 128, not counting the levels `around`.
    """
    try:
        text = record.decode("utf-8")
        value = _parse(text)
        if b"\\u" in record or record.count(b"[") + record.count(b"{") > DEPTH_LIMIT:
            check(value, -around)
    except UnicodeDecodeError as error:
        raise DecodeError(f"not UTF-8 at byte {error.start}") from None
    except UnicodeEncodeError:
        raise DecodeError("a text holds half of a surrogate pair") from None
    except RecursionError:
        raise DecodeError(f"nested deeper than {DEPTH_LIMIT}") from None
    except json.JSONDecodeError as error:
        if record.startswith(b"\xef\xbb\xbf"):
            raise DecodeError("not JSON: it begins with a byte order mark") from None
        raise DecodeError(f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos}") from None
    return value


def canonical(value: Any) -> bytes:
    r"""The canonical bytes of a value. Complexity: O(n log n) in its size.

    >>> canonical({"b": Decimal("1.0"), "a": [1e-7, b"\x00", float("inf"), None, True]})
    b'{"a":[1e-7,x"00",Infinity,null,true],"b":1}'
    """
    return _text(value).encode("utf-8")


def number_text(number: int | Decimal) -> str:
    """The text of a number, the same for equal numbers.

    >>> number_text(Decimal("1.50")), number_text(Decimal("1e2")), number_text(Decimal("-0.0"))
    ('1.5', '100', '0')
    """
    if isinstance(number, int):
        number = Decimal(number)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "no reader makes a decimal that is not finite"
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    if not stripped:
        return "0"
    exponent += len(text) - len(stripped)
    return ("-" if sign else "") + _positional(stripped, exponent)


def _positional(digits: str, exponent: int) -> str:
    """The text of digits, without leading or trailing zeros, times a power of ten."""
    point = len(digits) + exponent
    if point not in range(_PLAIN_EXPONENTS.start + 1, 21):
        return f"{digits}e{exponent}"
    if exponent >= 0:
        return digits + "0" * exponent
    return f"{digits[:point]}.{digits[point:]}" if point > 0 else f"0.{'0' * -point}{digits}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(name)}:{_text(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    return _quote(value) if isinstance(value, str) else _scalar_text(value)


def _scalar_text(value: bool | int | Decimal | float | bytes | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f'x"{value.hex()}"'
    if isinstance(value, float):
        return number_text(Decimal(repr(value))) if isfinite(value) else _NOT_FINITE[str(value)]
    return number_text(value)


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


_quote = json.encoder.encode_basestring


def _whole(text: str) -> int | Decimal:
    """An exact number: an int as far as the quick reader has one, so that spelling decides no type."""
    return int(text) if len(text) <= _LONGEST_OF_64_BITS else Decimal(text)


def _fraction(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise DecodeError("the exponent of a number is out of range") from None


def _refuse_constant(name: str) -> Any:
    raise DecodeError(f"{name} is not a JSON number")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise DecodeError("a member stands twice in one object")
    return members


_parse = json.JSONDecoder(
    parse_float=_fraction, parse_int=_whole, parse_constant=_refuse_constant, object_pairs_hook=_members
).decode


def check(value: Any, depth: int = 0) -> None:
    """Refuse nesting deeper than 128, and texts that UTF-8 cannot encode.

    `depth` is the number of levels around the value. Raises DecodeError for nesting, UnicodeEncodeError for
    texts.
    """
    if depth == DEPTH_LIMIT and isinstance(value, (list, dict)):
        raise DecodeError(f"nested deeper than {DEPTH_LIMIT}")
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, list):
        for item in value:
            check(item, depth + 1)
    elif isinstance(value, dict):
        for name, member in value.items():
            name.encode("utf-8")
            check(member, depth + 1)


def decimal_number(digits: int, exponent: int) -> int | float | Decimal:
    """The number ``digits * 10**exponent``, exactly, as the type that is quickest to compare.

    >>> decimal_number(1250, -2), decimal_number(1200, -2), decimal_number(12345678901234567890, -2)
    (12.5, 12, Decimal('123456789012345678.90'))
    """
    if exponent >= 0 and -_INT < (whole := digits * int(10**exponent)) < _INT:
        return whole
    if -22 <= exponent < 0 and -_FLOAT_DIGITS < digits < _FLOAT_DIGITS:
        number = digits / 10**-exponent
        return int(number) if number.is_integer() else number
    return Decimal((int(digits < 0), Decimal(digits).as_tuple().digits, exponent))
