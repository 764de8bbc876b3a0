"""Prepares two differing texts so that people see where: escapes look-alikes, cuts the common start."""

from __future__ import annotations

from itertools import takewhile
from unicodedata import normalize

from rich.cells import cell_len

_ENOUGH = 8
"""At least so many cells of a text are shown from the first difference on."""


def told_apart(one: str, other: str) -> tuple[str, str]:
    r"""Both texts; characters outside ASCII are escaped if the texts look alike, as with a combining accent.

    >>> print(*told_apart("é", "e\u0301"))
    \xe9 e\u0301
    """
    if one == other or normalize("NFKC", one) != normalize("NFKC", other):
        return one, other
    return _escaped(one), _escaped(other)


def from_difference(one: str, other: str, room: int, more: str = "…") -> tuple[str, str]:
    """Both texts, without their common beginning if it would push out the difference.

    `room` is the number of cells that each may take; the caller cuts a longer text at its end.

    >>> from_difference("0123456789abcdefgh-REF", "0123456789abcdefgh-CAN", 18)
    ('…defgh-REF', '…defgh-CAN')
    """
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    begin = same - room // 3
    fit = max(cell_len(one), cell_len(other)) <= room or cell_len(one[:same]) + _ENOUGH <= room
    if one == other or fit or begin <= 0:
        return one, other
    return more + one[begin:], more + other[begin:]


def _escaped(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()
