"""How the rows of a comparison fold, as the comparison file declares it, and what one step of it settles."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum

from twinstream.core.clocks.event_time import TimeOf
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import Event, Side


class SettledBy(Enum):
    """What tells that both sides have passed a key, so that its latest row is final.

    `SNAPSHOT`: both have written whole tables for the same input.
    """

    INPUT = "input"
    WATERMARK = "watermark"
    BARRIER = "barrier"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True)
class Fold:
    """How rows fold. `key_of` maps a record to its key, `deletes` tells the content of a deletion.

    `window_end_of` reads the end of the window of a row, where the watermark settles it.
    """

    key_of: Callable[[bytes], Hashable]
    deletes: Callable[[bytes], bool]
    settled_by: SettledBy
    window_end_of: TimeOf | None = None


def _sides() -> tuple[list[Event], list[Event]]:
    return [], []


@dataclass
class Step:
    """What one step of the fold settles, by side.

    `ready` go to matching. `differing` are differences whose rows need no matching: the tables differ at
    their moment, or their window was closed before. `superseded` are replaced, or say nothing new.
    `renewed` are pending rows and the events that stand for them from now on. `unclear` are rows of which it
    is unknown whether they change anything. `holes` are rows, each with the reason why what comes from it on
    may be no difference.
    """

    ready: tuple[list[Event], list[Event]] = field(default_factory=_sides)
    differing: list[Finding] = field(default_factory=list)
    superseded: tuple[list[Event], list[Event]] = field(default_factory=_sides)
    renewed: list[tuple[Side, Event, Event]] = field(default_factory=list)
    unclear: list[tuple[Side, Event]] = field(default_factory=list)
    holes: list[tuple[Side, Event, str]] = field(default_factory=list)
