"""JSON values with numbers as they are spelt: how they are written, and what they mean."""

from __future__ import annotations

import json
from collections.abc import Hashable
from fractions import Fraction
from math import isfinite
from typing import Any, NamedTuple


class Number(NamedTuple):
    """A number as it is spelt."""

    text: str


class Style(NamedTuple):
    """How a value is written."""

    comma: str = ","
    colon: str = ":"
    margin: str = ""
    reverse: bool = False
    ascii: bool = False
    escape: bool = False


PLAIN = Style()


def write(tree: Any, style: Style = PLAIN) -> str:
    """The text of a value in some style."""
    if isinstance(tree, Number):
        return tree.text
    if isinstance(tree, str):
        text = json.dumps(tree, ensure_ascii=style.ascii)
        return text.replace("a", "\\u0061") if style.escape and "\\" not in text else text
    if isinstance(tree, list):
        return f"[{style.margin}{style.comma.join(write(item, style) for item in tree)}{style.margin}]"
    if isinstance(tree, dict):
        members = [
            f"{write(name, style)}{style.colon}{write(member, style)}" for name, member in tree.items()
        ]
        return (
            "{" + style.margin + style.comma.join(members[:: -1 if style.reverse else 1]) + style.margin + "}"
        )
    return json.dumps(tree)


def meaning(value: Any) -> Hashable:
    """The value itself, with its type: numbers as fractions, floats as the decimals that stand for them."""
    match value:
        case Number(text):
            return "number", Fraction(text)
        case list():
            return "array", tuple(map(meaning, value))
        case dict():
            return "object", frozenset((name, meaning(member)) for name, member in value.items())
        case float() if isfinite(value):
            return "number", Fraction(repr(value))
        case int() if not isinstance(value, bool):
            return "number", Fraction(value)
    return type(value).__name__, str(value)
