"""The checks of a comparison file: properties that the topic of each version must have by itself.

An entry names exactly one property, and beside it only keys that belong to that property.
"""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from twinstream.spec.file.values import (
    NO_FLAG,
    Duration,
    FieldPath,
    KindName,
    Location,
    Strict,
    duration_text,
)

PROPERTIES = {
    "closed_windows": (),
    "once": ("horizon", "keys"),
    "windows": (),
    "key_partition": ("keys", "partitions"),
    "ascending": ("per", "keys"),
    "not_null": (),
    "types": (),
    "watermark": (),
}
"""By property, the keys of an entry that belong to it. `not_null` and `types` may stand together."""
MORE = ("horizon", "keys", "per", "partitions")
"""Keys that belong to some properties only."""
TypeName = Literal["integer", "number", "text", "boolean", "list", "object", "bytes"]
Unit = Literal["s", "ms", "us"]
CheckGate = Literal["fail", "undecided", "ignore"]
Keys = Annotated[int, Field(ge=1, le=5_000_000), NO_FLAG]
KEYS = 100_000
"""How many keys a check remembers unless the file says it, about 200 bytes each."""


class ClosedWindows(Strict):
    """Which field ends the window of a row, for `closed_windows`."""

    end: FieldPath
    """The field with the end of the window, a number or an ISO 8601 text."""
    unit: Unit = "ms"
    """What a number counts since 1970."""


class Windows(Strict):
    """Where the windows of rows begin and end, and how long they are."""

    start: FieldPath
    """The field with the begin of the window, a number or an ISO 8601 text."""
    end: FieldPath
    """The field with its end."""
    length: Duration
    """How long each window is."""
    every: Duration | None = None
    """How far apart windows begin; without it as far as they are long."""
    offset: Duration = timedelta(0)
    """When windows begin behind midnight of 1 January 1970, UTC."""
    unit: Unit = "ms"
    """What numbers count since 1970."""

    @field_validator("length", "every")
    @classmethod
    def _positive(cls, span: timedelta | None) -> timedelta | None:
        if span is not None and span <= timedelta(0):
            raise ValueError("must be longer than 0s")
        return span


class Check(Strict):
    """One property that the rows of each version must have, whatever the other version writes."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$")]
    """The name of this check, unique in the file; metrics have it as a label."""
    side: Literal["both", "reference", "candidate"] = "both"
    """Which version it looks at."""
    kinds: Annotated[list[KindName], Field(min_length=1)] | None = None
    """The kinds of events that it is about; without it all that are compared."""
    gate: CheckGate = "fail"
    """What the gate is if the candidate violates it. If only the reference does, it is undecided."""
    closed_windows: ClosedWindows | None = None
    """No row for a window that was closed, by the control records of the version."""
    once: Annotated[list[FieldPath], Field(min_length=1)] | None = None
    """The fields of a key of which there is one row within the `horizon`."""
    horizon: Duration | None = None
    """`once`: how far apart two rows of a key may be, by Kafka's timestamps, to be told."""
    windows: Windows | None = None
    """The length of windows, and where they begin."""
    key_partition: list[FieldPath] | None = None
    """Each row lies in the partition that its Kafka key names; rows with equal values of these fields, if any
    are named, lie in one partition."""
    partitions: Annotated[int, Field(ge=1), NO_FLAG] | None = None
    """`key_partition`: how many partitions the topic has, for recorded output, which does not say it."""
    ascending: FieldPath | None = None
    """The field that never gets smaller, from row to row of a key."""
    per: list[FieldPath] = []
    """`ascending`: the fields of the key; without it all rows of a partition are in order."""
    keys: Keys = KEYS
    """`once`, `key_partition`, `ascending`: how many keys are remembered, the latest ones."""
    not_null: Annotated[list[FieldPath], Field(min_length=1)] | None = None
    """Fields that are there and not null."""
    types: Annotated[dict[FieldPath, TypeName], Field(min_length=1)] | None = None
    """Field → type of its value, if it is there and not null."""
    watermark: Literal["never_back"] | None = None
    """The watermark in the control records of the version never goes back."""

    @model_validator(mode="after")
    def _one_property(self) -> Check:
        named = [name for name in PROPERTIES if getattr(self, name) is not None]
        if not named:
            raise ValueError(f"names no property; write one of {', '.join(PROPERTIES)}")
        if len(named) > 1 and named != ["not_null", "types"]:
            raise ValueError(f"names `{named[0]}` and `{named[1]}`: write a check for each of them")
        given = [name for name in MORE if name in self.model_fields_set]
        if foreign := [name for name in given if name not in PROPERTIES[named[0]]]:
            owners = ", ".join(f"`{name}`" for name, more in PROPERTIES.items() if foreign[0] in more)
            raise ValueError(f"`{foreign[0]}` belongs to {owners}, and not to `{named[0]}`; leave it out")
        if self.once is not None and not self.horizon:
            raise ValueError(
                "`once` needs `horizon`: how far apart, by Kafka's timestamps, two rows of a key are told"
            )
        if self.watermark is not None and self.kinds is not None:
            raise ValueError("`watermark` is about control records, which have no kind; leave `kinds` out")
        return self

    @property
    def what(self) -> str:
        """The name of the property; `not_null` stands for `types` beside it."""
        return next(name for name in PROPERTIES if getattr(self, name) is not None)

    @property
    def sides(self) -> tuple[str, ...]:
        """The names of the sides that it looks at."""
        return ("reference", "candidate") if self.side == "both" else (self.side,)

    @property
    def hears(self) -> bool:
        """Whether it needs control records."""
        return self.closed_windows is not None or self.watermark is not None

    @property
    def over_partitions(self) -> bool:
        """Whether a row is judged by rows of other partitions, or by what counts for all partitions."""
        return bool(self.once or self.key_partition or (self.ascending and self.per) or self.hears)

    @property
    def fields(self) -> Iterator[tuple[Location, str]]:
        """The fields that it reads, with their places in the entry."""
        for name in ("once", "key_partition", "per", "not_null"):
            yield from (((name, n), field) for n, field in enumerate(getattr(self, name) or ()))
        yield from ((("types", field), field) for field in self.types or ())
        if self.ascending is not None:
            yield ("ascending",), self.ascending
        if self.closed_windows is not None:
            yield ("closed_windows", "end"), self.closed_windows.end
        if self.windows is not None:
            yield from ((("windows", name), getattr(self.windows, name)) for name in ("start", "end"))

    @property
    def text(self) -> str:
        """The property in words, for people."""
        if self.once is not None:
            return f"one row of each {_and(self.once)} within {duration_text(self.horizon or timedelta(0))}"
        if self.closed_windows is not None:
            return f"no row for a window whose end, `{self.closed_windows.end}`, was passed by the watermark"
        if self.windows is not None:
            return _windows_text(self.windows)
        if self.key_partition is not None:
            more = f", and each {_and(self.key_partition)} in one partition" if self.key_partition else ""
            return f"rows in the partition of their key{more}"
        if self.ascending is not None:
            return f"`{self.ascending}` never smaller in a {_and(self.per) if self.per else 'partition'}"
        if self.watermark is not None:
            return "a watermark that never goes back"
        wanted = [*(f"`{field}` not null" for field in self.not_null or ())]
        return ", ".join([*wanted, *(f"`{field}` {what}" for field, what in (self.types or {}).items())])


class Settled(Check):
    """No change of a key that was settled: what `final_after_settled` of `emits` asks for.

    `closed_windows` is given where the watermark settles keys; else barriers do. No entry of a file is one.
    """

    @property
    def what(self) -> str:
        """The name of the property."""
        return "final_after_settled"

    @property
    def text(self) -> str:
        """The property in words, for people."""
        if self.closed_windows is not None:
            return super().text
        return "no other value for a key that was settled by a barrier"


def _windows_text(windows: Windows) -> str:
    length, every = duration_text(windows.length), windows.every or windows.length
    apart = "" if every == windows.length else f", one every {duration_text(every)}"
    behind = f", {duration_text(windows.offset)} late" if windows.offset else ""
    return f"windows from `{windows.start}` to `{windows.end}` of {length}{apart}{behind}"


def _and(fields: list[str]) -> str:
    return " and ".join(f"`{field}`" for field in fields)
