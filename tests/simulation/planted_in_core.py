"""Bugs planted into what the core tells of events, which the simulation must find.

Few seeds show them, so in all of them the comparison file declares what the bug is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from tests.simulation import differences, inputs, streams
from tests.simulation.run import Failure, simulate
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


def knows_rows_by_form(seed: int) -> Failure | None:
    """A row that a retry writes is taken for another one that has another number, whatever the tolerance."""
    saying = patch.object(inputs, "SAYING", (True,)), patch.object(inputs, "SPEAKING", (RETRIES,))
    with patch.object(replays, "_near", lambda *_: None), _tolerant(), saying[0], saying[1]:
        return simulate(seed)


def names_by_form(seed: int) -> Failure | None:
    """What changed beyond the tolerance is called by what it has in common with what it was."""
    with patch.object(Rules, "letter", lambda rules, event: Exact(rules.form(event))), _tolerant():
        return simulate(seed)


def begins_at_barriers_by_form(seed: int) -> Failure | None:
    """A barrier is taken for one of the other side that has another number, whatever the tolerance."""
    begins = BarrierCut.__init__

    def begin(cut: BarrierCut, *fixed: Any) -> None:
        begins(cut, *fixed[:3])

    with patch.object(BarrierCut, "__init__", begin), _tolerant():
        return simulate(seed)


def never_makes_room(seed: int) -> Failure | None:
    """In a bag who came first has the first that is close, for good."""
    twice = patch.object(inputs, "UNIQUE", 0.0)
    with patch.object(Bags, "_make_room", lambda *_: None), _tolerant(), twice:
        return simulate(seed)


def never_gathers(seed: int) -> Failure | None:
    """An epoch in which something differs is looked at though more of it may still be matched."""
    with patch.object(Scope, "gathering", property(lambda _: False, lambda *_: None), create=True):
        return simulate(seed)


def keeps_what_it_explained(seed: int) -> Failure | None:
    """A half that a known difference has explained stays explained, whatever its other half is."""
    with (
        patch.object(Differences, "_take_half", lambda *_: None),
        _known("missing", "extra"),
        _faults("move"),
    ):
        return simulate(seed)


def forgets_what_was_written(seed: int) -> Failure | None:
    """What tells a copy is lost at a restart."""
    with patch.object(Repeats, "restore", lambda *_: None), _known("duplicate"), _faults("duplicate"):
        return simulate(seed, storm=CRASHES)


def _tolerant() -> AbstractContextManager[object]:
    """Numbers have a tolerance in all runs."""
    return patch.object(inputs, "TOLERANT", (True,))


@contextmanager
def _known(*kinds: str) -> Iterator[None]:
    """Rules name these kinds of difference in all runs, and no tolerance is declared."""
    with (
        patch.object(inputs, "RULED", (True,)),
        patch.object(inputs, "TOLERANT", (False,)),
        patch.object(differences, "KINDS", kinds),
    ):
        yield


@contextmanager
def _faults(fault: str) -> Iterator[None]:
    """All faults are of this kind, or of those that begin as one."""
    with (
        patch.object(streams, "FAULTS", (fault if fault in streams.FAULTS else "reorder",)),
        patch.object(streams, "MOVES", (fault,)),
    ):
        yield


IN_CORE: tuple[tuple[Callable[[int], Failure | None], str], ...] = (
    (knows_rows_by_form, "EQUIVALENT, and what it has read differs|says DIVERGED|is no hole"),
    (names_by_form, "'reordered': .* is told of"),
    (begins_at_barriers_by_form, "of equal topics|says DIVERGED|is told of"),
    (never_makes_room, "of equal topics|says DIVERGED"),
    (never_gathers, "is told of|undisturbed"),
    (keeps_what_it_explained, "are explained by rules that do not fit|makes the topics differ"),
    (forgets_what_was_written, "'extra'.*undisturbed .*'duplicate'|a hole for nothing"),
)
"""Each with what the simulation says of it."""
