"""Describes a value that may not be shown: its type, and its length if it has one."""

from __future__ import annotations

from typing import Any


def trait(value: Any) -> str:
    """Type and length of a decoded value.

    >>> trait("Ann"), trait([1, 2]), trait(1.5), trait(None)
    ('text, 3 characters', 'list of 2', 'number', 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return f"text, {len(value)} characters"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, dict):
        return f"object of {len(value)}"
    return f"list of {len(value)}" if isinstance(value, list) else "number"
