"""The comparison file (spec version 1) as one typed model.

Each class is one mapping of the file; unknown keys are refused. `twinstream.spec.load` reads a file into it
and turns every violation into a sentence with file, line and key. The file itself is described in
``docs/spec.md``.
"""

from __future__ import annotations

import re
from datetime import timedelta
from math import inf
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST_SECONDS = 100 * 365 * 86400
_NAME = r"(?:[^.\\]|\\.)+"


def _duration(value: Any) -> Any:
    """A duration as a number of seconds, or with a unit: 500ms, 60s, 5m, 2h, 1d."""
    if isinstance(value, timedelta):
        return value
    text = f"{value}s" if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)", text) if isinstance(text, str) else None
    seconds = float(match[1]) * _UNITS[match[2]] if match else inf
    if seconds > _LONGEST_SECONDS:
        raise ValueError(f"{value!r} is not a duration; write it like 500ms, 60s, 5m, 2h or 1d")
    return timedelta(seconds=seconds)


def _field_path(text: str) -> str:
    if not re.fullmatch(rf"{_NAME}(?:\.{_NAME})*", text, re.DOTALL):
        raise ValueError(
            f"{text!r} is no field path: write names joined by single dots, and `\\.` for a dot inside a name"
        )
    return text


Duration = Annotated[timedelta, BeforeValidator(_duration)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
Topic = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
FieldPath = Annotated[str, Field(min_length=1), AfterValidator(_field_path)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Scalar = str | int | Finite | bool | None


class Strict(BaseModel):
    """A mapping of the file: frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class Version(Strict):
    """One side: the topic that it writes, and the name of its version."""

    topic: Topic
    version: str | None = None


class Decode(Strict):
    """How a record's value is read."""

    format: Literal["json"] = "json"


class EventKind(Strict):
    """A named class of events: all of `where` hold (a value, or one of a list); `ignore` leaves them out."""

    where: dict[FieldPath, Scalar | list[Scalar]] = {}
    ignore: bool = False


class PerKey(Strict):
    """Events with equal values of these fields are in order; others are independent."""

    per_key: Annotated[list[FieldPath], Field(min_length=1)]


Order = Literal["unordered", "total"] | PerKey


class Equality(Strict):
    """Which fields are compared: all, all but `ignore`, or `compare_only`."""

    ignore: list[FieldPath] = []
    compare_only: list[FieldPath] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Equality:
        if self.ignore and self.compare_only is not None:
            raise ValueError("`ignore` and `compare_only` exclude each other; keep one of them")
        return self


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


class Spec(Strict):
    """One comparison file."""

    version: Literal[1]
    name: Name
    reference: Version
    candidate: Version
    decode: Decode = Decode()
    kinds: dict[str, EventKind] = {}
    emits: Literal["append"] = "append"
    order: Order
    equality: Equality = Equality()
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

    @property
    def order_fields(self) -> tuple[str, ...]:
        """The fields that the order reads."""
        return tuple(self.order.per_key) if isinstance(self.order, PerKey) else ()

    @property
    def order_text(self) -> str:
        """The order in words, for people."""
        if isinstance(self.order, PerKey):
            return f"in order per {', '.join(self.order.per_key)}"
        return {"unordered": "in any order", "total": "in one order"}[self.order]
