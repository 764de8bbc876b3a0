"""Renders the bodies of answers once for all clients.

The content changes only once a publication, and many clients may ask in between: dashboards, release tools,
the page in several browsers. So the bytes of an answer are kept together with the object they were made from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

T = TypeVar("T")


class Rendered(NamedTuple):
    """The bytes of an answer, with the ETag by which a client recognizes them."""

    content: bytes
    etag: str

    def answer(self, request: Request) -> Response:
        """The content with its tag, or 304 if the client has it already."""
        given = request.headers.get("if-none-match", "").split(",")
        known = {tag.strip().removeprefix("W/") for tag in given}
        if self.etag in known or "*" in known:
            return Response(status_code=304, headers={"ETag": self.etag})
        return Response(self.content, media_type="application/json", headers={"ETag": self.etag})


def rendered(content: bytes) -> Rendered:
    """Some bytes with their tag."""
    return Rendered(content, f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"')


def of_model(body: BaseModel) -> Rendered:
    """A body as JSON."""
    return rendered(body.model_dump_json().encode())


def listed(items: Iterable[Rendered]) -> Rendered:
    """A whole list of bodies."""
    return rendered(b'{"items":[%b],"next":null}' % b",".join(item.content for item in items))


class Kept(Generic[T]):
    """The last answer, kept as long as the object that it was made from is the same."""

    def __init__(self, make: Callable[[T], Rendered]) -> None:
        self._make = make
        self._of: T | None = None
        self._last: Rendered | None = None

    def of(self, thing: T) -> Rendered:
        """The answer for `thing`, made again if the last one was for another."""
        if self._last is None or thing is not self._of:
            self._of, self._last = thing, self._make(thing)
        return self._last
