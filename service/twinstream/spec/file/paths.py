r"""Field paths: dotted names that reach into a value. A backslash escapes a dot: ``a\.b`` is one name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

Path = tuple[str, ...]

ABSENT = object()
"""`read` returns this for an absent member; it differs from null."""


def parse_path(text: str) -> Path:
    r"""The names of a path.

    >>> parse_path(r"meta.host"), parse_path(r"a\.b.c")
    (('meta', 'host'), ('a.b', 'c'))
    """
    if "\\" not in text:
        return tuple(filter(None, text.split(".")))
    return tuple(re.sub(r"\\(.)", r"\1", name) for name in re.findall(r"(?:[^.\\]|\\.)+", text))


def path_text(path: Path) -> str:
    r"""The text of a path, the inverse of `parse_path`.

    >>> print(path_text(("a.b", "c")))
    a\.b.c
    """
    return ".".join(
        re.sub(r"([.\\])", r"\\\1", name) if "." in name or "\\" in name else name for name in path
    )


def overlap(one: Path, another: Path) -> bool:
    """Whether one path equals the other or is an ancestor or a descendant of it."""
    shorter = min(len(one), len(another))
    return one[:shorter] == another[:shorter]


def holds(outer: tuple[str | int, ...], inner: tuple[str | int, ...]) -> bool:
    """Whether one path is the other or leads to it."""
    return inner[: len(outer)] == outer


def first_clash(fields: Sequence[str], clash: Callable[[Path, Path], bool]) -> tuple[int, str] | None:
    """The first field that clashes with an earlier one: its index, and the earlier one."""
    paths = [parse_path(field) if field.startswith("$") else ("", *parse_path(field)) for field in fields]
    for place, path in enumerate(paths):
        for earlier in range(place):
            if clash(path, paths[earlier]):
                return place, fields[earlier]
    return None


def put(value: Any, path: Path, member: Any) -> None:
    """Put a member at a path, in objects made on the way; what stands there or in the way stays."""
    for name in path[:-1]:
        value = value.setdefault(name, {}) if type(value) is dict else value
    if type(value) is dict:
        value.setdefault(path[-1], member)


def read(value: Any, path: Path) -> Any:
    """The member at a path, or `ABSENT`."""
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return ABSENT
        value = value[name]
    return value
