"""What a batch has besides its events: the marks of its records, and the records themselves.

Marks tell the attempts of batches that may be written again (`duplicates: {policy: replays}`). Records are
needed where events hold digests only: coverage looks at some events as they come, while their records are in
the batch that is taken; behind it nothing has them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from twinstream.core.arrivals.run import Run
from twinstream.core.events import Form, Side
from twinstream.errors import DecodeError
from twinstream.ports import Batch
from twinstream.spec.codec.codec import RefusedRecord
from twinstream.spec.codec.digests import KeptCodec, WithheldRecord
from twinstream.spec.decode.headers import Headers

T = TypeVar("T")


def marks_of(
    read: Callable[[Headers], T | None], headers: Sequence[Headers], refused: list[RefusedRecord]
) -> tuple[list[T | None], list[RefusedRecord]]:
    """The mark that each record has, and the refused records: for their values, or for their marks.

    `read` is `attempt_of` or `batch_mark`. Complexity: about 1 µs a record.
    """
    marks: list[T | None] = []
    unreadable = {}
    for place, one in enumerate(headers):
        try:
            marks.append(read(one))
        except DecodeError as error:
            marks.append(None)
            unreadable[place] = str(error)
    marked = (RefusedRecord(place, reason) for place, reason in unreadable.items())
    found = {one.place: one for one in (*marked, *refused)}
    return marks, [found[place] for place in sorted(found)]


BEHIND = WithheldRecord(b"its batch is gone")


class InSight(Sequence[Form]):
    """The forms of a run of a side; a record that came with an earlier batch is `WithheldRecord`.

    Complexity: O(log n) for each form that is read.
    """

    def __init__(self, codec: KeptCodec, side: Side, run: Run, batch: Batch) -> None:
        self._codec, self._run, self._batch = codec, run, batch
        self._is_of_batch = batch.side is side and batch.partition == run.partition

    def __len__(self) -> int:
        return len(self._run.forms)

    def __getitem__(self, place: Any) -> Any:
        """The form at an index; nobody asks for a slice."""
        lane, content, kind, _ = self._run.forms[place]
        return Form(lane, content, kind, self._record(self._run.offsets[place]))

    def _record(self, offset: int) -> bytes:
        offsets = self._batch.offsets
        at = bisect_left(offsets, offset) if self._is_of_batch else len(offsets)
        if at == len(offsets) or offsets[at] != offset:
            return BEHIND
        record = self._batch.records[at]
        return BEHIND if record is None else self._codec.held(record, self._batch.side)
