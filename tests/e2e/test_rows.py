"""Output in update mode under the running service on real Kafka: the last rows of a key are compared."""

from __future__ import annotations

import pytest

from tests.support.marks import whole_product
from tests.support.versions import PARTITIONS, MakePair, Version
from tests.support.waiting import eventually

pytestmark = [*whole_product(), pytest.mark.nightly]

ROWS = """
order: unordered
emits: {upsert: {key: [k], settled_by: input}}
overdue: {clock: input}
show: [k, v]
"""


def batch(version: Version, consumed: int, rows: dict[int, int | None]) -> None:
    """A batch that ends at so many input records; a row without a value is deleted."""
    for key, value in rows.items():
        version.row(key, value, key % PARTITIONS)
    version.consumed = consumed
    version.say()


def test_versions_that_trigger_at_different_times_pass_and_a_wrong_last_row_fails(pair_of: MakePair) -> None:
    pair = pair_of(ROWS)
    pair.service.start()
    batch(pair.reference, 10, {1: 1, 2: 1, 3: 1})
    batch(pair.reference, 20, {1: 2, 3: None})
    batch(pair.candidate, 20, {1: 2, 2: 1})
    pair.service.shows(verdict="EQUIVALENT", matched=2)
    assert pair.status()["accounts"]["reference"]["superseded"] == 3
    pair.service.kill()
    pair.service.start()
    batch(pair.candidate, 30, {1: 3})
    batch(pair.candidate, 40, {1: 5})
    batch(pair.reference, 40, {1: 4})
    pair.service.shows(verdict="DIVERGED")
    eventually(lambda: pair.service.gate() == "fail", what="the gate fails")
    (found,) = pair.service.divergences()
    assert (found["kind"], found["fields"]) == ("changed", {"v": {"reference": 4, "candidate": 5}})
    assert "The candidate had written 1 row of this key before" in found["text"]
