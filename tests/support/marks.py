"""What a file of tests of the whole product needs, as its `pytestmark`."""

from __future__ import annotations

import pytest


def whole_product(*more: pytest.MarkDecorator, seconds: int = 240) -> list[pytest.MarkDecorator]:
    """Real processes on a real Kafka and a real Redis, and `more`; a test may take so many seconds."""
    servers = (pytest.mark.requires_kafka, pytest.mark.requires_redis)
    return [pytest.mark.e2e, *servers, *more, pytest.mark.timeout(seconds)]
