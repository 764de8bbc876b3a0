"""``/v1/service`` and ``/v1/comparisons/{name}/file``: what was given to the service at its start."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from twinstream.api.http.rendered import of_model, rendered
from twinstream.api.routes.comparisons import comparison_router
from twinstream.api.state.board import Board
from twinstream.spec.load import ComparisonFile
from twinstream.status.common import Frozen

LOGIN = re.compile(r"""(?<=://)[^/?#\s"']+(?=@)""")
"""The user and the password of an address: a file should hold none, but a schema registry may need them."""
YAML = "text/yaml; charset=utf-8"
FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The text, whose meaning has the digest `spec_digest` of the status.",
        "content": {"text/yaml": {"schema": {"type": "string"}}},
    }
}


class KafkaLinks(Frozen):
    """Where a reader of the page finds Kafka."""

    brokers: str = Field(description="Kafka's bootstrap servers, as the service was told.")
    record_url: str | None = Field(
        description="A record in a Kafka UI, with `{topic}`, `{partition}` and `{offset}` in the address."
    )


NO_LINKS = KafkaLinks(brokers="", record_url=None)


class Service(KafkaLinks):
    """The service itself."""

    version: str


def declared_router(board: Board, version: str, kafka: KafkaLinks) -> APIRouter:
    """The routes of settings and comparison files; `version` is that of the service."""
    router, one = APIRouter(), comparison_router()
    service = of_model(Service(version=version, **dict(kafka)))

    @router.get(
        "/v1/service", tags=["comparisons"], summary="Its version, and where Kafka is", response_model=Service
    )
    async def get_service(request: Request) -> Response:
        return service.answer(request)

    @one.get(
        "/file",
        summary="The comparison file as its owner wrote it",
        response_class=Response,
        responses=FILE,
    )
    async def get_file(name: str, request: Request) -> Response:
        text = LOGIN.sub("…", file_of(board, name).text)
        return rendered(text.encode(), YAML).answer(request)

    router.include_router(one)
    return router


def file_of(board: Board, name: str) -> ComparisonFile:
    """The file of a comparison."""
    file = board.file(name)
    if file is None:
        raise HTTPException(404, f"Comparison {name!r} was not read from a file.")
    return file
