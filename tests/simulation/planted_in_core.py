"""Bugs planted into what the core tells of events, which the simulation must find.

Few seeds show them, so in all of them the comparison file declares what the bug is about.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from tests.simulation import differences, inputs, streams
from tests.simulation.plant import Plant
from tests.simulation.saying import RETRIES
from twinstream.core.accounting.differences import Differences
from twinstream.core.arrivals import replays
from twinstream.core.arrivals.repeats import Repeats
from twinstream.core.diagnosis.scope import Scope
from twinstream.core.events import Exact
from twinstream.core.matching.bags import Bags
from twinstream.core.rules import Rules
from twinstream.core.start.cut import BarrierCut

CRASHES = {"crash": 0.5}
_begins = BarrierCut.__init__


def _begin_by_form(cut: BarrierCut, *fixed: Any) -> None:
    _begins(cut, *fixed[:3])


def _known(*kinds: str) -> tuple[AbstractContextManager[object], ...]:
    """Rules name these kinds of difference in all runs, and no tolerance is declared."""
    return (
        patch.object(inputs, "RULED", (True,)),
        patch.object(inputs, "TOLERANT", (False,)),
        patch.object(differences, "KINDS", kinds),
    )


def _faults(fault: str) -> tuple[AbstractContextManager[object], ...]:
    """All faults are of this kind, or of those that begin as one."""
    return (
        patch.object(streams, "FAULTS", (fault if fault in streams.FAULTS else "reorder",)),
        patch.object(streams, "MOVES", (fault,)),
    )


_TOLERANT = patch.object(inputs, "TOLERANT", (True,))
_RETRYING = patch.object(inputs, "SAYING", (True,)), patch.object(inputs, "SPEAKING", (RETRIES,))
_TWICE = patch.object(inputs, "UNIQUE", 0.0)

IN_CORE: dict[str, Plant] = {
    # A row that a retry writes is taken for another one that has another number, whatever the tolerance.
    "knows_rows_by_form": Plant(
        "EQUIVALENT, and what it has read differs|says DIVERGED|is no hole",
        patched=(patch.object(replays, "CloseTo", lambda *_: None), _TOLERANT, *_RETRYING),
    ),
    # What changed beyond the tolerance is called by what it has in common with what it was.
    "names_by_form": Plant(
        "'reordered': .* is told of",
        patched=(patch.object(Rules, "letter", lambda rules, event: Exact(rules.form(event))), _TOLERANT),
    ),
    # A barrier is taken for one of the other side that has another number, whatever the tolerance.
    "begins_at_barriers_by_form": Plant(
        "of equal topics|says DIVERGED|is told of",
        patched=(patch.object(BarrierCut, "__init__", _begin_by_form), _TOLERANT),
    ),
    # In a bag who came first has the first that is close, for good.
    "never_makes_room": Plant(
        "of equal topics|says DIVERGED",
        patched=(patch.object(Bags, "_make_room", lambda *_: None), _TOLERANT, _TWICE),
    ),
    # An epoch in which something differs is looked at though more of it may still be matched.
    "never_gathers": Plant(
        "is told of|undisturbed",
        patched=(patch.object(Scope, "gathering", property(lambda _: False, lambda *_: None), create=True),),
    ),
    # A half that a known difference has explained stays explained, whatever its other half is.
    "keeps_what_it_explained": Plant(
        "are explained by rules that do not fit|makes the topics differ",
        patched=(
            patch.object(Differences, "_take_half", lambda *_: None),
            *_known("missing", "extra"),
            *_faults("move"),
        ),
    ),
    # What tells a copy is lost at a restart.
    "forgets_what_was_written": Plant(
        "by_kind: {'extra'|a hole for nothing",
        storm=CRASHES,
        patched=(
            patch.object(Repeats, "restore", lambda *_: None),
            *_known("duplicate"),
            *_faults("duplicate"),
        ),
    ),
}
