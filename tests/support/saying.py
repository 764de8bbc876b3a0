"""Versions of a pipeline that say what they have done: their comparison, and their control records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

TOPICS = ("test.reference", "test.candidate")
"""Where the versions write, by side."""
VERSIONS = """\
version: 1
name: test
reference: {topic: test.reference, version: "1"}
candidate: {topic: test.candidate, version: "2"}
"""


def control_record(
    version: str, batch: int, consumed: Mapping[str, Any], written: Mapping[str, Any], **more: Any
) -> bytes:
    """A version has finished a batch: consumed by input topic, and written by topic, up to these offsets."""
    said = {
        "version": version,
        "query_id": "q",
        "run_id": "r",
        "batch": batch,
        "attempt": "e",
        "consumed": consumed,
        "written": written,
        "rows": 0,
        **more,
    }
    return orjson.dumps(said, option=orjson.OPT_NON_STR_KEYS)
