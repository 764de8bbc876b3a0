"""Control records, as a pipeline version writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson


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
