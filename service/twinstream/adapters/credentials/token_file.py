"""A token file, read again when it has changed, so that tokens are added or withdrawn without a restart."""

from __future__ import annotations

from pathlib import Path

import structlog

from twinstream.access import Holder, Tokens, read_tokens
from twinstream.adapters.files.stamps import FileStamp, stamp
from twinstream.errors import SettingsError


class TokenFile:
    """The tokens of a file in its current state.

    A file that becomes unreadable or wrong changes nothing: the former tokens stay valid, and the log says
    why. A file without any line withdraws all tokens.
    """

    def __init__(self, path: str) -> None:
        """Read the file. Raises SettingsError if it is wrong, or has no token."""
        self._path = path
        self._stamp: FileStamp | None = self._look()
        self._tokens = self._read()
        if not len(self._tokens):
            raise SettingsError(f"token file {path} names no token: nobody could ask")

    def holder(self, token: str) -> Holder | None:
        """The holder of a token; None if it is not valid now."""
        self._refresh()
        return self._tokens.holder(token)

    def _refresh(self) -> None:
        try:
            now = self._look()
        except SettingsError as error:
            self._complain(error, None)
            return
        if now == self._stamp:
            return
        try:
            self._tokens = self._read()
        except SettingsError as error:
            self._complain(error, now)
            return
        self._stamp = now
        structlog.get_logger().info("token file read again", file=self._path)

    def _complain(self, error: SettingsError, now: FileStamp | None) -> None:
        """Log the error once for each state of the file."""
        if self._stamp != now:
            structlog.get_logger().error(
                "token file not read again: the former tokens stay", error=str(error)
            )
        self._stamp = now

    def _look(self) -> FileStamp:
        try:
            return stamp(self._path)
        except OSError as error:
            raise SettingsError(f"token file {self._path} cannot be read: {error.strerror}") from None

    def _read(self) -> Tokens:
        try:
            text = Path(self._path).read_text(encoding="utf-8")
        except OSError as error:
            raise SettingsError(f"token file {self._path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SettingsError(f"token file {self._path} is not UTF-8") from None
        return read_tokens(text, self._path)
