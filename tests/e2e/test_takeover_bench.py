"""The benchmark of take-overs, once for what ends soon."""

import pytest

from loadtest.takeover import measure

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.requires_kafka,
    pytest.mark.requires_redis,
    pytest.mark.timeout(240),
]


def test_a_round_of_each_kill_has_its_seconds():
    found = measure(1, ["matcher killed", "service killed"])
    for row in found.values():
        assert 0 < row["owner_seconds"]["most"] <= row["gate_seconds"]["most"]
        assert isinstance(row["meets"], bool)
