"""Records how the compared events looked: kinds, keys and fields, and whether they ever varied.

An EQUIVALENT says nothing of events that did not come. So the verdict is shown with those that did:
"`discount` was always null, nothing of kind `refund` matched, all events are of one key".

Events are sampled: everything compared is read here, while matching decodes a record that equals its partner
byte by byte at most once. The sample is the first `FIRST` of each side, then fewer and fewer, and at last one
in `STRIDE`. So short streams are examined from end to end, too. The sample depends on positions, not on
chance: the same streams give the same answer. Of values only a hash is kept, and only until there is a second
one. The hash is keyed with the secret of the masks, so that nobody who reads the state can find a value by
trying all values. With another secret, earlier hashes cannot be compared any more; sampling starts again.

Complexity: about 10 µs for a sampled event; none for others, except a microsecond for each run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from twinstream.core.events import Form, Side
from twinstream.errors import DecodeError, SourceError
from twinstream.explain.masking import Mask, fresh_secret
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.digests import WithheldRecord
from twinstream.spec.file.evidence import Wanted, lacking
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import Path, parse_path, path_text
from twinstream.status.comparison import Coverage, KindCoverage, ShardStatus, Stretches

FIRST = 1000
THINNING = 256
"""After the first events, one is sampled whenever the position has grown by this fraction of it."""
STRIDE = 2003
"""A prime: events that recur at even distances are not passed over."""
KEYS_LIMIT = 1000
FIELDS_LIMIT = 300
DEPTH_LIMIT = 8
LOOKED_AT = "fields and keys were looked at in"
NAMED = 8
"""At most so many fields are named in a sentence."""
TELLING = 20
"""Fewer events than this may well be alike by chance."""
_NULL, _VARIED, _ONE = "null", "", "one"
"""Stand for the values of a field: only null, several values, and one whose hash is not known."""


class SeenEvents:
    """Coverage of the events of one comparison. `mask` has the secret before any event is seen."""

    def __init__(self, spec: Spec, codec: Codec, mask: Mask | None = None) -> None:
        self._mask = mask or Mask.of(spec, fresh_secret())
        self._codec, self._kinds = codec, spec.compared_kinds
        self._inside = 1 if spec.whole else 0
        self._maps = frozenset(map(spec.path_of, spec.maps))
        self._count, self._next = [0, 0], [0, 0]
        self._sampled: dict[str, int] = dict.fromkeys(self._kinds, 0)
        self._fields: dict[str, dict[Path, str]] = {kind: {} for kind in self._kinds}
        self._more_fields = False
        self._keys: set[str] | None = set() if spec.order_fields else None
        self._more_keys = False

    def note(self, side: Side, forms: Sequence[Form]) -> None:
        """Sample the events that came from a side."""
        count, place = self._count[side], self._next[side]
        until = self._count[side] = count + len(forms)
        while place < until:
            self._look(forms[place - count])
            place += _gap(place)
        self._next[side] = place

    def _look(self, form: Form) -> None:
        kind, record = form[2], form[3]
        if isinstance(record, WithheldRecord):
            return
        try:
            value = self._codec.compared(record)
            scope = None if self._keys is None or self._more_keys else self._codec.scope(record)
        except (DecodeError, SourceError):
            return  # It was read before: a schema registry that is away now does not matter.
        fields, others = self._fields[kind], self._sampled[kind]
        self._sampled[kind] += 1
        members = dict(_members(value, (), self._maps))
        objects = self._objects(kind) if None in members.values() else set()
        for path, member in members.items():
            if fields.get(path) == _VARIED:
                continue
            hashed = _NULL if member is None else self._mask.kept(member, path)
            if others and path not in fields and (member is not None or path in objects):
                hashed = _VARIED
            self._note_member(fields, path, hashed)
        _note_absent(fields, members)
        if scope is not None:
            self._note_key(self._mask.kept(scope))

    def _objects(self, kind: str) -> Set[Path]:
        """The fields of a kind inside which others are known, so that they were objects."""
        return {path[:length] for path in self._fields[kind] for length in range(1, len(path))}

    def _note_member(self, fields: dict[Path, str], path: Path, hashed: str) -> None:
        known = fields.get(path)
        if known is not None:
            fields[path] = known if known == hashed else _VARIED
        elif sum(map(len, self._fields.values())) < FIELDS_LIMIT:
            fields[path] = hashed
        else:
            self._more_fields = True

    def _note_key(self, hashed: str) -> None:
        assert self._keys is not None
        self._keys.add(hashed)
        if len(self._keys) > KEYS_LIMIT:
            self._more_keys, self._keys = True, set()

    def move(self) -> None:
        """Copy the hashes of keys: some keep blocks of memory that all others have left. About 0.2 ms."""
        if self._keys:
            self._keys = {str(hashed.encode(), "ascii") for hashed in self._keys}

    # -- the results ---------------------------------------------------------------------------------------

    def told(self) -> dict[str, Any]:
        """The members of `Coverage` about the sampled events."""
        return {
            "events": sum(self._count),
            "kinds": {kind: self._kind(kind) for kind in self._kinds},
            "more_fields": self._more_fields,
            "keys": KEYS_LIMIT if self._more_keys else None if self._keys is None else len(self._keys),
            "more_keys": self._more_keys,
        }

    def constants(self) -> dict[str, dict[str, str]]:
        """By kind, the hash of each field that had one value, to be merged over shards."""
        return {
            kind: {self._name(path): known for path, known in fields.items() if known not in (_VARIED, _NULL)}
            for kind, fields in self._fields.items()
        }

    def _kind(self, kind: str) -> KindCoverage:
        fields = self._fields[kind].items()
        return _kind_of(self._sampled[kind], [(self._name(path), {known}) for path, known in fields])

    def _name(self, path: Path) -> str:
        """A field as the comparison file names it; the value's own fields lie inside a whole record."""
        return path_text(path[1:] if self._inside and path[0] == "$value" and len(path) > 1 else path)

    # -- state ---------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The whole state as JSON values; at most some tens of kilobytes."""
        return {
            "mask": self._mask.secret_name,
            "count": list(self._count),
            "next": list(self._next),
            "sampled": dict(self._sampled),
            "fields": {
                kind: {path_text(path): known for path, known in fields.items()}
                for kind, fields in self._fields.items()
            },
            "more_fields": self._more_fields,
            "keys": None if self._keys is None else sorted(self._keys),
            "more_keys": self._more_keys,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a `state` of the same comparison file, unless its hashes are of another secret."""
        if state.get("mask") != self._mask.secret_name:
            return
        self._count, self._next = list(state["count"]), list(state["next"])
        self._sampled.update(state["sampled"])
        for kind, fields in state["fields"].items():
            self._fields[kind] = {parse_path(name): known for name, known in fields.items()}
        self._more_fields, self._more_keys = state["more_fields"], state["more_keys"]
        self._keys = None if state["keys"] is None else set(state["keys"])


def _gap(place: int) -> int:
    """How far after an event the next one is sampled: odd, for the same reason as `STRIDE`."""
    return 1 if place + 1 < FIRST else min(STRIDE, place // THINNING | 1)


def _members(value: Any, at: Path, maps: Set[Path]) -> Iterator[tuple[Path, Any]]:
    """The members of a value that are no objects, with their paths; an array counts as one member.

    An object whose names are data counts as one, too: these names are not for the status.
    """
    if type(value) is dict and value and len(at) < DEPTH_LIMIT and at not in maps:
        for name, member in value.items():
            yield from _members(member, (*at, name), maps)
    elif at:
        yield at, value


def _note_absent(fields: dict[Path, str], members: Collection[Path]) -> None:
    """Note the fields that an event does not have: they vary, unless they were only null or absent so far.

    So an object varies that is a plain value, or null, in another event.
    """
    objects = {path[:length] for path in members for length in range(1, len(path))}
    for path, known in fields.items():
        if known != _VARIED and path not in members and (known != _NULL or path in objects):
            fields[path] = _VARIED


def _kind_of(sampled: int, found: Iterable[tuple[str, set[str]]]) -> KindCoverage:
    """What was seen of a kind: its fields, each with the hashes of its values, or what stands for them."""
    names: dict[str, list[str]] = {"varied": [], "constant": [], "always_null": []}
    for field, values in sorted(found):
        names[_what(values)].append(field)
    return KindCoverage(sampled=sampled, **names)


def _what(values: set[str]) -> str:
    if _VARIED in values or len(values) > 1:
        return "varied"
    return "always_null" if values == {_NULL} else "constant"


# -- in words ----------------------------------------------------------------------------------------------


def coverage_of(
    asked: Wanted,
    matched: int,
    seconds: float,
    by_kind: dict[str, int],
    until: datetime | None,
    timeline: Mapping[str, Any],
    seen: Mapping[str, Any],
) -> Coverage:
    """The evidence so far against the evidence asked for, with its notes.

    `until` is the Kafka time at which `seconds` end, `timeline` the state of the timeline of matches, and
    `seen` has the members about the sampled events.
    """
    coverage = Coverage(
        matched=matched,
        matched_required=asked.matched,
        seconds=seconds,
        seconds_required=asked.seconds,
        matched_by_kind=by_kind,
        missing=lacking(asked, matched, seconds, by_kind),
        until=until,
        kinds_required=list(asked.kinds),
        matched_since=Stretches(**timeline),
        **seen,
    )
    return coverage.model_copy(update={"notes": notes(coverage)})


def asked_of(coverage: Coverage) -> Wanted:
    """The evidence that was asked for."""
    return Wanted(coverage.matched_required, coverage.seconds_required, tuple(coverage.kinds_required))


def beyond_counts(coverage: Coverage) -> list[str]:
    """What is missing for another reason than that too little was counted."""
    counted = lacking(asked_of(coverage), coverage.matched, coverage.seconds, coverage.matched_by_kind)
    return [lack for lack in coverage.missing if lack not in counted]


def notes(coverage: Coverage) -> list[str]:
    """What a verdict on these events does not rest on, as sentences without a full stop.

    >>> fields = KindCoverage(sampled=60, varied=["ride"], always_null=["discount"], constant=["currency"])
    >>> seen = Coverage(matched=30, matched_required=1, seconds=0, seconds_required=0, events=60, keys=1,
    ...                 matched_by_kind={"ride": 30, "refund": 0}, missing=[], kinds={"ride": fields})
    >>> for note in notes(seen): print(note)
    nothing of kind `refund` has matched
    all events are of one key
    `discount` was always null
    `currency` never varied
    """
    kinds = coverage.kinds
    found = [f"nothing of kind `{kind}` has matched" for kind, count in coverage.matched_by_kind.items()
             if not count and len(coverage.matched_by_kind) > 1]  # fmt: skip
    if coverage.keys == 1 and coverage.events >= TELLING:
        found.append("all events are of one key")
    several = sum(kind.sampled > 0 for kind in kinds.values()) > 1
    for name, kind in kinds.items():
        of = f" in `{name}`" if several else ""
        if kind.sampled < TELLING:
            continue
        if kind.always_null:
            were = "was" if len(kind.always_null) == 1 else "were"
            found.append(f"{_named(kind.always_null)} {were} always null{of}")
        if kind.constant:
            found.append(f"{_named(kind.constant)} never varied{of}")
    sampled = sum(kind.sampled for kind in kinds.values())
    if found and sampled < coverage.events:
        found.append(f"{LOOKED_AT} {sampled:,} of {coverage.events:,} events")
    return found


def _named(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names[:NAMED]]
    if len(names) > NAMED:
        return f"{', '.join(shown)} and {len(names) - NAMED} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


# -- over several shards -----------------------------------------------------------------------------------


def seen_by_all(shards: Sequence[ShardStatus]) -> dict[str, Any]:
    """The members of `Coverage` that describe the sampled events, over all shards.

    No two shards share an event or a key. A field with one value in each of several shards has one value
    altogether only if these are equal, which their hashes show.
    """
    parts = [shard.status.coverage for shard in shards]
    keys = [part.keys for part in parts if part.keys is not None]
    kinds = dict.fromkeys(kind for part in parts for kind in part.kinds)
    return {
        "events": sum(part.events for part in parts),
        "kinds": {kind: _kind(kind, shards) for kind in kinds},
        "more_fields": any(part.more_fields for part in parts),
        "keys": sum(keys) if keys else None,
        "more_keys": any(part.more_keys for part in parts),
    }


def _kind(kind: str, shards: Sequence[ShardStatus]) -> KindCoverage:
    told = [dict(_values(kind, shard.status.coverage, shard.constants)) for shard in shards]
    found: dict[str, set[str]] = {}
    for of_shard in told:
        for field, value in of_shard.items():
            found.setdefault(field, set()).add(value)
    parts = [shard.status.coverage.kinds.get(kind, KindCoverage()) for shard in shards]
    for shard, part, of_shard in zip(shards, parts, told, strict=True):
        if part.sampled and not shard.status.coverage.more_fields:
            _add_absent(found, of_shard)
        elif part.sampled:  # Nobody knows of the others there whether they varied.
            found = {f: values for f, values in found.items() if f in of_shard or _what(values) == "varied"}
    return _kind_of(sum(part.sampled for part in parts), found.items())


def _add_absent(found: dict[str, set[str]], of_shard: Collection[str]) -> None:
    """Let the fields vary that no event of a shard has: as in one event (see `_note_absent`)."""
    for field, values in found.items():
        if field not in of_shard and (
            values != {_NULL} or any(name.startswith(f"{field}.") for name in of_shard)
        ):
            values.add(_VARIED)


def _values(kind: str, coverage: Coverage, constants: dict[str, dict[str, str]]) -> Iterator[tuple[str, str]]:
    """The fields of a shard, each with a stand-in for its values."""
    seen, hashes = coverage.kinds.get(kind, KindCoverage()), constants.get(kind, {})
    yield from ((field, _VARIED) for field in seen.varied)
    yield from ((field, _NULL) for field in seen.always_null)
    yield from ((field, hashes.get(field, _ONE)) for field in seen.constant)
