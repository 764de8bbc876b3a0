"""Finds the start of a comparison that begins at the input, before anything of the outputs is read.

The control topic is small, and it alone tells where both versions began (see `core.start.input_start`). So it
is read to its end first, and then followed until both have said enough; meanwhile the outputs stay where they
are, however long that takes.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.start.input_cut import InputCut
from twinstream.core.start.input_start import Opened, Sayings
from twinstream.intake.control import ControlDesk, missing
from twinstream.ports import Positions, Source, Topic
from twinstream.spec.file.model import Spec
from twinstream.starting.start import Unsafe, bounded


class Opening:
    """Looks for the start, once a second until it is found. `position` is the next control record to read."""

    def __init__(self, spec: Spec, source: Source) -> None:
        self._spec, self._source = spec, source
        self._sayings = Sayings()
        self._desk = ControlDesk(spec, self._sayings.hear)
        self._follows = False
        self._bound: Positions | None = None
        self._opened: Opened | None = None

    @property
    def position(self) -> int | None:
        """The offset of the next control record, None before the first."""
        return self._desk.position

    def positions(self, topics: Mapping[Side, Topic], bound: Positions | None = None) -> Positions:
        """Where to begin to read: not below `bound`, else not below what the source was told.

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
            self._desk.take(said)

    def hand_over(self, comparison: Comparison, cut: InputCut) -> None:
        """Tell a comparison that begins now of the start, and of what both versions have said last."""
        if self._opened is not None:
            cut.open(self._opened.firsts)
            for side, fact in self._opened.newest:
                comparison.note_finished(side, fact)
