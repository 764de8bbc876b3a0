"""What a job writes to its results topics, and `adapters.kafka.results` reads.

    RESULTS               NAME/job       the run of the job that claimed the comparison last
                          NAME/SHARD     the run of the job, the shard, the head of its save, its bulletin
    RESULTS.divergences   NAME/SHARD/ID  when the comparison began, and the report

Both have one partition and are compacted: they hold the last word about each shard, and each divergence.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple

import orjson

from twinstream.adapters.kafka.results import DIVERGENCES
from twinstream.checkpoints import format as checkpoint
from twinstream.core.arrivals.sharding import Shard


class ResultsRecord(NamedTuple):
    """A record for a results topic."""

    topic: str
    key: bytes
    value: bytes


def rows_of(
    results: str, run: str, shard: Shard, bulletin: bytes, head: bytes, saved: Mapping[str, bytes]
) -> list[ResultsRecord]:
    """The records of a batch about one shard: divergences saved in it by id, and its status last."""
    said = orjson.loads(bulletin)
    status = said["said"]["status"]
    place = f"{status['name']}/{shard.number}"
    began = status["started_at"]
    reports = [
        ResultsRecord(
            results + DIVERGENCES,
            f"{place}/{key}".encode(),
            orjson.dumps({"began": began, "report": orjson.Fragment(report)}),
        )
        for key, report in saved.items()
    ]
    told = {"run": run, "shard": shard.number, "of": shard.of, "began": began}
    told |= {"head": b64encode(_glanced(head)).decode(), "bulletin": said}
    return [*reports, ResultsRecord(results, place.encode(), orjson.dumps(told))]


def _glanced(head: bytes) -> bytes:
    """Of the head of a checkpoint, what others read: of what it is, and which divergences are in doubt."""
    if not head:
        return b""
    whole = checkpoint.decode(head)
    return checkpoint.encode({name: whole[name] for name in ("spec_digest", "started_at", "doubted")})
