"""What a batch has consumed, as its sources tell it."""

from __future__ import annotations

import pytest

from twinstream.spark.running import kafka_offsets


@pytest.mark.parametrize(
    "offsets",
    [
        "7",
        "no JSON",
        '{"shard-0": {"sequence": "0"}}',
        '{"shard": {"0": "41"}}',
        '{"shard": {"0": {"sequence": 1}}}',
        '{"shard": {"0": true}}',
        '{"shard": {"0": -1}}',
    ],
)
def test_a_source_with_offsets_of_its_own_is_left_out(offsets: str) -> None:
    assert kafka_offsets([offsets, '{"in": {"0": 3, "1": 0}}']) == {"in": {0: 3, 1: 0}}
