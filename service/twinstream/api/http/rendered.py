"""Renders the bodies of answers, with the tags by which clients recognize them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response


class Rendered(NamedTuple):
    """The bytes of an answer, with the ETag by which a client recognizes them."""

    content: bytes
    etag: str
    media_type: str = "application/json"

    def answer(self, request: Request) -> Response:
        """The content with its tag, or 304 if the client has it already."""
        given = request.headers.get("if-none-match", "").split(",")
        known = {tag.strip().removeprefix("W/") for tag in given}
        if self.etag in known or "*" in known:
            return Response(status_code=304, headers={"ETag": self.etag})
        return Response(self.content, media_type=self.media_type, headers={"ETag": self.etag})


def rendered(content: bytes, media_type: str = "application/json") -> Rendered:
    """Some bytes with their tag."""
    return Rendered(content, f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"', media_type)


def of_model(body: BaseModel) -> Rendered:
    """A body as JSON."""
    return rendered(body.model_dump_json().encode())


def listed(items: Iterable[Rendered]) -> Rendered:
    """A whole list of bodies."""
    return rendered(b'{"items":[%b],"next":null}' % b",".join(item.content for item in items))
