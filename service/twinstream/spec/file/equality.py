"""The equality of a comparison file: which events may match.

Which fields are compared (all, all but some, or only some), and how: rounded, tolerant, as a bag or as a
set, or as one of several right values.
"""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from decimal import Decimal

from pydantic import model_validator

from twinstream.spec.file.values import Above0, AtLeast0, FieldPath, Flag, FunctionName, KindName, Strict


class Tolerance(Strict):
    """Two numbers match when they differ by at most `abs` plus `rel` times the larger of the two."""

    abs: AtLeast0 = Decimal(0)
    """Two numbers match when they differ by at most this much,"""
    rel: AtLeast0 = Decimal(0)
    """plus this share of the larger of the two."""

    @model_validator(mode="after")
    def _some(self) -> Tolerance:
        if not (self.abs or self.rel):
            raise ValueError("tolerates nothing; give `abs` or `rel` a value above 0")
        return self


class Equality(Strict):
    """Which fields are compared (all, all but `ignore`, or `compare_only`), and how."""

    ignore: list[FieldPath] = []
    """Fields that are not compared."""
    compare_only: list[FieldPath] | None = None
    """The only fields that are compared; not together with `ignore`."""
    quantum: dict[FieldPath, Above0] = {}
    """Field → step: the number is rounded to the nearest multiple before it is compared."""
    tolerance: dict[FieldPath, Tolerance] = {}
    """Field → how far two numbers may differ; only where the partner is known without it."""
    unordered: list[FieldPath] = []
    """Arrays that are compared as multisets: the order of their elements is free."""
    sets: list[FieldPath] = []
    """Arrays that are compared as sets: order and repeats are free."""
    any_of: dict[FieldPath, FunctionName] = {}
    """Field → `package.module:function`: whether its value is one of those that are right for the event."""
    absent_is_null: Flag = False
    """Whether a member that is missing equals one that is null."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Equality:
        if self.ignore and self.compare_only is not None:
            raise ValueError("`ignore` and `compare_only` exclude each other; keep one of them")
        return self


class SpecEquality(Equality):
    """The equality of all kinds; that of a kind in `per_kind` takes the place of the whole of it."""

    per_kind: dict[KindName, Equality] = {}
    """Kind → its own equality, in place of the whole of this one."""
