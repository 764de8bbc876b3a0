"""Queues events for one client of the event stream: bounded, and the newest survive.

A client that reads slowly must neither grow the memory of the service nor see an old state later. So an event
replaces the waiting one with the same key: of a comparison's status only the newest waits. Events with a
subject, such as divergences, are bounded: beyond that the oldest are dropped, and the list still has them.
The status of a comparison is never dropped, however many there are.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property

from sse_starlette.event import ServerSentEvent

LIMIT = 256
"""Waiting events with a subject, per client: a burst of divergences."""
LIMIT_CHARACTERS = 2_000_000
"""The size of their data. All clients share one copy of an event; a stalled one may hold it last."""

SEND_BUFFER_BYTES = 128 * 1024
"""The kernel's buffer for one connection: its default takes megabytes for each client that does not read."""

EventKey = tuple[str, str, str]


@dataclass(frozen=True)
class BoardEvent:
    """One server-sent event: its name, its comparison and subject, and its JSON data.

    `subject` tells it from others with its name and comparison, if there are many.
    """

    name: str
    comparison: str
    data: str
    subject: str = ""

    @property
    def key(self) -> EventKey:
        """Events with the same key replace each other."""
        return self.name, self.comparison, self.subject

    @cached_property
    def encoded(self) -> bytes:
        """The bytes to send, made once for all clients."""
        return ServerSentEvent(event=self.name, data=self.data).encode()


class Mailbox:
    """The waiting events of one client. Used from the event loop only."""

    def __init__(
        self, comparison: str | None = None, limit: int = LIMIT, limit_characters: int = LIMIT_CHARACTERS
    ) -> None:
        self._comparison = comparison
        self._limit, self._limit_characters = limit, limit_characters
        self._characters = 0
        self._waiting: dict[EventKey, BoardEvent] = {}
        self._subjects: dict[EventKey, None] = {}
        self._wake = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def characters(self) -> int:
        """The size of the waiting data of events with a subject."""
        return self._characters

    def put(self, event: BoardEvent) -> None:
        """Add an event, unless it is about a comparison that the client did not ask for."""
        if self._comparison not in (None, event.comparison):
            return
        if event.key in self._waiting:
            self._remove(event.key)
        self._waiting[event.key] = event
        if event.subject:
            self._subjects[event.key] = None
            self._characters += len(event.data)
        while self._is_over() and len(self._subjects) > 1:
            self._remove(next(iter(self._subjects)))
        self._wake.set()

    def close(self) -> None:
        """Accept no more events; `take` ends after those that wait."""
        self._closed = True
        self._wake.set()

    async def take(self) -> BoardEvent | None:
        """The next event, awaited if necessary; None when closed and empty."""
        while not self._waiting:
            if self._closed:
                return None
            self._wake.clear()
            await self._wake.wait()
        return self._remove(next(iter(self._waiting)))

    def _is_over(self) -> bool:
        return len(self._subjects) > self._limit or self._characters > self._limit_characters

    def _remove(self, key: EventKey) -> BoardEvent:
        event = self._waiting.pop(key)
        if event.subject:
            del self._subjects[key]
            self._characters -= len(event.data)
        return event
