"""A schema registry on a real socket, with the two addresses that readers of records use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Registry:
    """What it answers, and what it was asked.

    `schemas` are by id, `versions` by subject and version. A schema is what the registry has as JSON; of a
    Protobuf schema, `schema` is the form `serialized`. With `trouble`, every answer is this status;
    with `raw`, this status and these bytes.
    """

    url: str = ""
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    versions: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    trouble: int | None = None
    raw: tuple[int, bytes] | None = None
    asked: list[str] = field(default_factory=list)

    def answer(self, address: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(address)
        if self.trouble is not None:
            return self.trouble, {"error_code": self.trouble * 100 + 1, "message": "out of order"}
        parts = urlsplit(address)
        match parts.path.strip("/").split("/"):
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return 200, _in_form(self.schemas[int(number)], parts.query)
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["subjects", subject, "versions", version] if (subject, int(version)) in self.versions:
                found = self.versions[subject, int(version)]
                return 200, {
                    "subject": subject,
                    "version": int(version),
                    "id": 0,
                    **_in_form(found, parts.query),
                }
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


def _in_form(schema: dict[str, Any], query: str) -> dict[str, Any]:
    serialized = parse_qs(query).get("format") == ["serialized"]
    if schema.get("schemaType") == "PROTOBUF" and not serialized:
        return {**schema, "schema": 'syntax = "proto3";'}
    return schema


@contextmanager
def running(registry: Registry) -> Iterator[Registry]:
    """Serve a registry on a free port, under its `url`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path)
            text = json.dumps(body).encode()
            if registry.raw is not None:
                status, text = registry.raw
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Say nothing: the tests read `asked`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        registry.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
