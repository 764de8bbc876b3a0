"""The benchmark of take-overs, once for what ends soon."""

import pytest

from loadtest.takeover import measure
from tests.support.marks import whole_product

pytestmark = whole_product()


@pytest.mark.nightly
def test_a_round_of_each_kill_has_its_seconds():
    found = measure(1, ["matcher killed", "service killed"])
    for row in found.values():
        assert 0 < row["owner_seconds"]["most"] <= row["gate_seconds"]["most"]
        assert isinstance(row["meets"], bool)
