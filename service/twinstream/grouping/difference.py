"""One difference as the groups see it: plain values, as far as they may be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from twinstream.core.diagnosis.findings import Kind
from twinstream.grouping.common import NO_MEMBERS, Members

FIELDS = 8
"""The most fields of a difference that are looked at: a sentence can name no more."""
TEXT_LENGTH = 100
"""The longest text of a key or a field in a group: a person does not read more, and memory stays bounded."""


class Changes(NamedTuple):
    """The fields that differ, `more` than those named, and for each its two values as they are compared.

    `fields` is None where they are unknown. Only values of `shown` fields may be told.
    """

    fields: tuple[str, ...] | None = ()
    more: int = 0
    values: tuple[tuple[Any, Any], ...] = ()
    shown: tuple[bool, ...] = ()


def changes_of(differing: Iterable[tuple[str, tuple[Any, Any], bool]]) -> Changes:
    """The changes of fields with their values, and whether these may be shown."""
    found = list(differing)
    first = found[:FIELDS]
    return Changes(
        tuple(short(name) for name, _, _ in first),
        len(found) - len(first),
        tuple(values for _, values, _ in first),
        tuple(shown for _, _, shown in first),
    )


class Difference(NamedTuple):
    """A difference, by the event that the reference wrote, or else the candidate.

    `key` names the part of the order in words; it is empty where the order has no keys, and None where it is
    unknown. `time_ms` is Kafka's; it is unknown unless it is positive. `id` gives the id of its report.
    `members` are those of the event, none where they are unknown.
    """

    kind: Kind
    changes: Changes
    event_kind: str
    key: str | None
    partition: int
    offset: int
    time_ms: int
    id: Callable[[], str]
    members: Members = NO_MEMBERS


def short(text: str) -> str:
    """A text as a group keeps it: cut if it is too long."""
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1] + "…"
