"""Finds the start of a comparison that begins at the input, before anything of the outputs is read.

Only the control topic, which is small, shows where both versions began (see `core.start.input_start`). So it
is read to its end first, and then followed until both versions have said enough. The outputs are not read
before that, however long it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.start.input_cut import InputCut
from twinstream.core.start.input_start import Opened, Sayings, opened_of, state_of
from twinstream.intake.control import ControlDesk, missing
from twinstream.ports import Positions, Source, Topic
from twinstream.spec.file.model import Spec
from twinstream.starting.start import Unsafe, bounded


class Found(NamedTuple):
    """A start that was found, and the state of the control topic's reader then."""

    opened: Opened
    control: dict[str, Any]

    def state(self) -> list[Any]:
        """It as plain data."""
        return [state_of(self.opened), self.control]

    @classmethod
    def of(cls, state: list[Any]) -> Found:
        """It from its `state`."""
        opened, control = state  # Of an earlier version, the position alone.
        return cls(opened_of(opened), control if isinstance(control, dict) else {"control": control})


class Opening:
    """Looks for the start, once a second until it is found."""

    def __init__(self, spec: Spec, source: Source) -> None:
        self._spec, self._source = spec, source
        self._sayings = Sayings()
        self._desk = ControlDesk(spec, self._sayings.hear)
        self._follows = False
        self._bound: Positions | None = None
        self._opened: Opened | None = None

    @property
    def control(self) -> dict[str, Any]:
        """The state of a reader of the control topic that reads on from here."""
        return self._desk.state()

    @property
    def found(self) -> Found | None:
        """The start, once `positions` has found it."""
        return self._opened and Found(self._opened, self.control)

    def positions(self, topics: Mapping[Side, Topic], bound: Positions | None = None) -> Positions:
        """The positions to begin to read at: not below `bound`, else not below the bound of the source.

        Raises Unsafe while both versions have not said enough, and SourceError.
        """
        self._listen()
        if bound is None:
            # The ends of topics that grow would never be reached: those of the first look count.
            bound = self._bound = self._bound or self._source.bound()
        if not self._source.heard_all():
            why = (
                missing(self._spec, self._source.control()) or f"{self._spec.control} is not read to its end"
            )
            raise Unsafe(f"no safe start yet: {why}")
        ends = {side: topic.ends for side, topic in topics.items()}
        found = self._sayings.open(bounded(topics, bound), ends)
        if isinstance(found, str):
            raise Unsafe(f"no safe start yet: {found}, so `start: {{at: input}}` is not known")
        self._opened = found
        return found.positions

    def _listen(self) -> None:
        if not self._follows:
            self._source.follow(None)
            self._follows = True
        while said := self._source.said():
            self._desk.take(said, self._source.control())

    def hand_over(self, comparison: Comparison, cut: InputCut) -> None:
        """Give a comparison that begins now its start, and the latest fact of each run of both versions."""
        if self._opened is not None:
            cut.open(self._opened.firsts)
            for side, fact in self._opened.lasts:
                comparison.note_earlier(side, fact)


class FoundOpening(Opening):
    """A start that was found elsewhere, for all shards of a comparison."""

    def __init__(self, found: Found, spec: Spec, source: Source) -> None:
        super().__init__(spec, source)
        self._opened = found.opened
        self._desk.restore(found.control)

    def positions(self, topics: Mapping[Side, Topic], bound: Positions | None = None) -> Positions:  # noqa: ARG002
        """The positions to begin to read at."""
        assert self._opened is not None, "it is found"
        return self._opened.positions
