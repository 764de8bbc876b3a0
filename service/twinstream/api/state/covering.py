"""Merges the coverage of several shards: kinds, keys and fields, and whether they varied.

No two shards share an event or a key. A field with one value in each of several shards has one value
altogether only if these are equal, which their hashes show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from twinstream.status.comparison import Coverage, KindCoverage, ShardStatus


def seen_by_all(shards: Sequence[ShardStatus]) -> dict[str, Any]:
    """The members of `Coverage` that describe the sampled events, over all shards."""
    parts = [shard.status.coverage for shard in shards]
    keys = [part.keys for part in parts if part.keys is not None]
    kinds = dict.fromkeys(kind for part in parts for kind in part.kinds)
    return {
        "events": sum(part.events for part in parts),
        "kinds": {kind: _kind(kind, shards) for kind in kinds},
        "more_fields": any(part.more_fields for part in parts),
        "keys": sum(keys) if keys else None,
        "more_keys": any(part.more_keys for part in parts),
    }


def _kind(kind: str, shards: Sequence[ShardStatus]) -> KindCoverage:
    found: dict[str, set[str]] = {}
    sampled = 0
    for shard in shards:
        of_shard = shard.status.coverage.kinds.get(kind, KindCoverage())
        sampled += of_shard.sampled
        for field, value in _values(kind, shard.status.coverage, shard.constants):
            found.setdefault(field, set()).add(value)
    fields = {name: sorted(field for field, values in found.items() if _what(values) == name)
              for name in ("varied", "constant", "always_null")}  # fmt: skip
    return KindCoverage(sampled=sampled, **fields)


_NULL, _VARIED, _ONE = "null", "varied", "one"


def _values(kind: str, coverage: Coverage, constants: dict[str, dict[str, str]]) -> Iterator[tuple[str, str]]:
    """The fields of a shard, each with a stand-in for its values."""
    seen, hashes = coverage.kinds.get(kind, KindCoverage()), constants.get(kind, {})
    yield from ((field, _VARIED) for field in seen.varied)
    yield from ((field, _NULL) for field in seen.always_null)
    yield from ((field, hashes.get(field, _ONE)) for field in seen.constant)


def _what(values: set[str]) -> str:
    if _VARIED in values or len(values) > 1:
        return "varied"
    return "always_null" if values == {_NULL} else "constant"
