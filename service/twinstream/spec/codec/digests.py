"""`keep: hashes`: holds only digests of an event, nothing of its content.

Matching asks whether events are equal, whether the fields that the order reads are equal, and whether those
of the identity are. Digests answer all three: 128 bits of BLAKE2b, keyed with the secret of the comparison,
of the canonical form and of each of these fields. So the record of a form is a *token*: the kind and these
digests. The form can be made from it again. Digests cannot compare times, nor numbers with a tolerance; a
file that asks for those is refused (`spec.laws`).

The probability that among n events any two different ones share a digest is below n² / 2^129: 10^-20 for 10^9
events.

A field has the same digest under any name: rules may ask for two fields of different names to be equal.

Rules of this file: decoded values live until their batch is taken; only digests are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from typing import Any

from twinstream.core.events import Form, Side
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.codec.codec import DIGEST_BYTES, IGNORED, LATEST_LIMIT, Codec, RefusedRecord
from twinstream.spec.codec.layout import Route
from twinstream.spec.codec.routes import Routing
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import ABSENT, Path, put, read

_APPLICATION = b"twinstream keep"
_KIND_BYTES = 2
_NONE = bytes(DIGEST_BYTES)
"""Stands for an absent field."""


class WithheldRecord(bytes):
    """Stands for a record known only by its token: the text shown in its place, with the reason."""

    __slots__ = ()


def codec_of(spec: Spec) -> Codec:
    """The codec of a matcher, which holds events as the comparison file says.

    Raises SpecError like `Codec`.
    """
    return KeptCodec(spec) if spec.keep == "hashes" else Codec(spec)


class Digests:
    """Makes tokens of events, and forms of tokens. `route` is that of the order."""

    def __init__(self, spec: Spec, route: Route) -> None:
        self._route = route
        self._kinds = spec.compared_kinds
        self._numbers = {kind: number.to_bytes(_KIND_BYTES) for number, kind in enumerate(self._kinds)}
        self._paths = {kind: _paths(spec, kind) for kind in self._kinds}
        self._nulls = {kind: spec.equality_of(kind).absent_is_null for kind in self._kinds}
        self.take(b"")

    def take(self, secret: bytes) -> None:
        """Key the digests; before any event is read."""
        key = blake2b(secret, digest_size=32, person=_APPLICATION).digest()
        self._keyed = blake2b(digest_size=DIGEST_BYTES, key=key).copy

    def of(self, content: bytes) -> bytes:
        """The digest of some bytes. Complexity: about 0.5 µs; a copy saves taking in the key again."""
        digest = self._keyed()
        digest.update(content)
        return digest.digest()

    def place(self, kind: str, value: Any, letter: bytes) -> tuple[Hashable, bytes, bytes]:
        """The lane, the digest and the token of an event.

        Raises DecodeError if the event lacks a field that the order needs.
        """
        told = [self._told(value, path, kind) for path in self._paths[kind]]
        digest = self.of(letter)
        token = b"".join((self._numbers[kind], digest, *told))
        return self._lane(kind, digest, told), digest, token

    def form(self, token: bytes) -> Form:
        """The form of a token."""
        kind, digest, told = self._opened(token)
        return Form(self._lane(kind, digest, told), digest, kind, token)

    def identity(self, paths: Sequence[Path]) -> Callable[[bytes], Hashable]:
        """The identity of the event of a token: the digests of its fields at some paths.

        An event with none of them shares it with no other. A field that decides nothing for a kind counts as
        absent in its events.
        """
        places = {
            kind: [known.index(path) for path in paths if path in known]
            for kind, known in self._paths.items()
        }

        def identity(token: bytes) -> Hashable:
            kind, _, told = self._opened(token)
            found = b"".join(told[place] for place in places[kind])
            return found if found.strip(_NONE) else object()

        return identity

    def _told(self, value: Any, path: Path, kind: str) -> bytes:
        member = read(value, path)
        if member is ABSENT:
            if not self._nulls[kind]:
                return _NONE
            member = None
        return self.of(canonical_value(member))

    def _opened(self, token: bytes) -> tuple[str, bytes, list[bytes]]:
        starts = range(_KIND_BYTES, len(token), DIGEST_BYTES)
        digest, *told = (token[start : start + DIGEST_BYTES] for start in starts)
        return self._kinds[int.from_bytes(token[:_KIND_BYTES])], digest, told

    def _lane(self, kind: str, digest: bytes, told: Sequence[bytes]) -> Hashable:
        """The route of an event with digests as values."""
        value: dict[str, Any] = {}
        for path, digested in zip(self._paths[kind], told, strict=True):
            if digested != _NONE:
                put(value, path, digested.hex())
        return self._route(kind, value, digest)


class KeptCodec(Codec):
    """A codec whose forms hold tokens: the `record` of a form is one, its `content` a digest.

    `form_again` and `identity` read tokens; other methods read records. `take` comes before any
    event.
    """

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._twins: dict[bytes, Any] | None = {} if self.equal_by_record else None
        self.equal_by_record = False  # Records are not held: twins are found by their digests.
        if spec.identity is not None:
            self.identity = self._digests.identity([spec.path_of(field) for field in spec.identity])

    def _routing(self, spec: Spec) -> Routing:
        """Make the lane, digest and token of an event stand for its route while it is read."""
        routing = super()._routing(spec)
        self._digests = Digests(spec, routing.route)
        return routing._replace(route=self._digests.place, by_content=True)

    def take(self, secret: bytes) -> None:
        """Key the digests with a secret."""
        if self._twins is not None:
            self._twins.clear()
        self._digests.take(secret)

    def forms(
        self,
        records: Sequence[bytes | None],
        side: Side = Side.LEFT,
        known: Sequence[Form | None] | None = None,  # noqa: ARG002 - no event holds its record
    ) -> tuple[list[Form], list[RefusedRecord]]:
        """See `Codec.forms`. A twin is found by a digest."""
        held, twins = self._records.held(records, side), self._twins
        if twins is None:
            found = list(map(self._new, held))
        else:
            found = [self._known(record, twins) for record in held]
            if len(twins) > LATEST_LIMIT:
                twins.clear()
        return found, [] if all(found) else self._refused(held, found)

    def _known(self, record: bytes | None, twins: dict[bytes, Any]) -> Any:
        """The form of a record, which the other side may have brought lately."""
        if record is None:
            return self._new(record)
        seen = self._digests.of(record)
        form = twins.pop(seen, None)
        if form is None:
            form = self._new(record)
            if form is not IGNORED:
                twins[seen] = form
        return form

    def _new(self, record: bytes | None) -> Any:
        """The form of a record, as a plain tuple."""
        read: Any = self._read(record)
        if read is IGNORED:
            return IGNORED
        lane, digest, token = read[0]
        return lane, digest, read[2], token

    def digest(self, content: bytes) -> bytes:
        """A digest keyed with the secret."""
        return self._digests.of(content)

    def form_again(self, record: bytes) -> Form:
        """The form of a token."""
        return self._digests.form(record)


def _paths(spec: Spec, kind: str) -> list[Path]:
    """The paths of the fields that decide something for a kind, besides those that decide the kind."""
    fields = [
        decision.field
        for decision in spec.decisions
        if decision.what in ("order", "identity") and kind in decision.kinds
    ]
    return [spec.path_of(field) for field in dict.fromkeys(fields)]
