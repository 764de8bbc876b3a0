"""Versions of a pipeline that say what they have done: their comparison, and their control records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from loadtest.memory import MemorySource
from twinstream.core.events import Side

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


def finish(
    source: MemorySource,
    side: Side,
    batch: int,
    consumed: int | Mapping[int, int],
    written: int | None = None,
    *,
    since: int | Mapping[int, int] | None = None,
    topic: str = "in",
    **more: Any,
) -> None:
    """The version of a side says that it has finished a batch, and written all that is there, or so much.

    `consumed` is up to where it has read its input, and `since` from where on in this batch.
    """
    ends = source.ends()[side] if written is None else {0: written}
    if since is not None:
        more["consumed_from"] = {topic: {0: since} if isinstance(since, int) else since}
    read = {0: consumed} if isinstance(consumed, int) else consumed
    source.say(control_record("12"[side], batch, {topic: read}, {TOPICS[side]: ends}, **more))
