"""The log of the service."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import orjson
import pytest
import structlog

from twinstream.bootstrap import configure_logging


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


class _Gone(io.StringIO):
    """A pipe whose reader has ended."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(text)

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_line_is_a_json_object_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = io.StringIO()
    monkeypatch.setattr(sys, "stderr", lines)
    configure_logging()
    structlog.get_logger().info("started", comparison="ads")
    line = orjson.loads(lines.getvalue())
    assert (line["event"], line["comparison"], line["level"]) == ("started", "ads", "info")


def test_a_log_that_nobody_reads_any_more_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", _Gone())
    configure_logging()
    structlog.get_logger().warning("checkpoint failed")


def test_an_exception_is_logged_with_the_lines_of_code_and_without_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = io.StringIO()
    monkeypatch.setattr(sys, "stderr", lines)
    configure_logging()
    try:
        int("ann" + "@example.com")
    except ValueError:
        structlog.get_logger().exception("matcher failed")
    line = orjson.loads(lines.getvalue())
    assert "test_logging.py" in line["exception"]
    assert line["exception"].endswith("ValueError")
    assert "ann@" not in lines.getvalue()
