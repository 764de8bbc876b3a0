"""The events of a batch with their records, if the events themselves hold only digests.

Coverage looks at some events as they come. Only the batch that is being taken has their records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import overload

from twinstream.core.arrivals.run import Run
from twinstream.core.events import Form, Side
from twinstream.ports import Batch
from twinstream.spec.codec.digests import KeptCodec, WithheldRecord

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

    @overload
    def __getitem__(self, place: int) -> Form: ...
    @overload
    def __getitem__(self, place: slice) -> list[Form]: ...
    def __getitem__(self, place: int | slice) -> Form | list[Form]:
        """The form at an index."""
        if isinstance(place, slice):
            return [self[at] for at in range(len(self))[place]]
        lane, content, kind, _ = self._run.forms[place]
        return Form(lane, content, kind, self._record(self._run.offsets[place]))

    def _record(self, offset: int) -> bytes:
        offsets = self._batch.offsets
        at = bisect_left(offsets, offset) if self._is_of_batch else len(offsets)
        if at == len(offsets) or offsets[at] != offset:
            return BEHIND
        record = self._batch.records[at]
        return BEHIND if record is None else self._codec.held(record, self._batch.side)
