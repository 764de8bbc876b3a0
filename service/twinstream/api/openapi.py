"""Writes the OpenAPI description to a file: ``python -m twinstream.api.openapi docs/openapi.json``.

A running service answers the same at ``/openapi.json``, so it is made from the application itself.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fastapi import FastAPI

from twinstream.api.app import create_app
from twinstream.api.state.board import Board


def text_of(app: FastAPI) -> str:
    """The description as text, as in the file."""
    return json.dumps(app.openapi(), indent=1, ensure_ascii=False) + "\n"


def main(file: str) -> None:
    """Write the description to a file."""
    Path(file).write_text(text_of(create_app(Board(), lambda: (b"", ""))), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
