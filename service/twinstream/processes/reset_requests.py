"""Handles resets requested at a process that shows this comparison but has no matchers.

Such a process leaves a request in the store, and the owner of the comparison takes it. From then on it is
handled like a reset requested by the matcher's own service, and both get the outcome.
"""

from __future__ import annotations

from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from twinstream.ports import Clock, Publisher
from twinstream.status.comparison import Publication, Reset, ResetRefused, ResetRequest

TAKE_SECONDS = 1.0
UNDER_WAY = "another reset is under way: wait for it"


class Requests(Protocol):
    """The part of a store for leaving, taking and answering requests."""

    def take(self, token: str) -> bytes | None:
        """The request for the owner with this token, if there is one; it is removed."""
        ...

    def answer(self, identifier: str, text: bytes) -> None:
        """Write the outcome of a request."""
        ...


class Desk(Publisher, Protocol):
    """A matcher's side of the pipe."""

    def asked(self) -> ResetRequest | None:
        """The next reset requested there."""
        ...


class RemoteRequests:
    """The publications of a matcher, and the requests to it: from its own service, and from other processes.

    Only one reset is in progress at a time, so the matcher never has two to answer.
    """

    def __init__(self, desk: Desk, requests: Requests, token: str, clock: Clock) -> None:
        self._desk, self._requests, self._token, self._clock = desk, requests, token, clock
        self._under_way: str | None = None
        self._taken: str | None = None
        self._next_look = 0.0

    def asked(self) -> ResetRequest | None:
        """The next reset to answer."""
        request = self._desk.asked()
        if request is not None and self._under_way is not None:
            self._desk.publish(ResetRefused(id=request.id, reason=UNDER_WAY))
            return None
        if request is None and self._under_way is None:
            request = self._take()
        if request is not None:
            self._under_way = request.id
        return request

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        """Publish to the service; the outcome of a remote request also goes to its sender."""
        self._desk.publish(publication, made_at)
        if isinstance(publication, Reset | ResetRefused) and publication.id == self._under_way:
            if publication.id == self._taken:
                self._requests.answer(publication.id, publication.model_dump_json().encode())
            self._under_way = self._taken = None

    def _take(self) -> ResetRequest | None:
        if self._clock.monotonic() < self._next_look:
            return None
        self._next_look = self._clock.monotonic() + TAKE_SECONDS
        text = self._requests.take(self._token)
        if text is None:
            return None
        try:
            request = ResetRequest.model_validate_json(text)
        except ValidationError:
            return None  # It is of another version: its sender gets no answer, as if nobody had done it.
        self._taken = request.id
        return request


ANSWER: TypeAdapter[Reset | ResetRefused] = TypeAdapter(Reset | ResetRefused)
"""Reads the outcome of a request."""
