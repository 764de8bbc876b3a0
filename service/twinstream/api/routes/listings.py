"""``/v1/comparisons/{name}/divergences`` and ``…/unmatched``: divergences and unmatched events, in pages.

A page names where the next one begins: a cursor is a point in the order of time, so it stays valid, and it is
good for each process of the API.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from twinstream.api.http.rendered import of_model
from twinstream.api.http.schemas import Listing, Unmatched
from twinstream.api.routes.comparisons import comparison_router
from twinstream.api.routes.problems import ZONED
from twinstream.api.state.board import Board
from twinstream.api.state.divergences import DivergenceLog, Identity, Place
from twinstream.errors import DecodeError
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.decode.formats import jsontext
from twinstream.status.common import DivergenceKind, Frozen, Sides
from twinstream.status.comparison import DivergenceReport, PartitionProgress, UnmatchedEvent
from twinstream.status.timestamps import rfc3339

NDJSON = "application/x-ndjson"
LINES_AT_A_TIME = 500
"""So many lines of an export are made before other tasks get their turn."""


def _as_text(moment: str) -> str:
    """A time as it is written; a bare number, which would be taken for a Unix time, is none."""
    if ":" not in moment:
        raise ValueError(ZONED)
    return moment


Moment = Annotated[AwareDatetime, BeforeValidator(_as_text)]
FieldPair = Annotated[str, Field(pattern=r"^[^=]+=")]


class DivergenceFilter(Frozen):
    """The filter of divergences; a misspelled parameter is refused rather than ignored."""

    model_config = ConfigDict(extra="forbid")

    kind: DivergenceKind | None = Field(None, description="Only divergences of this kind.")
    scope: list[FieldPair] = Field([], description="Only of this scope: `field=value`; may be repeated.")
    field: list[str] = Field([], description="Only where this field differs; may be repeated.")
    from_: Moment | None = Field(None, alias="from", description="First seen then or later.")
    to: Moment | None = Field(None, description="First seen before then.")
    explained: bool = Field(
        False, description="Instead of those that count, examples of what known differences explain."
    )
    late: bool | None = Field(None, description="Only those whose partner came after all, or did not.")
    tainted: bool | None = Field(None, description="Only those behind a hole, or not.")
    provisional: bool | None = Field(None, description="Only those that may still change, or do not.")

    @field_validator("to")
    @classmethod
    def _in_order(cls, to: datetime | None, others: ValidationInfo) -> datetime | None:
        begin = others.data.get("from_")
        if begin is not None and to is not None and begin >= to:
            raise ValueError("must be after `from`")
        return to

    def wants(self, report: DivergenceReport | Identity) -> bool:
        """Whether a divergence matches the filter."""
        marks = (
            (self.explained, report.explained is not None),
            (self.late, report.late is not None),
            (self.tainted, report.tainted),
            (self.provisional, report.provisional),
        )
        return (
            self.kind in (None, report.kind)
            and all(_in_scope(pair, report.scope) for pair in self.scope)
            and all(field in report.fields for field in self.field)
            and (self.from_ is None or report.first_seen >= self.from_)
            and (self.to is None or report.first_seen < self.to)
            and all(asked in (None, found) for asked, found in marks)
        )


class DivergenceQuery(DivergenceFilter):
    """The filter, and the page."""

    limit: int = Field(50, ge=1, le=500, description="Return at most this many.")
    cursor: str | None = Field(
        None,
        pattern=r"^[0-9-]{10}T[0-9:.]{15}Z/[0-9a-f]{16}$",
        description="The `next` of the page before.",
    )


class UnmatchedQuery(Frozen):
    """The filter of unmatched events, and the page."""

    model_config = ConfigDict(extra="forbid")

    side: Literal["reference", "candidate"] | None = Field(None, description="Only events of this side.")
    overdue: bool | None = Field(None, description="Only overdue events, or only others.")
    limit: int = Field(50, ge=1, le=500, description="Return at most this many.")
    cursor: str | None = Field(
        None,
        pattern=r"^[0-9-]{10}T[0-9:.]{12}Z/(reference|candidate)/[0-9]{1,19}/[0-9]{1,19}$",
        description="The `next` of the page before.",
    )


def listings_router(board: Board) -> APIRouter:
    """The routes of divergences and unmatched events."""
    router = comparison_router()

    @router.get(
        "/divergences",
        summary="Its divergences, newest first",
        response_model=Listing[DivergenceReport],
        responses={200: {"content": {NDJSON: {}}}},
    )
    async def list_divergences(
        name: str, query: Annotated[DivergenceQuery, Query()], request: Request
    ) -> Response:
        log = board.divergences(name)
        if NDJSON in request.headers.get("accept", ""):
            return exported(log, query)
        before = None if query.cursor is None else Place.named(query.cursor)
        items, after = log.page(query.limit, before, query.wants)
        page = Listing[DivergenceReport](items=items, next=None if after is None else str(after))
        return of_model(page).answer(request)

    @router.get(
        "/divergences.ndjson",
        summary="What names each of its divergences, a line each, newest first",
        response_class=Response,
        responses={200: {"content": {NDJSON: {"schema": Identity.model_json_schema()}}}},
    )
    async def export_divergences(name: str, query: Annotated[DivergenceFilter, Query()]) -> StreamingResponse:
        return exported(board.divergences(name), query)

    @router.get("/divergences/{identifier}", summary="One divergence")
    async def get_divergence(name: str, identifier: str) -> DivergenceReport:
        report = board.divergences(name).get(identifier)
        if report is None:
            raise HTTPException(404, f"Comparison {name!r} has no divergence {identifier!r}.")
        return report

    @router.get(
        "/unmatched",
        summary="Events without a partner so far, oldest first",
        response_model=Listing[Unmatched],
    )
    async def list_unmatched(
        name: str, query: Annotated[UnmatchedQuery, Query()], request: Request
    ) -> Response:
        page = unmatched_page(board.unmatched(name), query, board.view(name).status.progress)
        return of_model(page).answer(request)

    return router


def exported(log: DivergenceLog, query: DivergenceFilter) -> StreamingResponse:
    """The identity of each divergence that matches the query, as a stream of lines."""
    found = [one for one in log.identities() if query.wants(one)]
    return StreamingResponse(_lines(found), media_type=NDJSON)


def _lines(found: list[Identity]) -> Iterator[bytes]:
    for start in range(0, len(found), LINES_AT_A_TIME):
        part = found[start : start + LINES_AT_A_TIME]
        yield b"".join(one.model_dump_json().encode() + b"\n" for one in part)


def unmatched_page(
    events: list[UnmatchedEvent], query: UnmatchedQuery, progress: Sides[list[PartitionProgress]]
) -> Listing[Unmatched]:
    """One page of the unmatched events, oldest first, each with its age at the newest of the other side."""
    after = None if query.cursor is None else _place_of(query.cursor)
    left = sorted(
        (
            event
            for event in events
            if query.side in (None, event.side)
            and query.overdue in (None, event.overdue)
            and (after is None or _place(event) > after)
        ),
        key=_place,
    )
    newest = {"reference": _newest(progress.candidate), "candidate": _newest(progress.reference)}
    last = left[query.limit - 1] if len(left) > query.limit else None
    return Listing[Unmatched](
        items=[_aged(event, newest[event.side]) for event in left[: query.limit]],
        next=None if last is None else "/".join(map(str, _place(last))),
    )


def _newest(partitions: list[PartitionProgress]) -> datetime | None:
    """The Kafka time of the newest event of a side."""
    return max((one.newest_event_at for one in partitions if one.newest_event_at), default=None)


def _aged(event: UnmatchedEvent, newest: datetime | None) -> Unmatched:
    age = None if newest is None else max(0.0, (newest - event.at).total_seconds())
    return Unmatched(age_seconds=age, **dict(event))


_Place = tuple[str, str, int, int]


def _place(event: UnmatchedEvent) -> _Place:
    return rfc3339(event.at, "milliseconds"), event.side, event.position.partition, event.position.offset


def _place_of(cursor: str) -> _Place:
    moment, side, partition, offset = cursor.split("/")
    return moment, side, int(partition), int(offset)


def _in_scope(pair: str, scope: dict[str, Any]) -> bool:
    """Whether a field of the scope has this value, given as JSON in any spelling or as plain text."""
    field, _, text = pair.partition("=")
    return field in scope and (text == scope[field] or _as_json(text) == canonical_value(scope[field]))


@lru_cache(256)
def _as_json(text: str) -> bytes | None:
    """The canonical form of a JSON text; None if it is not JSON."""
    try:
        return canonical_value(jsontext.decode(text.encode()))
    except DecodeError:
        return None
