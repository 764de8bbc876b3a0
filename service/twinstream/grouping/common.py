"""Finds the members that all differences of a group have in common: all are of carrier DL, say.

The first difference has every member in common with itself. Each further one takes away the members in which
it differs, so soon only a few are left to look at.

Complexity: O(members) for the first difference, and for each that takes one away; else O(members left).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
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

    __slots__ = ("_fed", "_left", "_of", "_typed", "_values")

    def __init__(self) -> None:
        self._fed = False
        self._keep({})

    def add(self, members: Members) -> None:
        """Take away the members that the event of a difference lacks, or has with another value."""
        if self._fed and self._of is not None:
            try:  # The test of them all without a step of Python for each text.
                found = self._of(members[0])
            except KeyError:
                found = None
            if found == self._values:
                for place, kind in self._typed:
                    if type(found[place]) is not kind:
                        break
                else:
                    return
            self._narrow(members)
        elif not self._fed:
            self._fed = True
            self._keep(dict(islice(_plain_members(members), MEMBERS)))

    def _keep(self, left: dict[str, tuple[Any, str]]) -> None:
        names = list(left)
        self._left = left
        # One name more, so that it always gives a tuple.
        self._of = itemgetter(*names, names[0]) if names else None
        self._values = tuple(left[name][0] for name in (*names, *names[:1]))
        # A text equals only a text, a number also one of another type.
        self._typed = [
            (place, type(value)) for place, value in enumerate(self._values[:-1]) if type(value) is not str
        ]

    def _narrow(self, members: Members) -> None:
        left = {}
        for name, (first, text) in self._left.items():
            value = members.values.get(name, _ABSENT)
            if first is _UNREAD:
                same = value is not _ABSENT and members.text(name, value) == text
            else:
                same = value == first and type(value) is type(first)
            if same:
                left[name] = value, text
        self._keep(left)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Each member with the text of its value."""
        return ((name, text) for name, (_, text) in self._left.items())

    def state(self) -> list[list[str]] | None:
        """The members as plain data; None before the first difference."""
        return [list(member) for member in self] if self._fed else None

    def restore(self, state: list[list[str]] | None) -> None:
        """Take over a `state`. The values themselves are known again with the next difference."""
        self._fed = state is not None
        self._keep({name: (_UNREAD, text) for name, text in state or ()})


def _plain_members(members: Members) -> Iterator[tuple[str, tuple[Any, str]]]:
    for name, value in members.values.items():
        text = None if isinstance(value, (dict, list)) else members.text(name, value)
        if text is not None:
            yield name, (value, text)
