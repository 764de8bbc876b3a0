"""The known differences of a comparison file: divergences that their owner has examined and explained.

Each has an owner, a day on which it expires and a ceiling, so that none outlives its reason unseen.
"""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from twinstream.spec.file.values import NO_FLAG, Date, FieldPath, Strict, WantedValues


class When(Strict):
    """Which divergences a known difference is about."""

    divergences: Annotated[
        list[Literal["missing", "extra", "changed", "reordered", "duplicate"]], Field(min_length=1)
    ]
    """The kinds of divergence that it explains."""
    where: dict[FieldPath, WantedValues] = {}
    """Field → value, or list of values, that the event must have."""
    fields: list[FieldPath] = []
    """The only fields that may differ in a `changed` event."""

    @model_validator(mode="after")
    def _fields_of_changed(self) -> When:
        if self.fields and "changed" not in self.divergences:
            raise ValueError("`fields` may differ in a changed event only; add `changed` to `divergences`")
        return self


class Ceiling(Strict):
    """How many divergences a known difference covers: a number, or a share of the events."""

    count: Annotated[int, Field(ge=1), NO_FLAG] | None = None
    """The largest number of divergences."""
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), NO_FLAG] | None = None
    """The largest share of the events, above 0 and up to 1."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Ceiling:
        if (self.count is None) == (self.share is None):
            raise ValueError("must have exactly one of `count` and `share`")
        return self


class KnownDifference(Strict):
    """A difference that its owner knows of: until it expires and up to its ceiling it is explained."""

    id: Annotated[str, Field(min_length=1)]
    """The name of this rule, unique in the file."""
    when: When
    """Which divergences it explains."""
    owner: Annotated[str, Field(min_length=1)]
    """Who answers for it."""
    expires: Date
    """The day from which it explains nothing any more, in UTC."""
    ceiling: Ceiling
    """How many it may explain."""
    ticket: str | None = None
    """Where it is tracked."""
