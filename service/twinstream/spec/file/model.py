"""The comparison file (spec version 1) as one typed model.

Each class is one mapping of the file; unknown keys are refused. The text below a key describes it, in the
published schema too (`schema`). `twinstream.spec.load` reads a file into the model, checks the laws that
relate one key to another (`spec.laws`) and turns every violation into a sentence with file, line and key. The
file itself is described in ``docs/spec.md``.
"""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BeforeValidator, ByteSize, Field, field_validator, model_validator

from twinstream.core.events import Side
from twinstream.spec.file.checks import Check
from twinstream.spec.file.emits import Emits, Folding, Retract, declared
from twinstream.spec.file.equality import Equality, SpecEquality
from twinstream.spec.file.known_differences import KnownDifference
from twinstream.spec.file.orders import Barrier, Decision, Order, nodes, reads, text_of
from twinstream.spec.file.paths import Path, parse_path
from twinstream.spec.file.start import Start, StartName, named
from twinstream.spec.file.values import (
    NO_FLAG,
    Address,
    Bytes,
    Duration,
    FieldPath,
    Flag,
    KindName,
    Location,
    Name,
    Strict,
    TopicName,
    WantedValues,
)

DUPLICATE_HORIZON = 10_000
"""Offsets of a partition within which copies are found if a rule asks for it: about 3 MB a partition."""
DEFAULT_KIND = "event"
"""The kind of every event where the file declares none."""


class Decode(Strict):
    """How a record's value is read: its format, and where the schema of avro and protobuf comes from."""

    format: Literal["json", "msgpack", "utf8", "bytes", "avro", "protobuf"] = "json"
    """The format of values."""
    schema_file: Annotated[str, Field(min_length=1)] | None = None
    """Avro, protobuf: the file that holds the schema, relative to the comparison file."""
    registry: Address | None = None
    """Avro, protobuf: the address of the schema registry."""
    message: Annotated[str, Field(min_length=1)] | None = None
    """Protobuf with `schema_file`: the full name of the message type."""
    tombstones: Literal["undecodable", "ignore"] = "undecodable"
    """How a record without a value is treated: it is `undecodable`, or `ignore`d."""

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
    """The Kafka topic that this version writes."""
    version: str | None = None
    """The name of the version, as reports show it and as control records give it."""
    decode: Decode | None = None
    """How this side's values are read, if not as `decode` says."""


class EventKind(Strict):
    """A named class of events: all of `where` hold (a value, or one of a list); `ignore` leaves them out."""

    where: dict[FieldPath, WantedValues] = {}
    """Field → value, or list of values; all must hold. Empty fits everything."""
    ignore: Flag = False
    """Whether events of this kind are left out of the comparison; they are still counted."""


class Duplicates(Strict):
    """What a second copy of an event is: an event like any other, or possibly a replay, told by its marks."""

    policy: Literal["strict", "replays"] = "strict"
    """`strict`: a copy is an event like any other. `replays`: what a retry writes again is left out."""
    horizon: Annotated[int, Field(ge=1, le=10_000), NO_FLAG] = 10
    """`replays`: how many batches of a query are remembered."""


class Overdue(Strict):
    """When an unmatched event is overdue, and whether that proves a difference."""

    clock: Literal["arrival", "event_time", "input"] = "arrival"
    """`arrival`: Kafka's timestamps. `event_time`: a field of the events. `input`: the progress that both
    versions report on the `control` topic."""
    after: Duration = timedelta(seconds=60)
    """The age from which an unmatched event is overdue; at least 1s."""
    proves: Flag = False
    """Whether an overdue event is a difference, or only a suspicion."""
    field: FieldPath | None = None
    """`event_time`: the field with an event's time, a number or an ISO 8601 text."""
    window_end: FieldPath | None = None
    """`input`: the field with the end of the window that an event stands for."""
    unit: Literal["s", "ms", "us"] = "ms"
    """What a number in `field` or `window_end` counts since 1970."""
    max_jump: Duration = timedelta(hours=1)
    """`event_time`: a time further ahead than this does not count."""
    idle_after: Duration = timedelta(seconds=30)
    """`event_time`: a partition without events for so long does not hold its side back."""

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
    """Pairs wanted before EQUIVALENT."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False), NO_FLAG] = 300
    """Seconds of Kafka time wanted before EQUIVALENT."""
    may_be_absent: list[str] = []
    """Kinds that need not have matched."""


class Undecodable(Strict):
    """How many records may be undecodable before the verdict is INCONCLUSIVE."""

    budget: Annotated[int, Field(ge=0), NO_FLAG] = 0
    """How many records of both sides together may be undecodable."""


class Gate(Strict):
    """How old `verified_through` may be for a pass."""

    max_staleness: Duration = timedelta(minutes=5)
    """How old `verified_through` may be for a pass."""


class Limits(Strict):
    """Bounds on memory and work; a limit that is reached makes the verdict INCONCLUSIVE, with the reason."""

    unmatched_events: Annotated[int, Field(ge=1), NO_FLAG] = 5_000_000
    """How many unmatched events are held; one more makes a hole."""
    unmatched_bytes: Bytes = ByteSize(2 << 30)
    """How many bytes of unmatched events are held; more make a hole."""
    lead: Duration = timedelta(seconds=60)
    """How far a side may run ahead before it waits."""
    scope_events: Annotated[int, Field(ge=32), NO_FLAG] = 10_000
    """How many events are set aside after a difference, in one scope; more make a hole."""
    kept_divergences: Annotated[int, Field(ge=1), NO_FLAG] = 10_000
    """Divergences saved with their records; all are counted."""
    recent_matches: Annotated[int, Field(ge=0, le=1_000_000_000), NO_FLAG] = 100_000
    """Matches remembered to name a difference `duplicate`, not `extra`; 0: none."""
    duplicate_horizon: Annotated[int, Field(ge=1, le=1_000_000), NO_FLAG] = DUPLICATE_HORIZON
    """Where a known difference names `duplicate`: how many offsets behind an equal event of its partition
    a copy is recognised. An event that may be a copy of one further back makes a hole."""


class Spec(Strict):
    """One comparison file."""

    version: Annotated[Literal[1], NO_FLAG]
    """The version of this format."""
    name: Name
    """The name of the comparison, a DNS label."""
    reference: Version
    """The trusted version and its topic."""
    candidate: Version
    """The new version and its topic."""
    control: TopicName | None = None
    """The topic on which both versions report their progress, each under its `version`."""
    decode: Decode = Decode()
    """How the values of records are read; a side may have its own."""
    kinds: dict[KindName, EventKind] = {}
    """Named classes of events; the first that fits wins. Without it all are of kind `event`."""
    emits: Annotated[Emits, BeforeValidator(declared, json_schema_input_type=Emits)] = "append"
    """`append`: each result is written once. Else which rows replace earlier ones, and when one is final."""
    order: Order
    """Which events must keep their order. Required: there is no safe default."""
    equality: SpecEquality = SpecEquality()
    """Which fields are compared, and how."""
    identity: Annotated[list[FieldPath], Field(min_length=1)] | None = None
    """Fields that name what an event is about, so that a difference can be called `changed`."""
    show: list[FieldPath] = []
    """Fields whose values the service may show; all others are masked."""
    maps: list[FieldPath] = []
    """Objects whose member names are data: the service masks these names, too."""
    co_partitioned: Flag = False
    """Asserts that both topics have the same number of partitions, and that events which are equal or
    dependent stand in partitions of the same number. Each pair is checked. `serve --shards` needs it."""
    keep: Literal["records", "hashes"] = "records"
    """What is held of an event that waits for its partner: its record, or digests of its values alone."""
    start: Annotated[Start, BeforeValidator(named, json_schema_input_type=StartName | Start)] = Start()
    """The cut at which the comparison begins."""
    duplicates: Duplicates = Duplicates()
    """How a second copy of an event is treated."""
    overdue: Overdue = Overdue()
    """From when an unmatched event is overdue, and whether that proves a difference."""
    evidence: Evidence = Evidence()
    """The evidence that the verdict EQUIVALENT needs."""
    undecodable: Undecodable = Undecodable()
    """How many records may be undecodable."""
    gate: Gate = Gate()
    """How fresh a pass must be."""
    on_divergence: Literal["continue", "halt"] = "continue"
    """`continue`, or `halt` at the first difference and ignore everything later."""
    limits: Limits = Limits()
    """Bounds on memory and work."""
    known_differences: list[KnownDifference] = []
    """Differences that are known and explained, for a while and up to a ceiling."""
    checks: list[Check] = []
    """Properties that the topic of each version must have by itself."""

    @property
    def sides(self) -> tuple[tuple[str, Version], tuple[str, Version]]:
        """The entries of both sides, with their keys."""
        return ("reference", self.reference), ("candidate", self.candidate)

    @property
    def decodes(self) -> Iterator[tuple[Location, Decode]]:
        """Every `decode` of the file, with its place."""
        yield ("decode",), self.decode
        for name, version in self.sides:
            if version.decode is not None:
                yield (name, "decode"), version.decode

    def decode_of(self, side: Side) -> Decode:
        """How the records of a side are read."""
        return self.version_of(side).decode or self.decode

    @property
    def equalities(self) -> Iterator[tuple[Location, Equality]]:
        """The equality of all kinds, then those of single kinds, with their places."""
        yield ("equality",), self.equality
        for kind, equality in self.equality.per_kind.items():
            yield ("equality", "per_kind", kind), equality

    def equality_of(self, kind: str) -> Equality:
        """The equality for the events of a kind."""
        return self.equality.per_kind.get(kind, self.equality)

    @property
    def tells_copies(self) -> bool:
        """Whether a verdict depends on which events are copies: a rule names `duplicate` or `extra` alone.

        Where rows replace each other, none is a copy.
        """
        if self.folding is not None:
            return False
        named = (known.when.divergences for known in self.known_differences)
        return any(("duplicate" in kinds) != ("extra" in kinds) for kinds in named)

    @property
    def reads_marks(self) -> bool:
        """Whether the comparison needs marks: the headers in which a pipeline says what it wrote."""
        clock_or_start = "input" in (self.overdue.clock, self.start.at)
        batches = self.folding is not None and self.folding.tells_batches
        return clock_or_start or self.duplicates.policy == "replays" or batches

    @property
    def followed(self) -> str | None:
        """The control topic, if anything depends on it."""
        return self.control if self.reads_marks or self.hears_checks else None

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """The declared checks, then those that `emits` asks for."""
        if self.folding is None:
            return tuple(self.checks)
        return (*self.checks, *self.folding.checks(self.row_kinds, self.overdue.unit))

    @property
    def hears_checks(self) -> bool:
        """Whether a check needs control records."""
        return any(check.hears for check in self.all_checks)

    @property
    def reads_keys(self) -> bool:
        """Whether a check needs the keys of records, beside their values."""
        return any(check.key_partition is not None for check in self.checks)

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
            yield from reads(node)
        for index, field in enumerate(self.identity or ()):
            yield Decision(field, ("identity", index), self.compared_kinds, "identity")
        if self.folding is not None:
            yield from self._of_rows(self.folding)
        if self.start.field is not None:
            yield Decision(self.start.field, ("start", "field"), self.compared_kinds, "start")

    @property
    def kept_as_they_are(self) -> Iterator[Decision]:
        """Every field that equal events must have in common: those that decide, and times that prove."""
        yield from self.decisions
        for name in ("field", "window_end") if self.overdue.proves or self.overdue.clock == "input" else ():
            if (field := getattr(self.overdue, name)) is not None:
                yield Decision(field, ("overdue", name), self.compared_kinds, "time")

    def _of_rows(self, folding: Folding) -> Iterator[Decision]:
        """The fields that tell which rows replace each other, and when one is final."""
        at: Location = ("emits", folding.name)
        form = folding.form
        if isinstance(form, Retract):
            named = {name: getattr(form, name) for name in ("id", "valid_from", "valid_to")}
            yield from (Decision(field, (*at, name), self.row_kinds, "key") for name, field in named.items())
        else:
            places = enumerate(form.key)
            yield from (Decision(field, (*at, "key", n), self.row_kinds, "key") for n, field in places)
        if folding.window_end is not None:
            place = (*at, "settled_by", "watermark")
            yield Decision(folding.window_end, place, self.row_kinds, "window")

    @property
    def folding(self) -> Folding | None:
        """How rows replace each other; None where each result is written once."""
        return self.emits if isinstance(self.emits, Folding) else None

    @property
    def named_by(self) -> list[str] | None:
        """The fields that name what an event is about: `identity`, or the key of rows."""
        return self.identity if self.identity or self.folding is None else self.folding.key

    @property
    def row_kinds(self) -> tuple[str, ...]:
        """The compared kinds that are no barrier of the whole order."""
        barriers = self.order.barrier if isinstance(self.order, Barrier) else ()
        return tuple(kind for kind in self.compared_kinds if kind not in barriers)

    @property
    def deciding_fields(self) -> tuple[str, ...]:
        """Every field that decides something of an event, each once."""
        return tuple(dict.fromkeys(decision.field for decision in self.decisions))

    @cached_property
    def whole(self) -> bool:
        """Whether kinds, order or identity read more of a record than its value."""
        return any(field.startswith("$") for field in self.deciding_fields)

    def path_of(self, field: str) -> Path:
        """The path of a field in a decoded record; that of a `whole` spec has `$value`, `$key` and so on."""
        path = parse_path(field)
        return path if field.startswith("$") or not self.whole else ("$value", *path)

    @property
    def order_fields(self) -> tuple[str, ...]:
        """The fields that the order reads, each once."""
        return tuple(dict.fromkeys(read.field for read in self.decisions if read.what == "order"))

    @property
    def order_text(self) -> str:
        """The order in words, for people."""
        return text_of(self.order)
