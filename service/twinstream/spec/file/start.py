"""`start`: the cut at which a comparison begins, one mapping of the comparison file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from twinstream.core.events import Side
from twinstream.spec.file.values import (
    DECIMAL,
    NO_FLAG,
    SPAN,
    FieldPath,
    Strict,
    duration,
    duration_text,
    exact,
    given,
    number_or_text,
    problem,
)
from twinstream.status.timestamps import in_utc

_RFC_3339 = r"^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[-+]\d{2}:\d{2})$"


def instant(text: str) -> datetime | None:
    """The instant that a text of RFC 3339 names; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None or len(text) < len("2026-01-01T00:00:00Z") else in_utc(moment)


def _moment(value: Any) -> Any:
    """A time as a text, in UTC, or an exact number."""
    moment = instant(value) if isinstance(value, str) else None
    if moment is not None:
        return moment.isoformat()
    try:
        return value if value is None else exact(value)
    except ValueError:
        problem = f"{given(value)} is not a time; write it like 2026-01-01T00:00:00Z, or a number"
        raise ValueError(problem) from None


def _span(value: Any) -> Any:
    """A duration, or an exact number if a number is given; `from` decides which of the two is valid."""
    if isinstance(value, str) and re.fullmatch(DECIMAL, value) is None:
        return duration(value)
    return value if value is None else exact(value)


def _span_text(value: Any) -> str | None:
    return duration_text(value) if isinstance(value, timedelta) else value if value is None else str(value)


Offsets = Annotated[
    dict[Annotated[int, Field(ge=0), NO_FLAG], Annotated[int, Field(ge=0), NO_FLAG]], Field(min_length=1)
]
Moment = Annotated[
    str | Decimal | None,
    BeforeValidator(_moment),
    number_or_text(f"{_RFC_3339}|{DECIMAL}"),
]
Span = Annotated[
    timedelta | Decimal | None,
    BeforeValidator(_span),
    PlainSerializer(_span_text, when_used="json"),
    number_or_text(f"^{SPAN}$|{DECIMAL}", minimum=0),
]

_NEEDS = {
    "earliest": (),
    "offsets": ("reference", "candidate"),
    "event_time": ("field", "from"),
    "barrier": (),
    "input": (),
}
_WHAT = {
    "reference": "partition → offset of the first record that is compared",
    "candidate": "partition → offset of the first record that is compared",
    "field": "the field that holds an event's time",
    "from": "the time of the first event that is compared",
}


class Start(Strict):
    """The cut at which the comparison begins; what lies before it is not compared."""

    at: Literal["earliest", "offsets", "event_time", "barrier", "input"] = "earliest"
    """`earliest`: what the topics hold; or a cut: `offsets`, `event_time`, `barrier`, `input`."""
    reference: Offsets | None = None
    """`offsets`: partition → the first offset that is compared, for every partition."""
    candidate: Offsets | None = None
    """`offsets`: partition → the first offset that is compared, for every partition."""
    field: FieldPath | None = None
    """`event_time`: the field that holds an event's time."""
    from_: Moment = Field(default=None, alias="from")
    """`event_time`: what is earlier is before the start; 2026-01-01T00:00:00Z, or a number."""
    warm_up: Span = None
    """`event_time`: how long after `from` events still lie before the start."""

    @model_validator(mode="after")
    def _members(self) -> Start:
        named = {name for name, value in self if value is not None} - {"at"}
        given_ones = {name.rstrip("_") for name in named}
        needed = _NEEDS[self.at]
        for name in needed:
            if name not in given_ones:
                raise problem(f"`at: {self.at}` needs `{name}`: {_WHAT[name]}")
        allowed = {*needed, "warm_up"} if self.at == "event_time" else set(needed)
        for name in sorted(given_ones - allowed):
            homes = [at for at, members in _NEEDS.items() if name in members] or ["event_time"]
            raise problem(f"is for `at: {homes[0]}`, and means nothing with `at: {self.at}`", name)
        if isinstance(self.warm_up, Decimal) and self.warm_up < 0:
            raise problem("must be 0 or more", "warm_up")
        if isinstance(self.from_, Decimal) and isinstance(self.warm_up, timedelta):
            raise problem("must be a number in the unit of the field, since `from` is one", "warm_up")
        try:
            if self.from_ is not None:
                self.first_compared()
        except OverflowError:
            raise problem("must end before the year 10000", "warm_up") from None
        return self

    def offsets_of(self, side: Side) -> Mapping[int, int]:
        """The named offsets of a side, by partition; empty if the start is of another form."""
        return (self.reference, self.candidate)[side] or {}

    @property
    def is_cut(self) -> bool:
        """Whether the set of compared events is the same wherever reading begins."""
        return self.at != "earliest"

    def as_written(self) -> dict[str, Any]:
        """The mapping as in a comparison file, of JSON values; it reads back as the same start."""
        found: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        for name, value in (("from", self.from_), ("warm_up", self.warm_up)):
            if isinstance(value, Decimal):
                found[name] = _json_number(value)
        return found

    def first_compared(self) -> datetime | Decimal:
        """The time from which events are compared: the end of the warm-up."""
        if isinstance(self.from_, str):
            more = self.warm_up or timedelta()
            return datetime.fromisoformat(self.from_) + (
                more if isinstance(more, timedelta) else timedelta(seconds=float(more))
            )
        assert self.from_ is not None, "a start by event time has one"
        return self.from_ + (self.warm_up if isinstance(self.warm_up, Decimal) else Decimal(0))


def _json_number(number: Decimal) -> int | float | str:
    """The number as JSON has it: a text where a float would change it."""
    if number == int(number):
        return int(number)
    return float(number) if exact(float(number)) == number else str(number)


StartName = Literal["earliest", "barrier", "input"]
"""The starts that need no more than their name."""


def named(value: Any) -> Any:
    """`start: earliest` is short for `start: {at: earliest}`."""
    return {"at": value} if isinstance(value, str) else value
