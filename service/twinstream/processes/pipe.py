"""The pipe between a matcher process and its supervisor.

A matcher sends messages, and may block while it does. Its supervisor lives on the event loop of the API, and
never waits for a matcher: one frozen in the middle of a message would hold up the whole process. So a message
begins with its length, and the supervisor assembles it from the bytes that have come.

In the other direction goes one word, sent at once: `STOP_WORD`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import get_args

from twinstream.status.common import Frozen
from twinstream.status.comparison import Publication

STOP_WORD = b"stop"
LENGTH_BYTES = 4
RECEIVED_BYTES = 1 << 16
"""The most bytes read from a pipe at a time, so that one matcher does not occupy the event loop for long."""


class Failure(Frozen):
    """Why a matcher gives up, as a sentence."""

    reason: str


Message = Publication | Failure
_MESSAGES: dict[str, type[Message]] = {message.__name__: message for message in get_args(Message)}


class Inbox:
    """The supervisor's end of the pipe: the messages received so far. It never waits."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._held = bytearray()

    def receive(self) -> None:
        """Read the available bytes; only if there are any. Raises EOFError if the other end is closed."""
        came = os.read(self._pipe.fileno(), RECEIVED_BYTES)
        if not came:
            raise EOFError
        self._held += came

    def whole(self) -> Iterator[tuple[Message, float]]:
        """The complete messages, each once, with the moment at which its content was true."""
        while len(self._held) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._held[:LENGTH_BYTES])
            if len(self._held) < end:
                return
            data = bytes(self._held[LENGTH_BYTES:end])
            del self._held[:end]
            yield _read(data)


class PipePublisher:
    """The matcher's end of the pipe."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._told_to_stop = False

    def publish(self, publication: Message, made_at: float | None = None) -> None:
        """Send one message; the supervisor reads continuously."""
        left = memoryview(_written(publication, time.monotonic() if made_at is None else made_at))
        while left:
            left = left[os.write(self._pipe.fileno(), left) :]

    def stopping(self, seconds: float) -> bool:
        """Whether the supervisor says stop, or is gone; waits up to `seconds` for that."""
        self._told_to_stop = self._told_to_stop or self._pipe.poll(seconds)
        return self._told_to_stop


def _written(message: Message, made_at: float) -> bytes:
    """A message on the pipe: its length, its class, when its content was true, a newline, its JSON.

    All processes of a machine share its monotonic clock, so it alone measures the time on the way.
    """
    data = f"{type(message).__name__} {made_at!r}\n{message.model_dump_json()}".encode()
    return len(data).to_bytes(LENGTH_BYTES) + data


def _read(data: bytes) -> tuple[Message, float]:
    head, _, body = data.partition(b"\n")
    name, made_at = head.decode().split()
    return _MESSAGES[name].model_validate_json(body), float(made_at)
