"""The log of the service."""

from __future__ import annotations

import ast
import asyncio
import io
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import orjson
import pytest
import structlog

from twinstream.logs import configure_logging

TOP = Path(__file__).parents[2]
SERVICE, OPERATING = TOP / "service" / "twinstream", TOP / "docs" / "operating.md"
LEVELS = ("info", "warning", "error", "exception")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    handlers = logging.getLogger().handlers
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers = handlers


def logged(monkeypatch: pytest.MonkeyPatch, file: io.StringIO) -> io.StringIO:
    """The file, which is standard error from now on, and has the log."""
    monkeypatch.setattr(sys, "stderr", file)
    configure_logging()
    return file


class _Gone(io.StringIO):
    """A pipe whose reader has ended."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(text)

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_line_is_a_json_object_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = logged(monkeypatch, io.StringIO())
    structlog.get_logger().info("started", comparison="ads")
    line = orjson.loads(lines.getvalue())
    assert (line["event"], line["comparison"], line["level"]) == ("started", "ads", "info")


def test_a_line_is_written_at_once_so_that_those_of_several_processes_do_not_mix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = logged(monkeypatch, io.StringIO())
    monkeypatch.setattr(lines, "write", written := Mock(wraps=lines.write))
    structlog.get_logger().info("started")
    ((text,),) = (call.args for call in written.call_args_list)
    assert text.endswith("}\n")


def test_a_log_that_nobody_reads_any_more_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    logged(monkeypatch, _Gone())
    structlog.get_logger().warning("checkpoint failed")


def test_an_exception_is_logged_with_the_lines_of_code_and_without_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = logged(monkeypatch, io.StringIO())
    try:
        int("ann" + "@example.com")
    except ValueError:
        structlog.get_logger().exception("matcher failed")
    line = orjson.loads(lines.getvalue())
    assert "test_logging.py" in line["exception"]
    assert line["exception"].endswith("ValueError")
    assert "ann@" not in lines.getvalue()


def test_what_a_library_says_is_a_line_of_the_same_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = logged(monkeypatch, io.StringIO())
    logging.getLogger("some.library").warning("it took %s s", 7)
    logging.getLogger("some.library").info("it went on")
    (line,) = map(orjson.loads, lines.getvalue().splitlines())
    assert (line["event"], line["logger"], line["level"]) == ("it took 7 s", "some.library", "warning")


def test_a_library_that_repeats_an_exception_tells_none_of_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = logged(monkeypatch, io.StringIO())

    async def fails() -> None:
        raise ValueError("ann" + "@example.com")

    async def nobody_waits() -> None:
        task = asyncio.create_task(fails())
        await asyncio.wait([task])
        del task

    asyncio.run(nobody_waits())
    (line,) = map(orjson.loads, lines.getvalue().splitlines())
    assert (line["event"], line["level"]) == ("Task exception was never retrieved", "error")
    assert line["exception"].endswith("ValueError")
    assert "ann@" not in lines.getvalue()


def _logged() -> set[str]:
    """What the service logs by itself, as it stands in the code."""
    found = set()
    for file in SERVICE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(attr=level, value=by), args=[ast.Constant(value=str(said))]):
                    if level in LEVELS and ("log" in ast.unparse(by)):
                        found.add(said)
    return found


def test_every_line_that_is_logged_is_explained_and_no_other() -> None:
    _, _, table = OPERATING.read_text(encoding="utf-8").partition("## Log lines\n")
    rows = [line.split(" | ")[0] for line in table.partition("\n## ")[0].splitlines() if line[:3] == "| `"]
    assert {event for row in rows for event in re.findall(r"`([^`]+)`", row)} - {"event"} == _logged()
