"""Two versions whose rows replace each other, in words, and a matcher that hears at once what they say.

``L:a=1`` is a row of the left of key `a`, ``L:a=-`` its deletion, and ``R:a=1,b=2`` two rows of the right.
``L!10`` says that the left has finished a batch that has consumed so far; with ``L!10/3`` its output ends at
3, else here. In complete mode the batch stands in front: ``L0:a=1 L0!10``.
"""

from __future__ import annotations

import re

from tests.support.streams import LEFT, RIGHT, SPEAKING, Driver, record
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.spec.decode.deletions import deletion
from twinstream.spec.load import loads


class Pair:
    """Both versions, in mode `upsert` or `complete`; `restarts`: the matcher restarts behind every word.

    `order` is that of the comparison file, `more` are further lines of it.
    """

    def __init__(
        self, mode: str = "upsert", *, order: str = "unordered", more: str = "", restarts: bool = False
    ) -> None:
        head = SPEAKING.replace("order: unordered", f"order: {order}")
        emits = f"emits: {{{mode}: {{key: [k], settled_by: input}}}}\n"
        self.driver = Driver(loads(f"{head}{emits}overdue: {{clock: input}}\n{more}"))
        self._restarts = restarts
        self._batches = [0, 0]

    def go_on(self, text: str) -> tuple[int, list[str], list[list[int]]]:
        """What comes next; the pairs then, the kinds of differences, the offsets of pending rows by side."""
        for word in text.split():
            match = re.fullmatch(r"([LR])(\d*)([:!])(.+)", word)
            assert match, f"{word!r} is no word"
            who, batch, what, rest = match.groups()
            side, number = (LEFT if who == "L" else RIGHT), int(batch) if batch else None
            if what == ":":
                self._write(side, number, rest)
            else:
                consumed, _, written = rest.partition("/")
                self.finish(side, int(consumed), int(written) if written else None, number)
            if self._restarts:
                self.driver.findings()
                self.driver.restart()
        comparison = self.driver.comparison
        return comparison.matched, self.driver.kinds(), [self.driver.held(side) for side in Side]

    def _write(self, side: Side, batch: int | None, rows: str) -> None:
        pairs = [row.split("=") for row in rows.split(",")]
        records = [
            deletion(key.encode()) if value == "-" else record({"k": key, "v": int(value)})
            for key, value in pairs
        ]
        marks = None if batch is None else [batch] * len(pairs)
        self.driver.feed(side, [one for one in records if one is not None], marks=marks)

    def finish(
        self,
        side: Side,
        consumed: int,
        written: int | None = None,
        batch: int | None = None,
        query: str = "q",
        run: str = "run",
    ) -> None:
        """A batch is finished."""
        self._batches[side] += 1
        number = self._batches[side] if batch is None else batch
        end = self.driver.offsets[side] if written is None else written
        fact = Finished(query, run, number, {("in", 0): consumed}, None, {0: end})
        self.driver.comparison.note_finished(side, fact)
        self.driver.look()

    def superseded(self) -> list[int]:
        """How many rows of each side were replaced."""
        return [account.superseded for account in self.driver.comparison.accounts]
