"""A bench that each test of a worker begins with."""

import pytest

from tests.support.workers import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
