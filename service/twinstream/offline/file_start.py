"""The start of a comparison of recorded input: a cut found in the events themselves.

`start: {at: event_time}` and `start: barrier` say which *events* are compared, so they work for a file as for
a topic. Offsets are positions in topics, and a start at the input needs the control topic: neither has a
meaning for a file, which is compared from its first line on.
"""

from __future__ import annotations

from collections.abc import Collection

from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.start.cut import Cut
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.cut import cut_of
from twinstream.spec.file.model import Spec

IN_THE_EVENTS = {"event_time", "barrier"}
"""The starts that can be found in events."""


def cut_in_events(spec: Spec, codec: Codec) -> Cut | None:
    """The cut, None if all events are compared."""
    return cut_of(spec, codec) if spec.start.at in IN_THE_EVENTS else None


class Beginning:
    """Sorts events into before and after the start, and delays ends until the start is found.

    If there are partitions other than 0, name them before the first event: a barrier has to come in each.
    """

    def __init__(self, cut: Cut | None, comparison: Comparison) -> None:
        self._cut, self._comparison = cut, comparison
        self._ended: list[Side] = []
        self.expect(({0}, {0}))

    @property
    def waiting(self) -> str | None:
        """Why nothing is compared yet."""
        return None if self._cut is None else self._cut.waiting

    def expect(self, partitions: tuple[Collection[int], Collection[int]]) -> None:
        """Name the partitions of both sides."""
        if self._cut is not None:
            self._cut.begin({side: dict.fromkeys(partitions[side] or (0,), 0) for side in Side})

    def ended(self, side: Side) -> bool:
        """Whether a side has ended."""
        return side in self._ended or self._comparison.ended[side]

    def end(self, side: Side) -> None:
        """End a side: at once, or when the start is found, since nothing is missing before it."""
        if self.waiting is None:
            self._comparison.end(side)
        else:
            self._ended.append(side)

    def feed(self, side: Side, run: Run) -> tuple[list[tuple[Side, Run]], str | None]:
        """Feed the events after the start; returns them, and why the record of a run of one is no event."""
        if self._cut is None:
            self._comparison.feed(side, run)
            return [(side, run)], None
        passed = self._cut.take(side, run)
        for of in Side:
            self._comparison.hold(of, passed.held[of])
        for of, part, behind in passed.parts:
            if behind:
                self._comparison.feed(of, part)
            else:
                self._comparison.before_start(of, part, by_place=self._cut.by_place)
        if self._ended and self.waiting is None:
            for of in self._ended:
                self._comparison.end(of)
            self._ended.clear()
        compared = [(of, part) for of, part, behind in passed.parts if behind]
        return compared, next((reason for _, reason in passed.refused), None)
