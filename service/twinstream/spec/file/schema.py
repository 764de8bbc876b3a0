"""Makes the JSON Schema of the comparison file, for editors, from the model and its docstrings.

``python -m twinstream.spec.file.schema`` prints it; it is kept in ``docs/comparison.schema.json``. The schema
covers the shape of a file and the short forms that loading accepts. The laws that relate one key to another
are checked only when a file is loaded.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from twinstream.spec.file.model import Spec
from twinstream.spec.file.values import duration_text

DIALECT = "https://json-schema.org/draft/2020-12/schema"
JsonSchema = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """Writes defaults as a file would."""

    def encode_default(self, dft: Any) -> Any:
        return duration_text(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def comparison_schema() -> JsonSchema:
    """The schema of a comparison file, in the dialect of 2020-12."""
    made = _tidy(Spec.model_json_schema(schema_generator=_Generator))
    definitions = made.pop("$defs")
    head = {"$schema": DIALECT, "title": "Twinstream comparison file", "description": _ABOUT}
    return {**head, **{key: made[key] for key in made if key != "description"}, "$defs": definitions}


_ABOUT = "Two versions of a streaming pipeline, and what counts as equal between their outputs."


def _tidy(node: Any) -> Any:
    """Remove what helps nobody: titles made of names, defaults that say nothing."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _tidy_member(key, value) for key, value in node.items() if not _says_nothing(key, value)}


def _tidy_member(key: str, value: Any) -> Any:
    """Leave the names of members and definitions alone, which are no keywords; put a text on one line."""
    if key in {"properties", "$defs"}:
        return {name: _tidy(schema) for name, schema in value.items()}
    return " ".join(value.split()) if key == "description" else _tidy(value)


def _says_nothing(key: str, value: Any) -> bool:
    return key == "title" or (key == "default" and (value is None or isinstance(value, (list, dict))))


def text() -> str:
    """The text of the schema, as in the file."""
    return json.dumps(comparison_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
