"""Records and comparison files for drills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from twinstream.drill.copies import CopiedPair
from twinstream.spec.drills import DrillRecord
from twinstream.spec.file.model import Spec
from twinstream.spec.load import loads


def spec_with(order: str = "{per_key: [k]}", more: str = "") -> Spec:
    """A comparison file; events have a key `k`, a number `n` and a price `p`."""
    return loads(
        "version: 1\nname: rides\nreference: {topic: rides.v1}\ncandidate: {topic: rides.v2}\n"
        f"order: {order}\n{more}"
    )


def record(number: int, value: Any, *, partition: int = 0) -> DrillRecord:
    """A record, a second behind the one of the number before it."""
    packed = value if isinstance(value, bytes) else orjson.dumps(value)
    return DrillRecord(
        partition, number, 1_700_000_000_000 + number * 1000, b"key", [("trace", b"1")], packed
    )


def rides(count: int = 200, keys: int = 4) -> list[DrillRecord]:
    """So many events of some keys."""
    return [record(n, {"k": n % keys, "n": n, "p": 1.5}) for n in range(count)]


def pair(make: Callable[[], Sequence[DrillRecord]] = rides) -> CopiedPair:
    """The same records on both sides."""
    return CopiedPair(make(), make())
