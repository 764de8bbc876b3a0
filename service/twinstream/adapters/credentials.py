"""Reads secrets and certificates from files, again when they have changed while the service runs."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import structlog

from twinstream.access import Holder, Tokens, read_tokens
from twinstream.errors import SettingsError

LEAST = 20
"""The fewest characters of a secret; tokens need as many."""

_Stamps = list[tuple[int, int, int]]
"""Inode, length and time of modification, file by file: mounted secrets are replaced, others rewritten."""


def _stamps(what: str, *paths: str) -> _Stamps:
    """The stamps to compare with next time. Raises SettingsError."""
    try:
        found = [os.stat(path) for path in paths]  # noqa: PTH116 - for each request, which a Path doubles
    except OSError as error:
        raise SettingsError(f"{what}{error.filename} cannot be read: {error.strerror}") from None
    return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]


def _content(what: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"{what}{path} cannot be read: {error.strerror}") from None


def read_secret(path: str) -> bytes:
    """The content of a file, stripped of white space. Raises SettingsError, which does not reveal it."""
    secret = _content("mask key file ", path).strip()
    if len(secret) < LEAST:
        raise SettingsError(
            f"mask key file {path} holds {len(secret)} characters, which can be guessed: write at least "
            f"{LEAST}, as `openssl rand -hex 32` does"
        )
    return secret


class Certificate:
    """The certificate of the service with its chain, and its key, as PEM files.

    Files that become unreadable or do not match each other change nothing: the former certificate stays in
    use, and the log says why.
    """

    def __init__(self, cert: str, key: str) -> None:
        """Read both once. Raises SettingsError if they cannot be used."""
        self.cert, self.key = cert, key
        self._seen = _stamps("", cert, key)
        self._load(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))

    def renew(self, context: ssl.SSLContext) -> None:
        """Have `context` use the files as they are now, if they have changed since the last call."""
        try:
            now = _stamps("", self.cert, self.key)
            if now == self._seen:
                return
            # First on trial: a key that does not match must not replace half of a working pair.
            self._load(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
            self._load(context)
        except SettingsError as error:
            structlog.get_logger().error("certificate not renewed: the former stays", error=str(error))
            return
        self._seen = now
        structlog.get_logger().info("certificate read again", file=self.cert)

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self.cert, self.key, password=_no_password)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise SettingsError(
                f"--tls-cert {self.cert} and --tls-key {self.key} cannot be used: {_told(error)}"
            ) from None


def _told(error: Exception) -> str:
    """Why a certificate and its key cannot be used."""
    text = str(error)
    if "PEM lib" in text:
        return "the certificate, or the key, is no PEM file"
    if "KEY_VALUES_MISMATCH" in text:
        return "the key is that of another certificate"
    return getattr(error, "strerror", None) or text


def _no_password() -> str:
    """Answer a prompt for a password: there is nobody to type one."""
    raise ValueError("the key is encrypted, and a key without a password is needed")


class TokenFile:
    """The tokens of a file in its current state, so that some are added or withdrawn without a restart.

    A file that becomes unreadable or wrong changes nothing: the former tokens stay valid, and the log says
    why, once for each state of the file. A file without any line withdraws all tokens.
    """

    def __init__(self, path: str) -> None:
        """Read the file. Raises SettingsError if it is wrong, or has no token."""
        self._path = path
        self._seen: _Stamps | None = _stamps("token file ", path)
        self._tokens = self._read()
        if not len(self._tokens):
            raise SettingsError(f"token file {path} names no token: nobody could ask")

    def holder(self, token: str) -> Holder | None:
        """The holder of a token; None if it is not valid now."""
        self._refresh()
        return self._tokens.holder(token)

    def _refresh(self) -> None:
        before, self._seen = self._seen, None
        try:
            self._seen = _stamps("token file ", self._path)
            if self._seen == before:
                return
            self._tokens = self._read()
        except SettingsError as error:
            if self._seen != before:
                structlog.get_logger().error(
                    "token file not read again: the former tokens stay", error=str(error)
                )
            return
        structlog.get_logger().info("token file read again", file=self._path)

    def _read(self) -> Tokens:
        try:
            text = _content("token file ", self._path).decode()
        except UnicodeDecodeError:
            raise SettingsError(f"token file {self._path} is not UTF-8") from None
        return read_tokens(text, self._path)
