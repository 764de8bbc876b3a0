"""The fast path of `twinstream.core.canonical`: the same bytes for every value, mostly written by orjson.

orjson writes texts, whole numbers of up to 64 bits, booleans and null as the definition has them, and a float
too, where the definition does not turn to an exponent. A value that holds anything else is left to the
definition as a whole.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson

from twinstream.core import canonical as exact

SIMPLE = frozenset((str, int, bool, type(None)))
"""The types of members whose canonical text is what orjson writes."""

_dumps, _SORTED = orjson.dumps, orjson.OPT_SORT_KEYS


def canonical_value(value: Any) -> bytes:
    """The canonical form of a value; agrees with `core.canonical` on every value."""
    if type(value) is dict and SIMPLE.issuperset(map(type, value.values())):
        try:
            return sorted_text(value)
        except orjson.JSONEncodeError:
            return exact.canonical(value)
    try:
        return sorted_text(_plain(value))
    except (OverflowError, orjson.JSONEncodeError):
        return exact.canonical(value)


def sorted_text(value: Any) -> bytes:
    """What orjson writes of a value with sorted members, in a block of its own size.

    orjson hands out blocks of 1 KiB cut short; to keep thousands of those costs 2 µs each.
    """
    return b"%b" % _dumps(value, option=_SORTED)


def _plain(value: Any) -> Any:
    """The value with each number in the form that has its canonical text when orjson writes it.

    Raises OverflowError for what orjson would write in another way.
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


def _is_shortest(number: Decimal) -> bool:
    """Whether a decimal is the one that its nearest float stands for."""
    return len(number.as_tuple().digits) <= 15 and -30 < number.adjusted() < 16
