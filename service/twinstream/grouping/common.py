"""Finds the members that all differences of a group have in common: all are of carrier DL, say.

The first difference has every member in common with itself. Each further one takes away the members in which
it differs, so soon only a few are left to look at.

Complexity: O(members) for the first difference, then O(members left).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

MEMBERS = 32
"""The most members of the first difference that are looked at, so that memory stays bounded."""
_ABSENT, _UNREAD = object(), object()


class Members(NamedTuple):
    """The members of an event as they are compared; `text` gives a value as it may be told, or None."""

    values: Mapping[str, Any]
    text: Callable[[str, Any], str | None]


NO_MEMBERS = Members({}, lambda _, __: None)


class CommonMembers:
    """The members with one value in all differences that were fed.

    >>> common = CommonMembers()
    >>> for flight in (1, 2):
    ...     common.add(Members({"carrier": "DL", "flight": flight}, lambda _, value: str(value)))
    >>> list(common)
    [('carrier', 'DL')]
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left: dict[str, tuple[Any, str]] | None = None

    def add(self, members: Members) -> None:
        """Take away the members that the event of a difference lacks, or has with another value."""
        if self._left is None:
            self._left = dict(islice(_plain_members(members), MEMBERS))
            return
        for name, (first, text) in tuple(self._left.items()):
            value = members.values.get(name, _ABSENT)
            if first is _UNREAD and value is not _ABSENT and members.text(name, value) == text:
                self._left[name] = value, text
            elif value != first or type(value) is not type(first):
                del self._left[name]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Each member with the text of its value."""
        return ((name, text) for name, (_, text) in (self._left or {}).items())

    def state(self) -> list[list[str]] | None:
        """The members as plain data; None before the first difference."""
        return None if self._left is None else list(map(list, self))

    def restore(self, state: list[list[str]] | None) -> None:
        """Take over a `state`. The values themselves are known again with the next difference."""
        self._left = None if state is None else {name: (_UNREAD, text) for name, text in state}


def _plain_members(members: Members) -> Iterator[tuple[str, tuple[Any, str]]]:
    for name, value in members.values.items():
        text = None if isinstance(value, (dict, list)) else members.text(name, value)
        if text is not None:
            yield name, (value, text)
