"""What the tests of the HTTP interface and of the commands that ask it share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.server import TOKENS, Matcher, Served, served
from tests.support.statuses import now, status
from twinstream.api.state.board import Board


@pytest.fixture
def service() -> Iterator[Served]:
    """A service with one comparison, which is EQUIVALENT."""
    with served(Board(stale_after_seconds=60)) as service:
        service.publish(status(at=now()))
        yield service


@pytest.fixture
def matcher() -> Matcher:
    return Matcher()


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """A file of tokens: one of a reader, and one of an operator."""
    file = tmp_path / "tokens"
    file.write_text(TOKENS)
    return file


@pytest.fixture
def http(service: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=10, trust_env=False, verify=False) as client:
        yield client
