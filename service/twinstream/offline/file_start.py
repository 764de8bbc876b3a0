"""The start of a comparison of recorded input: its partitions, and a cut found in the events themselves.

`start: {at: event_time}` and `start: barrier` say which *events* are compared, so they work for a file as for
a topic. Offsets are positions in topics, and a start at the input needs the control topic: neither has a
meaning for a file, which is compared from its first line on.

A barrier may have a copy in each partition (`copies: per_partition`), so an epoch is complete only when all
partitions have delivered their copy. Kafka knows the partitions of a topic; for recorded input they are found
by reading it twice, the second time from a temporary file.
"""

from __future__ import annotations

import marshal
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import IO, cast

from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.start.cut import Cut
from twinstream.ports import Line
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.cut import cut_of
from twinstream.spec.file.model import Spec

IN_MEMORY_BYTES = 64 << 20
"""Input up to this size needs no temporary file."""

Partitions = tuple[frozenset[int], frozenset[int]]
"""The partitions of the reference and of the candidate."""


def with_partitions(lines: Iterable[Line]) -> tuple[Partitions, Iterator[Line]]:
    """The partitions of all events, and the lines again. Complexity: O(1) memory beyond `IN_MEMORY_BYTES`."""
    spool = cast("IO[bytes]", SpooledTemporaryFile(IN_MEMORY_BYTES))  # noqa: SIM115 - closed when read
    found: tuple[set[int], set[int]] = (set(), set())
    with ExitStack() as unread:
        unread.enter_context(spool)
        for line in lines:
            if line.record is not None:
                found[line.side].add(line.partition)
            marshal.dump((int(line.side), *line[1:-2], list(line.headers), line.key), spool)
        unread.pop_all()
    spool.seek(0)
    return (frozenset(found[0]), frozenset(found[1])), _read_again(spool)


def _read_again(spool: IO[bytes]) -> Iterator[Line]:
    with spool:
        while True:
            try:
                side, *rest = marshal.load(spool)
            except EOFError:
                return
            yield Line(Side(side), *rest)


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
        if passed.hole is not None:
            self._comparison.hole(passed.hole)
        for of, part, behind in passed.parts:
            if behind:
                self._comparison.feed(of, part)
            else:
                self._comparison.arrivals.before_start(of, part, by_place=self._cut.by_place)
        if self._ended and self.waiting is None:
            for of in self._ended:
                self._comparison.end(of)
            self._ended.clear()
        compared = [(of, part) for of, part, behind in passed.parts if behind]
        return compared, next((reason for _, reason in passed.refused), None)
