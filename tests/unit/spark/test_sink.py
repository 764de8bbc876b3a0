"""What the sink does in a batch, without Spark."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

from twinstream.errors import SinkError
from twinstream.spark import KafkaSink, sink
from twinstream.spark.control import ControlWriter
from twinstream.spark.running import RunningBatch
from twinstream.spark.topics import Topics
from twinstream.spec.decode.control import ControlRecord, control_record


class Written:
    """Runs the batches of a sink; what it writes may fail."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.batches, self.fails, self._run = list[int](), False, "run-0"
        patch.setattr(sink, "running_batch", lambda *_: self._running())
        patch.setattr(KafkaSink, "_begin", lambda *_: None)
        patch.setattr(
            KafkaSink, "_write", lambda _sink, _rows, _query, number, _execution: self._note(number)
        )
        self.sink = KafkaSink(brokers="b:1", topic="out", query="q", version="1")

    def _running(self) -> RunningBatch:
        return RunningBatch("spark-id", self._run, "/checkpoint", False, {}, {}, None, None)

    def _note(self, number: int) -> None:
        if self.fails:
            raise RuntimeError("the task is lost")
        self.batches.append(number)

    def run(self, number: int, run: str = "run-0") -> None:
        batch: Any = None
        self._run = run
        self.sink(batch, number)


def test_a_batch_is_written_twice_only_after_a_failure_or_in_another_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = Written(monkeypatch)
    written.fails = True
    with pytest.raises(RuntimeError):
        written.run(0)
    written.fails = False
    written.run(0)
    said = "the sink was called twice in batch 0: union the rows, or make one sink for each output"
    with pytest.raises(SinkError, match=re.escape(said)):
        written.run(0)
    written.run(1)
    written.run(1, "run-1")
    assert written.batches == [0, 1, 1]


class Shrinking:
    """Topics whose output is shorter after each batch."""

    def __init__(self) -> None:
        self.told: list[ControlRecord] = []
        self._ends = iter([{0: 10, 1: 5}, {0: 3, 1: 7}])

    def ends(self, _topic: str) -> dict[int, int]:
        return next(self._ends)

    def write(self, _topic: str, value: bytes) -> None:
        self.told.append(control_record(value))


def test_a_control_record_is_written_or_left_out_and_the_query_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written, topics = Written(monkeypatch), Shrinking()
    monkeypatch.setattr(written.sink, "_topics", topics)
    monkeypatch.setattr(written.sink, "_writer", ControlWriter(cast("Topics", topics), "control"))
    for number in range(3):
        written.run(number)
    assert [record.rows for record in topics.told] == [15, 2], "partition 0 went back"
    assert written.batches == [0, 1, 2]
    assert "the query goes on" in caplog.text, "nobody tells the ends of batch 2"
