"""Reads control records, in which a version reports its own progress on the control topic.

After each micro-batch, the pipeline writes one record: "I have finished batch b: the input is consumed up to
these offsets, with this watermark, and my output stands in the topic up to these". Records are cumulative, so
the next one makes up for a lost one. The topic has one partition and no compaction.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from twinstream.errors import DecodeError

_LARGEST = 2**63 - 1
"""Spark and Kafka count in 64 bits, and so do checkpoints."""

Count = Annotated[int, Field(ge=0, le=_LARGEST)]
Partition = Annotated[int, Field(ge=0, lt=2**31)]
WrittenOffsets = dict[str, dict[Partition, Count]]
"""By topic and partition, the offset behind the last record."""


class LateRows(BaseModel):
    """How many rows a run has dropped as late in the batches from `since` on that come `before` another.

    It is the sum of the counters of all its operators with state. A run counts from zero.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    rows: Count
    since: Count
    before: Count


class ControlRecord(BaseModel):
    """One finished micro-batch.

    `version` is the text that the comparison file gives to a side. `consumed` and `written` are next offsets:
    all before them is consumed, or stands in the topic; no output that stands there by then comes from input
    behind them. `consumed_from` is optional: where this batch itself began. `watermark` is in milliseconds
    since the epoch, None for a query without one. `rows` is how many events the batch wrote. `late` is None
    where it is not known. The newest `run_id` of a query wins.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: str
    query_id: str
    run_id: str
    batch: Count
    attempt: str
    consumed: WrittenOffsets
    consumed_from: WrittenOffsets = {}
    watermark: Annotated[int, Field(ge=-_LARGEST - 1, le=_LARGEST)] | None = None
    written: WrittenOffsets
    rows: Count
    late: LateRows | None = None
    mode: Literal["append", "update", "complete"] = "append"


def control_record(record: bytes | None) -> ControlRecord:
    """Read a control record. Raises DecodeError with the fault in one sentence."""
    if record is None:
        raise DecodeError("a tombstone is not a control record")
    try:
        return ControlRecord.model_validate_json(record)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the record"
        raise DecodeError(f"no control record: `{place}`: {first['msg'].lower()}") from None
