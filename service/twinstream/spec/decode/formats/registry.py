"""Reads schemas from a registry, and the frame around the records written with them.

A framed record is the byte 0, the id of its schema in four bytes, and then the record in its format. The
registry is asked once for each id; its answer for an id never changes, so it is kept.

A registry that does not answer, or fails by itself, gives a `SourceError`: nothing is known of the record. An
id unknown to the registry is the record's fault, a `DecodeError`. It is asked for again after a while: a
registry may hear of a schema later than its records come.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property
from math import inf
from textwrap import shorten
from time import monotonic
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from twinstream.errors import (
    NO_HOST,
    NO_LISTENER,
    DecodeError,
    SourceError,
    told_of_connection,
    without_secrets,
)

TIMEOUT_SECONDS = 3
"""Bounds each silence of a registry. The caller tries again; a loop that waited longer would look dead."""
UNKNOWN_KEPT = 1_000
"""Ids without a schema that are remembered: a topic full of them must not cause a flood of requests."""
UNKNOWN_SECONDS = 10.0
"""How long an id without a schema is not asked for again."""

_NOT_FOUND = range(40400, 40500)
"""The registry's own codes for an unknown id, subject or version. Any server has a plain 404."""
_REDIRECTS = (301, 302, 303, 307, 308)

Body = Callable[[bytes], Any]
_FRAME = struct.Struct(">bI")


class Registry:
    """The schemas of one registry. It connects only when the first schema is needed."""

    def __init__(self, url: str) -> None:
        self._url, self.name = url, without_secrets(url)

    @cached_property
    def _client(self) -> SchemaRegistryClient:
        return SchemaRegistryClient({"url": self._url, "timeout": TIMEOUT_SECONDS, "max.retries": 0})

    def schema(self, number: int, form: str | None = None) -> Schema:
        """The schema with an id, in a form of the registry. Raises DecodeError and SourceError."""
        return self._ask(f"schema {number}", lambda: self._client.get_schema(number, fmt=form))

    def version(self, subject: str, version: int, form: str | None = None) -> Schema:
        """A version of a subject that a schema refers to. Raises DecodeError and SourceError."""
        what = f"version {version} of subject {subject}"
        return self._ask(
            what, lambda: self._client.get_version(subject, version, deleted=True, fmt=form).schema
        )

    def _ask(self, what: str, request: Callable[[], Schema]) -> Schema:
        try:
            schema = request()
        except SchemaRegistryError as error:
            if error.error_code in _NOT_FOUND:
                raise DecodeError(f"the schema registry {self.name} has no {what}") from None
            raise SourceError(f"the schema registry {self.name} refuses {what}: {_told(error)}") from error
        except (ValueError, TypeError, AttributeError) as error:  # its client reads any JSON as an answer
            problem = f"answers no schema when asked for {what}: is this the address of a registry?"
            raise SourceError(f"the schema registry {self.name} {problem}") from error
        except Exception as error:  # its client passes on every exception of the HTTP library
            told = told_of_connection(error)
            if self.name != self._url and told not in (NO_LISTENER, NO_HOST):
                told = ""  # it may contain a part of the password
            problem = f"cannot be asked for {what}: {told or type(error).__name__}"
            raise SourceError(f"the schema registry {self.name} {problem}") from error
        if not isinstance(schema.schema_str, str) or not schema.schema_str:
            del self._client  # it keeps such an answer for good
            raise SourceError(f"the schema registry {self.name} answers without {what}")
        return schema


def _told(error: SchemaRegistryError) -> str:
    """What a registry, or another server, answers instead of a schema."""
    status = error.http_status_code
    if status in _REDIRECTS:
        return f"it redirects to another address (HTTP {status}); write that one"
    hint = "; is the path of its address right?" if status == 404 else ""
    return f"{shorten(str(error.error_message or 'no reason given'), 200)} (HTTP {status}){hint}"


def framed(load: Callable[[int], Body]) -> Body:
    """The decoder of framed records; `load` makes the decoder of the bytes after the frame, by schema id."""
    bodies: dict[int, Body] = {}
    unknown: dict[int, tuple[float, str]] = {}

    def body_of(number: int) -> Body:
        since, reason = unknown.get(number, (-inf, ""))
        if monotonic() - since < UNKNOWN_SECONDS:
            raise DecodeError(reason)
        try:
            bodies[number] = load(number)
        except DecodeError as error:
            unknown.pop(number, None)
            if len(unknown) >= UNKNOWN_KEPT:
                del unknown[next(iter(unknown))]
            unknown[number] = monotonic(), str(error)
            raise
        return bodies[number]

    def decode(record: bytes) -> Any:
        if len(record) < _FRAME.size or record[0] != 0:
            problem = "does not begin as a record of a schema registry does: the byte 0, and an id"
            raise DecodeError(f"{problem} (an id in a header is not read)")
        _, number = _FRAME.unpack_from(record)
        body = bodies.get(number) or body_of(number)
        return body(record[_FRAME.size :])

    return decode


def text_of(schema: Schema, wanted: str) -> str:
    """The text of a schema that must be of a given type. Raises DecodeError for another type."""
    found = schema.schema_type or "AVRO"
    if found != wanted:
        raise DecodeError(f"its schema is of type {found}, but {wanted} is declared")
    return schema.schema_str or ""
