"""The numbers of differences in words: by kind, and how many are final. Every text that tells them asks here.

A difference is *final* when its scope is closed and a checkpoint has it, else *provisional*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K", bound=str)


def kinds_text(by_kind: Mapping[K, int]) -> str:
    """The number of each kind that there is.

    >>> kinds_text({"missing": 1_416, "extra": 0, "changed": 3})
    '1,416 missing, 3 changed'
    """
    return ", ".join(f"{count:,} {kind}" for kind, count in by_kind.items() if count)


def sure_text(total: int, final: int, why: str = "") -> str:
    """How many of all differences are final, and how many provisional, and `why` if that needs a reason.

    It is empty if all are final: then there is nothing to divide.

    >>> sure_text(782, 360), sure_text(2, 0, "not compared further"), sure_text(5, 5)
    ('360 final, 422 provisional', '2 provisional: not compared further', '')
    """
    if total <= final:
        return ""
    parts = (f"{final:,} final" if final else "", f"{total - final:,} provisional")
    return ": ".join(filter(None, (", ".join(filter(None, parts)), why)))


def found_text(by_kind: Mapping[K, int], final: int, why: str = "") -> str:
    """The number of each kind, and how many of them are final.

    >>> found_text({"missing": 416, "changed": 366}, 360)
    '416 missing, 366 changed (360 final, 422 provisional)'
    """
    sure = sure_text(sum(by_kind.values()), final, why)
    return f"{kinds_text(by_kind)}{sure and f' ({sure})'}"
