"""The headers by which a pipeline marks what it writes: which attempt wrote a record, and from which input.

    twinstream-query    the query, an identifier that survives restarts
    twinstream-batch    the number of the micro-batch
    twinstream-attempt  EXECUTION/TASK.ATTEMPT: which execution of the batch, which task, which attempt of it
    twinstream-input    topic:partition:offset of the one input record that a row comes from

Both the sink of the pipelines and the matcher read and write them here, so that they agree. A record without
marks is no error; one whose marks cannot be read is no event of a comparison that asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from twinstream.errors import DecodeError

QUERY, BATCH, ATTEMPT, INPUT = (f"twinstream-{part}" for part in ("query", "batch", "attempt", "input"))

Headers = Sequence[tuple[str, bytes | None]]
"""The headers of a record, as Kafka has them."""

_ATTEMPT = re.compile(r"(?P<execution>[^/]+)/(?P<task>\d+)\.(?P<attempt>\d+)")
_INPUT = re.compile(r"(?P<topic>.+):(?P<partition>\d+):(?P<offset>\d+)")


class Attempt(NamedTuple):
    """What wrote a record: one attempt of one task of one execution of a micro-batch of a query.

    >>> attempt_of([(QUERY, b"views"), (BATCH, b"7"), (ATTEMPT, b"9f2c/3.0")])
    Attempt(query='views', batch=7, execution='9f2c', task=3, attempt=0)
    """

    query: str
    batch: int
    execution: str
    task: int
    attempt: int

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """What a sink writes beside the record."""
        attempt = f"{self.execution}/{self.task}.{self.attempt}"
        texts = ((QUERY, self.query), (BATCH, str(self.batch)), (ATTEMPT, attempt))
        return [(name, text.encode()) for name, text in texts]


class InputPosition(NamedTuple):
    """The record of the pipelines' input that a row comes from.

    >>> input_of([(INPUT, b"clicks:2:1041")])
    InputPosition(topic='clicks', partition=2, offset=1041)
    """

    topic: str
    partition: int
    offset: int

    @property
    def header(self) -> tuple[str, bytes]:
        """What a sink writes beside the record."""
        return INPUT, f"{self.topic}:{self.partition}:{self.offset}".encode()


def attempt_of(headers: Headers) -> Attempt | None:
    """What wrote a record; None where it has none of the three headers. Raises DecodeError."""
    query, batch, attempt = (_text(headers, name) for name in (QUERY, BATCH, ATTEMPT))
    if query is None and batch is None and attempt is None:
        return None
    if query is None or batch is None or attempt is None:
        raise DecodeError(f"it has some of the headers {QUERY}, {BATCH} and {ATTEMPT}, but not all")
    found = _ATTEMPT.fullmatch(attempt)
    if found is None:
        raise DecodeError(f"its header {ATTEMPT} is {attempt!r}, and not EXECUTION/TASK.ATTEMPT")
    if not (batch.isascii() and batch.isdigit()):
        raise DecodeError(f"its header {BATCH} is {batch!r}, and no number")
    return Attempt(query, int(batch), found["execution"], int(found["task"]), int(found["attempt"]))


def input_of(headers: Headers) -> InputPosition | None:
    """The input record that a row comes from; None where it names none. Raises DecodeError."""
    text = _text(headers, INPUT)
    if text is None:
        return None
    found = _INPUT.fullmatch(text)
    if found is None:
        raise DecodeError(f"its header {INPUT} is {text!r}, and not TOPIC:PARTITION:OFFSET")
    return InputPosition(found["topic"], int(found["partition"]), int(found["offset"]))


def _text(headers: Headers, name: str) -> str | None:
    """The last header of a name, as text."""
    value = next((value for other, value in reversed(headers) if other == name), None)
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"its header {name} is not UTF-8 at byte {error.start}") from None
