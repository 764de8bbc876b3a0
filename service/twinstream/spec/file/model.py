"""The comparison file (spec version 1) as one typed model.

Each class is one mapping of the file; unknown keys are refused. The order is in `orders`, the equality in
`equality`, plain values in `values`; all can be imported from here. `twinstream.spec.load` reads a file into
the model, checks the laws that relate one key to another (`spec.laws`) and turns every violation into a
sentence with file, line and key. The file itself is described in ``docs/spec.md``.
"""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ByteSize, Field, field_validator, model_validator

from twinstream.core.events import Side
from twinstream.spec.file.equality import Equality, SpecEquality, Tolerance
from twinstream.spec.file.known_differences import Ceiling, KnownDifference, When
from twinstream.spec.file.orders import (
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
from twinstream.spec.file.paths import Path, parse_path
from twinstream.spec.file.start import Start
from twinstream.spec.file.values import (
    NO_FLAG,
    Bytes,
    Duration,
    FieldPath,
    Flag,
    KindName,
    Location,
    Name,
    Scalar,
    Strict,
    TopicName,
    WantedValues,
    dotted,
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

DUPLICATE_HORIZON = 10_000
"""Offsets of a partition within which copies are found if a rule asks for it: about 3 MB a partition."""
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
            raise ValueError(f"{self.format} needs exactly one of `schema_file` and `registry`")
        elif self.message is None and self.format == "protobuf" and self.schema_file is not None:
            raise ValueError("protobuf with `schema_file` needs `message`: the type of a record in that file")
        elif self.message is not None and (self.format != "protobuf" or self.schema_file is None):
            raise ValueError("`message` names the type in a protobuf `schema_file`, and belongs nowhere else")
        return self


class Version(Strict):
    """One side: the topic that it writes, the name of its version, and its format if it has its own."""

    topic: TopicName
    version: str | None = None
    decode: Decode | None = None


class EventKind(Strict):
    """A named class of events: all of `where` hold (a value, or one of a list); `ignore` leaves them out."""

    where: dict[FieldPath, WantedValues] = {}
    ignore: Flag = False


class Duplicates(Strict):
    """What a second copy of an event is: an event like any other, or possibly a replay, told by its marks."""

    policy: Literal["strict", "replays"] = "strict"
    horizon: Annotated[int, Field(ge=1, le=10_000), NO_FLAG] = 10


class Overdue(Strict):
    """When an unmatched event is overdue, and whether that proves a difference."""

    clock: Literal["arrival", "event_time", "input"] = "arrival"
    after: Duration = timedelta(seconds=60)
    proves: Flag = False
    field: FieldPath | None = None
    window_end: FieldPath | None = None
    unit: Literal["s", "ms", "us"] = "ms"
    max_jump: Duration = timedelta(hours=1)
    idle_after: Duration = timedelta(seconds=30)

    @field_validator("after")
    @classmethod
    def _positive(cls, after: timedelta) -> timedelta:
        if after < timedelta(seconds=1):
            raise ValueError("must be at least 1s, since Kafka's clocks are no finer between hosts")
        return after

    @model_validator(mode="after")
    def _of_its_clock(self) -> Overdue:
        if self.clock == "event_time" and self.field is None:
            raise ValueError("`clock: event_time` needs `field`: the field that holds an event's time")
        if self.clock != "event_time" and self.field is not None:
            raise ValueError("`field` names the event time of an event: it belongs to `clock: event_time`")
        if self.window_end is not None and self.clock != "input":
            raise ValueError("`window_end` belongs to `clock: input`")
        if self.proves and self.clock == "input":
            raise ValueError("`proves` has no meaning for `clock: input`, which always proves; leave it out")
        return self


class Evidence(Strict):
    """What must have been compared before the verdict can be EQUIVALENT."""

    matched: Annotated[int, Field(ge=1), NO_FLAG] = 1000
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False), NO_FLAG] = 300
    may_be_absent: list[str] = []


class Undecodable(Strict):
    """How many records may be undecodable before the verdict is INCONCLUSIVE."""

    budget: Annotated[int, Field(ge=0), NO_FLAG] = 0


class Gate(Strict):
    """How old `verified_through` may be for a pass."""

    max_staleness: Duration = timedelta(minutes=5)


class Limits(Strict):
    """Bounds on memory and work; a limit that is reached makes the verdict INCONCLUSIVE, with the reason."""

    unmatched_events: Annotated[int, Field(ge=1), NO_FLAG] = 5_000_000
    unmatched_bytes: Bytes = ByteSize(2 << 30)
    lead: Duration = timedelta(seconds=60)
    scope_events: Annotated[int, Field(ge=32), NO_FLAG] = 10_000
    kept_divergences: Annotated[int, Field(ge=1), NO_FLAG] = 10_000
    recent_matches: Annotated[int, Field(ge=0), NO_FLAG] = 100_000
    duplicate_horizon: Annotated[int, Field(ge=1, le=1_000_000), NO_FLAG] = DUPLICATE_HORIZON


class Decision(NamedTuple):
    """A field that decides something of an event: its place in the file, and the kinds it is read for."""

    field: str
    at: Location
    kinds: tuple[str, ...]
    what: Literal["kind", "order", "identity", "start"]

    @property
    def place(self) -> str:
        """The key of the file that names the field."""
        in_list = self.what == "kind" or isinstance(self.at[-1], int)
        return dotted(self.at[:-1] if in_list else self.at)


class Spec(Strict):
    """One comparison file."""

    version: Annotated[Literal[1], NO_FLAG]
    name: Name
    reference: Version
    candidate: Version
    control: TopicName | None = None
    decode: Decode = Decode()
    kinds: dict[KindName, EventKind] = {}
    emits: Literal["append"] = "append"
    order: Order
    equality: SpecEquality = SpecEquality()
    identity: Annotated[list[FieldPath], Field(min_length=1)] | None = None
    show: list[FieldPath] = []
    maps: list[FieldPath] = []
    co_partitioned: Annotated[bool, Field(strict=True)] = False
    keep: Literal["records", "hashes"] = "records"
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
        """The equality for the events of a kind."""
        return self.equality.per_kind.get(kind, self.equality)

    @property
    def tells_copies(self) -> bool:
        """Whether a verdict depends on which events are copies: a rule names `duplicate` or `extra` alone."""
        named = (known.when.divergences for known in self.known_differences)
        return any(("duplicate" in kinds) != ("extra" in kinds) for kinds in named)

    @property
    def reads_marks(self) -> bool:
        """Whether the comparison needs marks: the headers in which a pipeline says what it wrote."""
        return "input" in (self.overdue.clock, self.start.at) or self.duplicates.policy == "replays"

    @property
    def followed(self) -> str | None:
        """The control topic, if anything depends on it; the same declarations need headers."""
        return self.control if self.reads_marks else None

    def version_of(self, side: Side) -> Version:
        """The entry of a side in the file."""
        return self.reference if side is Side.LEFT else self.candidate

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
    def decisions(self) -> Iterator[Decision]:
        """Every field that kinds, order, identity or start read, in that order."""
        names = self.kind_names
        for place, (name, kind) in enumerate(self.kinds.items()):
            for field in kind.where:
                yield Decision(field, ("kinds", name, "where", field), names[place:], "kind")
        for node in nodes(self.order, self.compared_kinds):
            yield from (Decision(*read, "order") for read in reads(node))
        for index, field in enumerate(self.identity or ()):
            yield Decision(field, ("identity", index), self.compared_kinds, "identity")
        if self.start.field is not None:
            yield Decision(self.start.field, ("start", "field"), self.compared_kinds, "start")

    @property
    def deciding_fields(self) -> Iterator[tuple[str, Location, str]]:
        """Every field that kinds, order or identity read: (key that names it, place in the file, field)."""
        return ((decision.place, decision.at, decision.field) for decision in self.decisions)

    @cached_property
    def whole(self) -> bool:
        """Whether kinds, order or identity read more of a record than its value."""
        return any(field.startswith("$") for _, _, field in self.deciding_fields)

    def path_of(self, field: str) -> Path:
        """The path of a field in a decoded record; that of a `whole` spec has `$value`, `$key` and so on."""
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
