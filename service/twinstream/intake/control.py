"""Reads the control topic: the control records of both versions, and whether the topic is reliable.

Records of other versions are skipped: several comparisons may share a topic. One that cannot be read is no
hole, since the next one of its version contains all of it. So it is a trouble only while it is the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twinstream.core.clocks.input import DroppedRows, Finished, InputPartition
from twinstream.core.events import Side
from twinstream.errors import DecodeError
from twinstream.intake.topics import Heard
from twinstream.ports import Control, ControlEntry
from twinstream.spec.decode.control import ControlRecord, WrittenOffsets, control_record
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.topics import control_refusal


class ControlDesk:
    """Reads control records, and passes those of the two versions to `hear`.

    `position` is the offset of the next one, None before the first, in the topic of the id `topic_id`.
    `trouble` is a sentence while the newest record cannot be read.
    """

    def __init__(self, spec: Spec, hear: Callable[[Side, Finished], None]) -> None:
        self._topic, self._hear = spec.control, hear
        self._side_of = {spec.version_of(side).version: side for side in Side}
        self._appends = spec.folding is None
        self._topics = {side: spec.version_of(side).topic for side in Side}
        self.position: int | None = None
        self.topic_id = ""
        self.trouble: str | None = None

    def state(self) -> dict[str, Any]:
        """Where it is, and the trouble with the newest record, as plain data."""
        return {
            "control": self.position,
            "control_id": self.topic_id,
            "control_trouble": self.trouble,
        }

    @property
    def heard(self) -> Heard:
        """How far the topic is heard."""
        return Heard(self.position or 0, self.topic_id)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a `state`: the newest record is not read again."""
        self.position, self.trouble = state["control"], state.get("control_trouble")
        self.topic_id = state.get("control_id", "")

    def begins_anew(self, entry: ControlEntry) -> bool:
        """Whether the topic was created anew before this record: its offsets went back."""
        return entry.offset < (self.position or 0)

    def take(self, said: Sequence[ControlEntry], control: Control | None) -> None:
        """Take new records of the control topic, which is as Kafka described it last."""
        for offset, raw in said:
            self.position, self.topic_id = offset + 1, id_of(control)
            try:
                record = control_record(raw)
                self._check_mode(record)
            except DecodeError as error:
                self.trouble = (
                    f"the newest record of {self._topic}, at offset {offset}, cannot be used: {error}"
                )
                continue
            self.trouble = None
            side = self._side_of.get(record.version)
            if side is not None:
                self._hear(side, finished(record, self._topics[side])._replace(at=offset))

    def _check_mode(self, record: ControlRecord) -> None:
        """Raise DecodeError for a query whose rows replace each other, where the file says that none do."""
        if self._appends and record.mode != "append" and record.version in self._side_of:
            raise DecodeError(f"its query is in {record.mode} mode, and the file says `emits: append`")


def id_of(control: Control | None) -> str:
    """The id of a control topic; empty if it is missing, or not known."""
    return "" if control is None else control.id


def missing(spec: Spec, control: Control | None) -> str | None:
    """A sentence if the control topic is needed and is not there."""
    if spec.followed is None or control is None or control.topic is not None:
        return None
    return f"topic {spec.followed}: there is no such topic"


def unreliable(spec: Spec, control: Control | None) -> str | None:
    """A sentence if the control topic is not reliable."""
    if spec.followed is None or control is None or control.topic is None:
        return None
    return control_refusal(spec.followed, control.topic)


def finished(record: ControlRecord, topic: str) -> Finished:
    """The batch that a control record reports as finished, for one output topic."""
    consumed, since = _places(record.consumed), _places(record.consumed_from)
    written, late = record.written.get(topic), _late(record)
    return Finished(
        record.query_id, record.run_id, record.batch, consumed, record.watermark, written, since, late=late
    )


def _late(record: ControlRecord) -> DroppedRows | None:
    """The rows that were dropped by the end of a batch, this one or the last; None if they end elsewhere."""
    late = record.late
    ends = {record.batch: record.consumed_from, record.batch + 1: record.consumed}
    if late is None or late.before not in ends:
        return None
    return DroppedRows(late.rows, late.since, _places(ends[late.before]))


def _places(offsets: WrittenOffsets) -> dict[InputPartition, int]:
    return {(topic, partition): offset for topic, of in offsets.items() for partition, offset in of.items()}
