"""The comparison file (spec version 1) as one typed model.

Each class is one mapping of the file; unknown keys are refused. The order is in `twinstream.spec.orders`, the
plain values in `twinstream.spec.values`; all of them can be imported from here. `twinstream.spec.load` reads
a file into the model, checks the laws that relate one key to another (`twinstream.spec.laws`) and turns every
violation into a sentence with file, line and key. The file itself is described in ``docs/spec.md``.
"""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ByteSize, Field, field_validator, model_validator

from twinstream.core.events import Side
from twinstream.spec.orders import (
    EVERY,
    Barrier,
    Before,
    Branch,
    ByKey,
    CallableOrder,
    Dependent,
    Order,
    PairRule,
    Parallel,
    PerKey,
    SamePair,
    Within,
    nodes,
    reads,
    text_of,
)
from twinstream.spec.paths import Path, parse_path
from twinstream.spec.values import (
    Date,
    Duration,
    Exact,
    FieldPath,
    Finite,
    KindName,
    Location,
    Name,
    Scalar,
    Strict,
    Topic,
    Wanted,
)

__all__ = [
    "EVERY",
    "Barrier",
    "Before",
    "Branch",
    "ByKey",
    "CallableOrder",
    "Ceiling",
    "Decode",
    "Dependent",
    "Duplicates",
    "Equality",
    "EventKind",
    "Evidence",
    "FieldPath",
    "Gate",
    "KnownDifference",
    "Limits",
    "Order",
    "Overdue",
    "PairRule",
    "Parallel",
    "PerKey",
    "SamePair",
    "Scalar",
    "Spec",
    "SpecEquality",
    "Start",
    "Strict",
    "Tolerance",
    "Undecodable",
    "Version",
    "When",
    "Within",
]

DEFAULT_KIND = "event"
"""The kind of every event where the file declares none."""


class Decode(Strict):
    """How a record's value is read: its format, and where the schema of avro and protobuf comes from."""

    format: Literal["json", "msgpack", "utf8", "bytes", "avro", "protobuf"] = "json"
    schema_file: Annotated[str, Field(min_length=1)] | None = None
    registry: Annotated[str, Field(pattern=r"^https?://")] | None = None
    message: Annotated[str, Field(min_length=1)] | None = None
    tombstones: Literal["undecodable", "ignore"] = "undecodable"

    @model_validator(mode="after")
    def _schema(self) -> Decode:
        sources = [name for name in ("schema_file", "registry", "message") if getattr(self, name) is not None]
        if self.format not in {"avro", "protobuf"}:
            if sources:
                raise ValueError(f"`{sources[0]}` is for avro and protobuf; {self.format} has no schema")
        elif (self.schema_file is None) == (self.registry is None):
            raise ValueError(
                f"{self.format} needs a schema: write exactly one of `schema_file` and `registry`"
            )
        elif (self.message is not None) != (self.format == "protobuf" and self.schema_file is not None):
            raise ValueError(
                "`message` names the type in a protobuf `schema_file`: write it there, and only there"
            )
        return self


class Version(Strict):
    """One side: the topic that it writes, the name of its version, and its format if it has its own."""

    topic: Topic
    version: str | None = None
    decode: Decode | None = None


class EventKind(Strict):
    """A named class of events: all of `where` hold (a value, or one of a list); `ignore` leaves them out."""

    where: dict[FieldPath, Wanted] = {}
    ignore: bool = False


class Tolerance(Strict):
    """Two numbers match when they differ by at most `abs`, or by `rel` times the larger of the two."""

    abs: Annotated[Exact, Field(ge=0)] = Decimal(0)
    rel: Annotated[Exact, Field(ge=0)] = Decimal(0)

    @model_validator(mode="after")
    def _some(self) -> Tolerance:
        if not (self.abs or self.rel):
            raise ValueError("tolerates nothing; give `abs` or `rel` a value above 0")
        return self


class Equality(Strict):
    """Which fields are compared (all, all but `ignore`, or `compare_only`), and how."""

    ignore: list[FieldPath] = []
    compare_only: list[FieldPath] | None = None
    quantum: dict[FieldPath, Annotated[Exact, Field(gt=0)]] = {}
    tolerance: dict[FieldPath, Tolerance] = {}
    unordered: list[FieldPath] = []
    sets: list[FieldPath] = []
    absent_is_null: bool = False

    @model_validator(mode="after")
    def _one_of_both(self) -> Equality:
        if self.ignore and self.compare_only is not None:
            raise ValueError("`ignore` and `compare_only` exclude each other; keep one of them")
        return self


class SpecEquality(Equality):
    """The equality of all kinds; that of a kind in `per_kind` takes the place of the whole of it."""

    per_kind: dict[KindName, Equality] = {}


class Start(Strict):
    """The cut at which the comparison begins."""

    at: Literal["earliest"] = "earliest"


class Duplicates(Strict):
    """What a second copy of an event is: an event like any other."""

    policy: Literal["strict"] = "strict"


class Overdue(Strict):
    """When an unmatched event is overdue, and whether that proves a difference."""

    clock: Literal["arrival"] = "arrival"
    after: Duration = timedelta(seconds=60)
    proves: bool = False

    @field_validator("after")
    @classmethod
    def _positive(cls, after: timedelta) -> timedelta:
        if after < timedelta(seconds=1):
            raise ValueError("must be at least 1s, since Kafka's clocks are no finer between hosts")
        return after


class Evidence(Strict):
    """What must have been compared before the verdict can be EQUIVALENT."""

    matched: Annotated[int, Field(ge=1)] = 1000
    seconds: Annotated[Finite, Field(ge=0)] = 300
    may_be_absent: list[str] = []


class Undecodable(Strict):
    """How many records may be undecodable before the verdict is INCONCLUSIVE."""

    budget: Annotated[int, Field(ge=0)] = 0


class Gate(Strict):
    """How old `verified_through` may be for a pass."""

    max_staleness: Duration = timedelta(minutes=5)


class Limits(Strict):
    """Bounds on memory and work; a limit that is reached makes the verdict INCONCLUSIVE, with the reason."""

    unmatched_events: Annotated[int, Field(ge=1)] = 5_000_000
    unmatched_bytes: ByteSize = ByteSize(2 << 30)
    lead: Duration = timedelta(seconds=60)
    scope_events: Annotated[int, Field(ge=32)] = 10_000
    kept_divergences: Annotated[int, Field(ge=1)] = 10_000
    recent_matches: Annotated[int, Field(ge=0)] = 100_000


class When(Strict):
    """Which divergences a known difference is about."""

    divergences: Annotated[
        list[Literal["missing", "extra", "changed", "reordered", "duplicate"]], Field(min_length=1)
    ]
    where: dict[FieldPath, Wanted] = {}
    fields: list[FieldPath] = []

    @model_validator(mode="after")
    def _fields_of_changed(self) -> When:
        if self.fields and "changed" not in self.divergences:
            raise ValueError("`fields` may differ in a changed event only; add `changed` to `divergences`")
        return self


class Ceiling(Strict):
    """How many divergences a known difference covers: a number, or a share of the events."""

    count: Annotated[int, Field(ge=1)] | None = None
    share: Annotated[Finite, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Ceiling:
        if (self.count is None) == (self.share is None):
            raise ValueError("must have exactly one of `count` and `share`")
        return self


class KnownDifference(Strict):
    """A difference that its owner knows of: until it expires and up to its ceiling it is explained."""

    id: Annotated[str, Field(min_length=1)]
    when: When
    owner: Annotated[str, Field(min_length=1)]
    expires: Date
    ceiling: Ceiling
    ticket: str | None = None


class Spec(Strict):
    """One comparison file."""

    version: Literal[1]
    name: Name
    reference: Version
    candidate: Version
    decode: Decode = Decode()
    kinds: dict[KindName, EventKind] = {}
    emits: Literal["append"] = "append"
    order: Order
    equality: SpecEquality = SpecEquality()
    identity: Annotated[list[FieldPath], Field(min_length=1)] | None = None
    show: list[FieldPath] = []
    start: Start = Start()
    duplicates: Duplicates = Duplicates()
    overdue: Overdue = Overdue()
    evidence: Evidence = Evidence()
    undecodable: Undecodable = Undecodable()
    gate: Gate = Gate()
    on_divergence: Literal["continue", "halt"] = "continue"
    limits: Limits = Limits()
    known_differences: list[KnownDifference] = []

    @field_validator("emits", mode="before")
    @classmethod
    def _only_append(cls, emits: Any) -> Any:
        if emits == "upsert":
            raise ValueError(
                "topics written in update or complete mode emit a number of intermediate rows that depends "
                "on trigger timing; only append output can be compared"
            )
        return emits

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        """`start: earliest` is short for `start: {at: earliest}`."""
        if isinstance(data, dict) and isinstance(data.get("start"), str):
            return {**data, "start": {"at": data["start"]}}
        return data

    def decode_of(self, side: Side) -> Decode:
        """How the records of a side are read."""
        version = self.reference if side is Side.LEFT else self.candidate
        return version.decode or self.decode

    def equality_of(self, kind: str) -> Equality:
        """What is compared of the events of a kind."""
        return self.equality.per_kind.get(kind, self.equality)

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The kinds, in the order in which they are tried."""
        return tuple(self.kinds) or (DEFAULT_KIND,)

    @property
    def compared_kinds(self) -> tuple[str, ...]:
        """The kinds that are not left out: those that reach the order."""
        return tuple(
            name for name in self.kind_names if name not in self.kinds or not self.kinds[name].ignore
        )

    @property
    def deciding_fields(self) -> Iterator[tuple[str, Location, str]]:
        """Every field that kinds, order or identity read: (key that names it, place in the file, field)."""
        for name, kind in self.kinds.items():
            for field in kind.where:
                yield f"kinds.{name}.where", ("kinds", name, "where", field), field
        for node in nodes(self.order, self.compared_kinds):
            for field, at, _ in reads(node):
                yield ".".join(str(part) for part in _without_index(at)), at, field
        for index, field in enumerate(self.identity or ()):
            yield "identity", ("identity", index), field

    @property
    def whole(self) -> bool:
        """Whether kinds, order or identity read more of a record than its value."""
        return any(field.startswith("$") for _, _, field in self.deciding_fields)

    def path_of(self, field: str) -> Path:
        """Where a field stands in a decoded record: in a `whole` spec that has `$value`, `$key` and so on."""
        path = parse_path(field)
        return path if field.startswith("$") or not self.whole else ("$value", *path)

    @property
    def order_fields(self) -> tuple[str, ...]:
        """The fields that the order reads, each once."""
        read = (field for node in nodes(self.order, self.compared_kinds) for field, _, _ in reads(node))
        return tuple(dict.fromkeys(read))

    @property
    def order_text(self) -> str:
        """The order in words, for people."""
        return text_of(self.order)


def _without_index(at: Location) -> Location:
    return at[:-1] if isinstance(at[-1], int) else at
