"""``/v1/service``, ``…/file``, ``…/groups/{id}/drafts``: settings, comparison files, and changes of these."""

from __future__ import annotations

import re
import shlex
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from twinstream.api.http.rendered import of_model, rendered
from twinstream.api.http.schemas import Listing
from twinstream.api.routes.comparisons import comparison_router
from twinstream.api.state.board import Board, utc_now
from twinstream.grouping.drafts import Draft, Drafting
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


class TriedDraft(Draft):
    """A draft, and the command that compares the events of the differences found so far by its rules."""

    command: str


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

    @one.get(
        "/groups/{identifier}/drafts",
        summary="Changes of the comparison file that would hide a group of differences",
        response_model=Listing[TriedDraft],
    )
    async def list_drafts(name: str, identifier: str, request: Request) -> Response:
        file, groups = file_of(board, name), board.view(name).status.groups
        group = next((one for one in groups if one.id == identifier), None)
        if group is None:
            known = ", ".join(one.id for one in groups) or "none yet"
            raise HTTPException(404, f"Comparison {name!r} has no group {identifier!r}; available: {known}.")
        drafting = Drafting(file.spec, groups, board.expected(name).shards, utc_now().date())
        command = replay_command(name, kafka.brokers)
        tried = [TriedDraft(command=command, **dict(draft)) for draft in drafting.drafts(group)]
        return of_model(Listing[TriedDraft](items=tried)).answer(request)

    router.include_router(one)
    return router


def replay_command(name: str, brokers: str) -> str:
    """The command that tries a changed file on the differences found; without brokers, on values as shown.

    >>> replay_command("ads", "kafka-1:9092")
    'twinstream replay --spec changed.yaml --name ads --brokers kafka-1:9092'
    """
    words = ["twinstream", "replay", "--spec", "changed.yaml", "--name", name]
    return shlex.join([*words, *(["--brokers", brokers] if brokers else [])])


def file_of(board: Board, name: str) -> ComparisonFile:
    """The file of a comparison."""
    file = board.expected(name).file
    if file is None:
        raise HTTPException(404, f"Comparison {name!r} was not read from a file.")
    return file
