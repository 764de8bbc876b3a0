"""The fast path of `twinstream.core.canonical`: gives the same bytes, mostly written by orjson.

orjson writes texts, whole numbers of up to 64 bits, booleans and null as the definition does. It writes
floats so too, as long as the definition uses no exponent. Any value that holds anything else is left to the
definition as a whole.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson

from twinstream.core import canonical as exact

SIMPLE = frozenset((str, int, bool, type(None)))
"""The types of members whose canonical text is what orjson writes."""

_dumps, SORTED = orjson.dumps, orjson.OPT_SORT_KEYS


def canonical_value(value: Any) -> bytes:
    """The canonical form of a value; agrees with `core.canonical` on every value.

    orjson returns blocks of 1 KiB cut short; keeping thousands of them costs 2 µs each. So its text is copied
    into a block of its own size.
    """
    try:
        if type(value) is dict and SIMPLE.issuperset(map(type, value.values())):
            return b"%b" % _dumps(value, option=SORTED)
        return b"%b" % _dumps(_plain(value), option=SORTED)
    except (OverflowError, orjson.JSONEncodeError):
        return exact.canonical(value)


def _plain(value: Any) -> Any:
    """The value with each number as a type that orjson writes in canonical form.

    Raises OverflowError for a number that orjson would write in another way.
    """
    kind = type(value)
    if kind in SIMPLE:
        return value
    if kind is dict:
        if SIMPLE.issuperset(map(type, value.values())):
            return value
        return {name: _plain(member) for name, member in value.items()}
    if kind is list:
        return [_plain(item) for item in value]
    if kind is Decimal and _is_shortest(value):
        value = float(value)
    elif kind is not float:
        raise OverflowError
    if value == 0 or 1e-3 <= abs(value) < 1e15:
        return int(value) if value.is_integer() else value
    raise OverflowError


def is_number(value: Any) -> bool:
    """Whether a decoded value is a number; a truth value is none."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_shortest(number: Decimal) -> bool:
    """Whether the nearest float of a decimal is written back as that decimal."""
    return len(number.as_tuple().digits) <= 15 and -30 < number.adjusted() < 16
