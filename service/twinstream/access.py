"""Access to the service: tokens, each with a role and the name of its holder.

A token file has one line for each token, `ROLE NAME TOKEN`; `#` begins a comment:

    read     prometheus  q7VQ2d0yS3cHkz0c9JmT4w
    operate  anna        sha256:5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8

`read` may look, `operate` may change, too. A line may hold the SHA-256 of a token instead. Nothing here keeps
a token: only its SHA-256 is kept, and compared in constant time with each, so that neither the time of an
answer nor a dump of the process reveals one.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, Protocol

from twinstream.errors import SettingsError

Role = Literal["read", "operate"]
ROLES: tuple[Role, ...] = ("read", "operate")
LEAST_CHARACTERS = 20
"""Random text of this length is beyond guessing; shorter tokens were invented by a person."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Holder:
    """The sender of a request, with their role."""

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether the holder has this role; `operate` includes `read`."""
        return self.role == "operate" or role == "read"


LOCAL = Holder("local", "operate")
"""The holder if there are no tokens: somebody on this host."""


class Keys(Protocol):
    """The tokens that are valid now."""

    def holder(self, token: str) -> Holder | None:
        """The holder of a token; None if it is not valid."""


class Tokens:
    """The tokens of one reading of a file."""

    def __init__(self, holders: Sequence[tuple[bytes, Holder]]) -> None:
        self._holders = holders

    def __len__(self) -> int:
        return len(self._holders)

    def holder(self, token: str) -> Holder | None:
        """The holder of a token; None if it is not valid.

        Runtime complexity: O(number of tokens), for any token.
        """
        given, found = sha256(token.encode("utf-8", "surrogatepass")).digest(), None
        for digest, holder in self._holders:
            if hmac.compare_digest(digest, given):
                found = holder
        return found


def read_tokens(text: str, file: str) -> Tokens:
    """The tokens in a file's text. Raises SettingsError with file and line, and never with a token."""
    holders: dict[bytes, Holder] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        digest, holder = _entry(words, f"token file {file}:{number}")
        if digest in holders:
            raise SettingsError(
                f"token file {file}:{number}: this token is that of {holders[digest].name}: give each its own"
            )
        holders[digest] = holder
    return Tokens(list(holders.items()))


def _entry(words: Sequence[str], place: str) -> tuple[bytes, Holder]:
    if len(words) != 3:
        raise SettingsError(f"{place}: a line is ROLE NAME TOKEN, and this one has {len(words)} words")
    role, name, token = words
    if role not in ROLES:
        raise SettingsError(f"{place}: a line begins with a role, read or operate, and this one does not")
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{place}: the name is not 1 to 63 letters, digits and . _ @ -, the first a letter or digit"
        )
    if name == LOCAL.name:
        raise SettingsError(f"{place}: the name {name} is that of who needs no token: take another")
    return _digest(token, place), Holder(name, role)


def _digest(token: str, place: str) -> bytes:
    if token.startswith("sha256:"):
        if not _DIGEST.fullmatch(token):
            raise SettingsError(f"{place}: sha256: must be followed by 64 hexadecimal digits in lower case")
        return bytes.fromhex(token.removeprefix("sha256:"))
    if len(token) < LEAST_CHARACTERS:
        raise SettingsError(
            f"{place}: the token has {len(token)} characters, at least {LEAST_CHARACTERS} are needed: "
            "take the output of `openssl rand -hex 32`"
        )
    if not _TOKEN.fullmatch(token):
        raise SettingsError(f"{place}: the token has other characters than letters, digits and - . _ ~ + / =")
    return sha256(token.encode()).digest()
