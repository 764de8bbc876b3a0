"""Finds where two values differ, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.file.paths import ABSENT, Path


def differences(left: Any, right: Any, at: Path = ()) -> Iterator[tuple[Path, tuple[Any, Any]]]:
    """The paths at which two values differ, with both members; `ABSENT` where one has none.

    >>> list(differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}))
    [(('b', 'c'), (2, 3))]
    """
    if isinstance(left, dict) and isinstance(right, dict):
        for name in sorted({*left, *right}):
            yield from differences(left.get(name, ABSENT), right.get(name, ABSENT), (*at, name))
    elif left is ABSENT or right is ABSENT or canonical_value(left) != canonical_value(right):
        yield at, (left, right)
