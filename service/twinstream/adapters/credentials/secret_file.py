"""Reads a secret from a file, as orchestrators mount it."""

from __future__ import annotations

from pathlib import Path

from twinstream.errors import SettingsError

LEAST = 20
"""In characters; tokens need as many."""


def read_secret(path: str) -> bytes:
    """The content of a file, stripped of white space. Raises SettingsError, which does not reveal it."""
    try:
        secret = Path(path).read_bytes().strip()
    except OSError as error:
        raise SettingsError(f"mask key file {path} cannot be read: {error.strerror}") from None
    if len(secret) < LEAST:
        raise SettingsError(
            f"mask key file {path} holds {len(secret)} characters, which can be guessed: write at least "
            f"{LEAST}, as `openssl rand -hex 32` does"
        )
    return secret
