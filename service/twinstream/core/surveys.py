"""A look at everything that waits: what is overdue, what is oldest, what it weighs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Survey:
    """What one look at everything unmatched found.

    `first_open` is the smallest unmatched offset by side and partition, `oldest_ms` the smallest timestamp of
    an unmatched event, `suspicions` the number of overdue events that are not proven to have no partner,
    `held_bytes` the size of the records that wait, by side.
    """

    first_open: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    oldest_ms: int | None = None
    suspicions: int = 0
    held_bytes: list[int] = field(default_factory=lambda: [0, 0])
