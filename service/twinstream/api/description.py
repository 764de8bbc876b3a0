"""Describes the errors of the HTTP interface as problem documents in the OpenAPI description."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from twinstream.api.routes.problems import MEDIA_TYPE

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457. `detail` is a sentence for a person; `errors` names parameters that are wrong.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"parameter": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
    "additionalProperties": True,
}
MISUNDERSTOOD = "The request cannot be understood; `errors` names the parameters."


def describe_problems(app: FastAPI) -> None:
    """Change the description of `app` so that its errors are problem documents, as in the answers."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        document = plain()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Problem"] = PROBLEM_SCHEMA
        for operations in document["paths"].values():
            for operation in operations.values():
                _describe(operation["responses"])
        return document

    app.openapi = described  # type: ignore[method-assign]


def _describe(responses: dict[str, Any]) -> None:
    for code, response in responses.items():
        if code.startswith(("4", "5")):
            response["content"] = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
            if response["description"] == "Validation Error":
                response["description"] = MISUNDERSTOOD
