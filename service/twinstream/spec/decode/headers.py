"""Reads and writes the headers in which a pipeline names the attempt and the input record of its output.

    twinstream-query    the query, an identifier that survives restarts
    twinstream-batch    the number of the micro-batch
    twinstream-attempt  EXECUTION/TASK.ATTEMPT: which execution of the batch, which task, which attempt of it
    twinstream-input    topic:partition:offset of the one input record that a row comes from

Both the sink of the pipelines and the matcher use this module, so that they agree. A record without marks is
no error; in a comparison that asks for marks, a record with unreadable marks is no event.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.clocks.input import InputPosition
from twinstream.errors import DecodeError
from twinstream.spec.describe import trait

QUERY, BATCH, ATTEMPT, INPUT = (f"twinstream-{part}" for part in ("query", "batch", "attempt", "input"))

Headers = Sequence[tuple[str, bytes | None]]
"""The headers of a record, as Kafka has them."""

_NUMBER = "[0-9]{1,18}"
"""The largest number of 64 bits, the width of every number that Spark and Kafka count with."""
_BATCH = re.compile(_NUMBER)
_ATTEMPT = re.compile(rf"(?P<execution>[^/]+)/(?P<task>{_NUMBER})\.(?P<attempt>{_NUMBER})")
_INPUT = re.compile(rf"(?P<topic>.+):(?P<partition>{_NUMBER}):(?P<offset>{_NUMBER})")


def input_header(topic: str, partition: int, offset: int) -> tuple[str, bytes]:
    """The header with which a sink names the input record that a row comes from."""
    return INPUT, f"{topic}:{partition}:{offset}".encode()


def attempt_headers(attempt: Attempt) -> list[tuple[str, bytes]]:
    """The headers with which a sink names the attempt that writes a record."""
    named = f"{attempt.execution}/{attempt.task}.{attempt.attempt}"
    texts = ((QUERY, attempt.query), (BATCH, str(attempt.batch)), (ATTEMPT, named))
    return [(name, text.encode()) for name, text in texts]


def attempt_of(headers: Headers) -> Attempt | None:
    """The attempt that wrote a record; None if it has none of the three headers. Raises DecodeError.

    >>> attempt_of([(QUERY, b"views"), (BATCH, b"7"), (ATTEMPT, b"9f2c/3.0")])
    Attempt(query='views', batch=7, execution='9f2c', task=3, attempt=0)
    """
    marks = [_value(headers, name) for name in (QUERY, BATCH, ATTEMPT)]
    if marks == [None, None, None]:
        return None
    query, batch, attempt = marks
    if query is None or batch is None or attempt is None:
        raise DecodeError(f"it has some of the headers {QUERY}, {BATCH} and {ATTEMPT}, but not all")
    return _attempt(query, batch, attempt)


@lru_cache(maxsize=4096)
def _attempt(*marks: bytes) -> Attempt:
    """The attempt named by its marks. An attempt writes many records, so its marks are parsed once."""
    query, batch, attempt = map(_text, marks, (QUERY, BATCH, ATTEMPT))
    found = _ATTEMPT.fullmatch(attempt)
    if found is None:
        raise DecodeError(f"its header {ATTEMPT} is not EXECUTION/TASK.ATTEMPT ({trait(attempt)})")
    if _BATCH.fullmatch(batch) is None:
        raise DecodeError(f"its header {BATCH} is no number ({trait(batch)})")
    return Attempt(query, int(batch), found["execution"], int(found["task"]), int(found["attempt"]))


def batch_mark(headers: Headers) -> int:
    """The number of the batch that wrote a record. Raises DecodeError.

    >>> batch_mark([(BATCH, b"7")])
    7
    """
    value = _value(headers, BATCH)
    if value is None:
        raise DecodeError(f"it lacks the header {BATCH}, that tells which rows are those of one batch")
    if _BATCH.fullmatch(text := _text(value, BATCH)) is None:
        raise DecodeError(f"its header {BATCH} is no number ({trait(value)})")
    return int(text)


def input_mark(headers: Headers) -> str | None:
    """The text that names the input record, not parsed yet. Complexity: about 0.2 µs."""
    value = _value(headers, INPUT)
    return None if value is None else value.decode("utf-8", "replace")


def kept_mark(mark: str | None) -> str | None:
    """The text if it names an input record; nothing is kept of any other text."""
    return mark if mark is None or _INPUT.fullmatch(mark) else ""


def input_position(mark: str) -> InputPosition:
    """The position that such a text names. Raises DecodeError.

    >>> input_position("clicks:2:1041")
    ('clicks', 2, 1041)
    """
    found = _INPUT.fullmatch(mark)
    if found is None:
        raise DecodeError(f"its header {INPUT} is not TOPIC:PARTITION:OFFSET ({trait(mark)})")
    return found["topic"], int(found["partition"]), int(found["offset"])


def _value(headers: Headers, name: str) -> bytes | None:
    """The last header with a name."""
    for other, value in reversed(headers):
        if other == name:
            return value
    return None


def _text(value: bytes, name: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"its header {name} is not UTF-8 at byte {error.start}") from None
