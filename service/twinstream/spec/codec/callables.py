"""Finds, calls and checks the functions of the user: one that decides dependence, and those of `any_of`.

A function is fenced: an exception from it, or an answer that breaks a law, becomes a `RelationError` with the
function's name. That ends matching; it is never a match and never a difference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from twinstream.core.events import Form
from twinstream.errors import RelationError, SpecError, place_of

VALUES_KEPT = 4096
"""Decoded values kept, since each waiting event is asked for again and again."""

Function = Callable[..., Any]
DecodeValue = Callable[[bytes], Any]


def find(name: str, comparison: str, key: str = "order.callable") -> Function:
    """The function with a name such as ``package.module:function``, also from the current directory.

    Raises SpecError, about the `key` that names it.
    """
    module_name, _, attribute = name.partition(":")
    try:
        module = _import(module_name)
    except ImportError as error:
        problem = f"{module_name!r} cannot be imported: {error}"
    except Exception as error:  # noqa: BLE001 - the user's module may raise anything
        problem = f"{module_name!r} cannot be imported: it failed with {place_of(error)}"
    else:
        function: Function | None = getattr(module, attribute, None)
        if callable(function):
            return function
        problem = f"module {module_name!r} has no function {attribute!r}"
    raise SpecError(comparison, None, key, problem)


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        here = str(Path.cwd())
        if here in sys.path:
            raise
        sys.path.insert(0, here)
        return import_module(name)


def related_by(name: str, function: Function, decode: DecodeValue) -> Callable[[Form, Form], bool]:
    """The function as a relation on forms: called with decoded values, checked to be symmetric."""

    @lru_cache(VALUES_KEPT)
    def value_of(record: bytes) -> Any:
        return friendly(decode(record))

    def related(one: Form, another: Form) -> bool:
        first, second = one[3], another[3]
        try:
            there = function(value_of(first), value_of(second))
            back = function(value_of(second), value_of(first))
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything
            raise RelationError(f"`order.callable` {name} failed with {place_of(error)}") from None
        if type(there) is not bool or type(back) is not bool:
            given = type(there if type(there) is not bool else back).__name__
            raise RelationError(f"`order.callable` {name} answered a {given}, not True or False")
        if there != back:
            problem = f"is not symmetric: it says {there} one way and {back} the other"
            raise RelationError(f"`order.callable` {name} {problem}")
        return there

    return related


class Judging:
    """A function of `any_of`, asked about one event: fenced, and checked to depend on nothing else.

    It is asked twice, each time with a copy of the value: what it changes there, or remembers, must not
    matter. After a failure it is not asked again: matching has ended, and no answer would count.
    """

    def __init__(self, key: str, name: str, function: Function) -> None:
        self._named, self._function = f"`{key}` {name}", function
        self._failure: str | None = None

    def __call__(self, value: Any) -> bool:
        """Whether the event has a right value. Raises RelationError."""
        if self._failure is None:
            try:
                first, again = self._function(friendly(value)), self._function(friendly(value))
            except Exception as error:  # noqa: BLE001 - the user's code may raise anything
                self._failure = f"{self._named} failed with {place_of(error)}"
            else:
                if type(first) is bool and first is again:
                    return first
                self._failure = f"{self._named} {_wrong(first, again)}"
        raise RelationError(self._failure)


def _wrong(first: Any, again: Any) -> str:
    for answer in (first, again):
        if type(answer) is not bool:
            return f"answered a {type(answer).__name__}, not True or False"
    return f"must depend on the event alone: asked twice about one, it says {first} and then {again}"


def friendly(value: Any) -> Any:
    """A decoded value with numbers as a program expects them: int or float where that loses nothing.

    >>> from decimal import Decimal
    >>> friendly({"a": Decimal("0.50"), "b": Decimal("0.10000000000000000001")})
    {'a': 0.5, 'b': Decimal('0.10000000000000000001')}
    """
    if isinstance(value, Decimal):
        near = float(value)
        return near if Decimal(repr(near)) == value else value
    if isinstance(value, list):
        return [friendly(item) for item in value]
    if isinstance(value, dict):
        return {name: friendly(member) for name, member in value.items()}
    return value
