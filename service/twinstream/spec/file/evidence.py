"""The evidence that a comparison file asks for, and which part of it is missing."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from typing import NamedTuple

from twinstream.spec.file.model import Spec


class Wanted(NamedTuple):
    """The evidence needed before the verdict can be EQUIVALENT; `kinds` must each have a match."""

    matched: int
    seconds: float
    kinds: tuple[str, ...] = ()


def wanted(spec: Spec) -> Wanted:
    """The evidence that a comparison file asks for."""
    asked = spec.evidence
    kinds = spec.compared_kinds if spec.kinds else ()
    return Wanted(
        asked.matched, asked.seconds, tuple(kind for kind in kinds if kind not in asked.may_be_absent)
    )


def lacking(asked: Wanted, matched: int, seconds: float, by_kind: Mapping[str, int]) -> list[str]:
    """The missing evidence, in sentences; of time the seconds that are full.

    >>> lacking(Wanted(1000, 300, ("ride", "end_of_day")), 1200, 12.9, {"ride": 1200})
    ['12 of 300 s of Kafka time', 'no `end_of_day` has matched']
    """
    missing = []
    if matched < asked.matched:
        missing.append(f"{matched:,} of {asked.matched:,} required pairs")
    if seconds < asked.seconds:
        missing.append(f"{floor(seconds):,} of {asked.seconds:,.6g} s of Kafka time")
    missing += [f"no `{kind}` has matched" for kind in asked.kinds if not by_kind.get(kind)]
    return missing
