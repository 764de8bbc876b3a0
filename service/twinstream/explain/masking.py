"""Masks values that may hold personal data.

A value of a field that the comparison file does not show is replaced by a *stand-in*: its type, its length,
and a hash. The hash is keyed with a secret, so that nobody without it can find a value by trying all values.
Equal values of one field have the same hash, on both sides and in all events: a person sees that a value
recurs without seeing it. Hashes cannot be compared between two fields, or between two comparisons.

Names of fields are shown. If an object is a *map*, the names of its members are data as well, and are masked
like values. In a path `*` stands for such a name.
"""

from __future__ import annotations

import base64
import math
import secrets
from collections.abc import Callable, Iterable
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import orjson

from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.describe import trait
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import Path, parse_path

SECRET_BYTES = 32
HASH_BYTES = 4
"""Two different values get the same hash once in four billion pairs; nothing depends on it."""
KEPT_BYTES = 8
"""Hash bytes for values that are kept but not shown, to be compared with many others."""
MEMBER = "*"
HIDDEN = object()
"""Stands for a value of which nothing may be shown."""
_APPLICATION = b"twinstream mask"
_DERIVED = b"twinstream other"
_SECRET_NAME = "\0"
"""No path of an event."""


_WIDE = 2**63
"""JSON carries whole numbers below it as they are."""
_PLAIN = frozenset((str, bool, type(None)))
"""The types of most values that JSON carries as they are."""


def fresh_secret() -> bytes:
    """A new random secret."""
    return secrets.token_bytes(SECRET_BYTES)


def plain(value: Any, wide: Callable[[int | Decimal], Any] = str) -> Any:
    r"""A decoded value as JSON can carry it: without loss, with texts for values that JSON lacks.

    `wide` gives what stands for a number that its readers may not hold exactly.

    >>> plain({"raw": b"\x81", "ratio": float("nan"), "fare": Decimal("1.50"), "id": 2**64})
    {'raw': 'base64:gQ==', 'ratio': 'nan', 'fare': 1.5, 'id': '18446744073709551616'}
    """
    kind = type(value)
    if kind in _PLAIN or (kind is int and -_WIDE < value < _WIDE):
        return value
    if isinstance(value, dict):
        return {
            name: member if type(member) in _PLAIN else plain(member, wide) for name, member in value.items()
        }
    if isinstance(value, list):
        return [plain(item, wide) for item in value]
    if isinstance(value, bytes):
        return f"base64:{base64.b64encode(value).decode()}"
    if isinstance(value, Decimal) and value.is_finite():
        near = float(value)
        return near if math.isfinite(near) and Decimal(repr(near)) == value else wide(value)
    if kind is int:
        return wide(value)
    return value if isinstance(value, float) and math.isfinite(value) else str(value)


def readable(value: Any) -> Any:
    """A decoded value for a text that people read: as `plain`, but numbers of any size stay numbers."""
    return plain(value, wide=lambda number: number)


def json_text(value: Any) -> str:
    """A value as JSON, with all digits of its numbers.

    >>> json_text([Decimal("1.10"), 2**64, "1.10"])
    '[1.1,18446744073709551616,"1.10"]'
    """
    return orjson.dumps(plain(value, wide=lambda number: orjson.Fragment(str(number)))).decode()


class Mask:
    """Shows the fields in `shown`, and stand-ins for all others; `maps` are objects whose names are data.

    `secret` keys the hashes. It may be replaced: then all hashes change.

    >>> mask = Mask(["taxi"], ["fares"], b"a secret")
    >>> mask({"taxi": 7, "driver": "Ann", "fares": {"Bob": 9}})  # doctest: +NORMALIZE_WHITESPACE
    {'taxi': 7, 'driver': '‹text, 3 characters, #e857d4f8›',
     'fares': {'‹name, 3 characters, #505bd68a›': '‹number, #17173fdf›'}}
    """

    def __init__(
        self, shown: Iterable[str], maps: Iterable[str] = (), secret: bytes = b"", domain: str = ""
    ) -> None:
        self._shown, self._maps = set(map(parse_path, shown)), set(map(parse_path, maps))
        self._domain = domain
        self.take(secret)

    @classmethod
    def of(cls, spec: Spec, secret: bytes) -> Mask:
        """The mask that a comparison file declares."""
        return cls(spec.show, spec.maps, secret, spec.name)

    def take(self, secret: bytes) -> None:
        """Key the hashes with a secret from now on."""
        inner = blake2b(secret, digest_size=64, person=_APPLICATION).digest()
        self._key = blake2b(self._domain.encode(), digest_size=32, key=inner).digest()

    def __call__(self, value: Any, at: Path = ()) -> Any:
        """The shown form of a value at a path of an event.

        Complexity: about 2 µs for each value that is masked.
        """
        return self._seen(value, self.place(at))

    def part(self, value: Any, at: Path = ()) -> tuple[Any, int]:
        """What of a value people may read, and how many members they may not; `HIDDEN` where nothing.

        >>> Mask(["taxi"]).part({"taxi": 7, "driver": "Ann", "paid": {"tip": 1}})
        ({'taxi': 7}, 2)
        """
        return self._part(value, self.place(at))

    def kept(self, value: Any, at: Path = ()) -> str:
        """A hash of a value that may be kept, to recognize the value; useless without the secret."""
        return self._digest(value, self.place(at), KEPT_BYTES)

    @property
    def secret_name(self) -> str:
        """A text that tells one secret from another and reveals neither."""
        return self.kept("", (_SECRET_NAME,))

    def secret_for(self, purpose: str) -> bytes:
        """A secret of 32 bytes for another purpose, which reveals nothing of this one."""
        return blake2b(purpose.encode(), digest_size=32, key=self._key, person=_DERIVED).digest()

    def path(self, path: Path) -> Path:
        """A path, with stand-ins for names that are data."""
        if not self._maps:
            return path
        return tuple(
            self._name(name, self.place(path[:number])) if self._hides(path[:number]) else name
            for number, name in enumerate(path)
        )

    def open_path(self, path: Path) -> Path:
        """A path, with `MEMBER` for names that are data and may not be shown."""
        if not self._maps:
            return path
        return tuple(MEMBER if self._hides(path[:number]) else name for number, name in enumerate(path))

    def shows(self, path: Path) -> bool:
        """Whether values at a path may be shown."""
        return self._allows(self.place(path))

    def _seen(self, value: Any, at: Path) -> Any:
        if self._allows(at):
            return plain(value)
        if not isinstance(value, dict):
            return self._stand_in(value, at)
        if at in self._maps:
            return {self._name(name, at): self._seen(member, (*at, MEMBER)) for name, member in value.items()}
        return {name: self._seen(member, (*at, name)) for name, member in value.items()}

    def _part(self, value: Any, at: Path) -> tuple[Any, int]:
        if self._allows(at):
            return readable(value), 0
        if not isinstance(value, dict):
            return HIDDEN, 1
        if at in self._maps:
            return HIDDEN, len(value)
        parts = {name: self._part(member, (*at, name)) for name, member in value.items()}
        shown = {name: part for name, (part, _) in parts.items() if part is not HIDDEN}
        hidden = sum(count for _, count in parts.values())
        return (shown if shown or not hidden else HIDDEN), hidden

    def _allows(self, at: Path) -> bool:
        return any(at[:end] in self._shown for end in range(len(at) + 1))

    def _hides(self, path: Path) -> bool:
        """Whether the names of the members of the object at a path are data that may not be shown."""
        at = self.place(path)
        return at in self._maps and not self._allows(at)

    def place(self, path: Path) -> Path:
        """A path with `MEMBER` for names that are data."""
        if not self._maps:
            return path
        at: Path = ()
        for name in path:
            at = (*at, MEMBER if at in self._maps else name)
        return at

    def _name(self, name: str, at: Path) -> str:
        return f"‹name, {len(name)} characters, {self._hash(name, (*at, MEMBER, ''))}›"

    def _stand_in(self, value: Any, at: Path) -> str:
        if value is None:
            return "‹null›"
        return f"‹{trait(value)}, {self._hash(value, at)}›"

    def _hash(self, value: Any, at: Path) -> str:
        return f"#{self._digest(value, at, HASH_BYTES)}"

    def _digest(self, value: Any, at: Path, size: int) -> str:
        written = value.encode() if isinstance(value, str) else b"\0" + canonical_value(value)
        place = "\0".join(at).encode()
        told = b"%d %b%b" % (len(place), place, written)
        return blake2b(told, digest_size=size, key=self._key).hexdigest()


EVERYTHING = Mask([""])
"""Shows everything, to people who have the records anyway: all fields lie below the empty path."""
