"""What a file of tests of the whole product needs, as its `pytestmark`, and what only runs each night."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def whole_product(*more: pytest.MarkDecorator, seconds: int = 240) -> list[pytest.MarkDecorator]:
    """Real processes on a real Kafka and a real Redis, and `more`; a test may take so many seconds."""
    servers = (pytest.mark.requires_kafka, pytest.mark.requires_redis)
    return [pytest.mark.e2e, *servers, *more, pytest.mark.timeout(seconds)]


def one_a_change(values: Iterable[Any]) -> list[Any]:
    """Parameters of a test, or tuples of them: the first for each change, the others for each night."""
    first, *others = values
    rows = (other if isinstance(other, tuple) else (other,) for other in others)
    return [first, *(pytest.param(*row, marks=pytest.mark.nightly) for row in rows)]
