"""Configures the log of the service: JSON lines on standard error, from every source.

Messages from libraries in Python's own logging, warnings and worse, are logged the same way, one line each.
No line holds the text of an exception, since that may hold values of records; a message with an exception
loses its further lines, in which some libraries repeat the text.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO, cast

import structlog

from twinstream.streams import Spared


def configure_logging() -> None:
    """Send every log message of this process to standard error, as JSON lines."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            _without_values,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", Spared(sys.stderr))),
    )
    root = logging.getLogger()
    root.handlers = [_Through(logging.WARNING)]


class _Through(logging.Handler):
    """Passes on messages from Python's own logging."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record as a line."""
        said = record.getMessage().strip()
        error = record.exc_info[1] if record.exc_info else None
        more = {} if error is None else {"exc_info": error}
        event = said if error is None else said.partition("\n")[0]
        structlog.get_logger().log(record.levelno, event, logger=record.name, **more)


def _without_values(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """An exception as the lines of code that it passed, without its text."""
    given = line.pop("exc_info", None)
    error = given if isinstance(given, BaseException) else sys.exception() if given else None
    if error is not None:
        line["exception"] = "".join([*traceback.format_tb(error.__traceback__), type(error).__name__])
    return line
