"""The canonical form of a JSON value: two values are equal when these bytes are.

Values are typed: a boolean is not a number, null is not an absent member. Numbers compare by value, exactly:
1, 1.0 and 1e0 are one number, 0.1 and 0.10000000000000000001 are two. The order of members never matters,
the order of an array does.

This is the definition: slow, exact, on the standard library. `twinstream.spec.codec` has a fast path that
must agree with it.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

from twinstream.errors import DecodeError

DEPTH_LIMIT = 128
_PLAIN_EXPONENTS = range(-4, 16)


def parse(record: bytes) -> Any:
    """Read a JSON text exactly: numbers as int or Decimal, nothing rounded, nothing repaired.

    Raises DecodeError for what is not one JSON value in UTF-8, and for NaN, infinities, duplicate member
    names, lone surrogates and nesting deeper than 128.
    """
    try:
        text = record.decode("utf-8")
        value = json.loads(
            text,
            parse_float=_number,
            parse_int=_number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_members,
        )
        _check(value, 0)
    except UnicodeDecodeError as error:
        raise DecodeError(f"not UTF-8 at byte {error.start}") from None
    except UnicodeEncodeError:
        raise DecodeError("a text holds half of a surrogate pair") from None
    except RecursionError:
        raise DecodeError(f"nested deeper than {DEPTH_LIMIT}") from None
    except json.JSONDecodeError as error:
        raise DecodeError(f"not JSON: {error.msg} at character {error.pos}") from None
    return value


def canonical(value: Any) -> bytes:
    """The canonical bytes of a value read by `parse`. Complexity: O(n log n) in its size."""
    return _text(value).encode("utf-8")


def number_text(number: int | Decimal) -> str:
    """The one text of a number's value.

    >>> number_text(Decimal("1.50")), number_text(Decimal("1e2")), number_text(Decimal("-0.0"))
    ('1.5', '100', '0')
    """
    if isinstance(number, int):
        number = Decimal(number)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "NaN and infinities are refused when a value is read"
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    if not stripped:
        return "0"
    exponent += len(text) - len(stripped)
    return ("-" if sign else "") + _positional(stripped, exponent)


def _positional(digits: str, exponent: int) -> str:
    """Digits without leading or trailing zeros, times a power of ten."""
    point = len(digits) + exponent
    if point not in range(_PLAIN_EXPONENTS.start + 1, 21):
        return f"{digits}e{exponent}"
    if exponent >= 0:
        return digits + "0" * exponent
    return f"{digits[:point]}.{digits[point:]}" if point > 0 else f"0.{'0' * -point}{digits}"


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, Decimal)):
        return number_text(value)
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    return "{" + ",".join(f"{_quote(name)}:{_text(value[name])}" for name in sorted(value)) + "}"


_quote = json.encoder.encode_basestring


def _number(text: str) -> int | Decimal:
    """An exact number; an int where the text is a short integer."""
    if len(text) < 19 and text.lstrip("-").isdigit():
        return int(text)
    try:
        return Decimal(text)
    except InvalidOperation:
        raise DecodeError(f"the exponent of {text} is out of range") from None


def _refuse_constant(name: str) -> Any:
    raise DecodeError(f"{name} is not a JSON number")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DecodeError(f"member {twice!r} stands twice in one object")
    return members


def _check(value: Any, depth: int) -> None:
    """Refuse what no text may hold; `depth` counts the arrays and objects around the value."""
    if depth == DEPTH_LIMIT and isinstance(value, (list, dict)):
        raise DecodeError(f"nested deeper than {DEPTH_LIMIT}")
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, list):
        for item in value:
            _check(item, depth + 1)
    elif isinstance(value, dict):
        for name, member in value.items():
            name.encode("utf-8")
            _check(member, depth + 1)
