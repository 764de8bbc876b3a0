"""Finds the kinds without the noise of the others: a rule made for those would hide their differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from twinstream.calibration.evidence import FEWEST_SEEN, can_be_named, has
from twinstream.calibration.spread import CHANCE
from twinstream.spec.codec.field_diff import differences
from twinstream.spec.codec.reduction import without_nulls
from twinstream.spec.file.paths import Path

ValuePairs = Sequence[tuple[Any, Any]]


class _Seen(NamedTuple):
    """For each field of a kind, how many pairs of events have it, and in how many it differs."""

    there: Counter[Path]
    differing: Counter[Path]


def unlike(kinds: Mapping[str, ValuePairs]) -> dict[str, Path]:
    """The kinds in which a field hardly differs that differs in others, with that field."""
    differing = {kind: _differing(pairs) for kind, pairs in kinds.items()}
    paths = [
        path for path in dict.fromkeys(p for found in differing.values() for p in found) if can_be_named(path)
    ]
    seen = {kind: _Seen(_there(pairs, paths), differing[kind]) for kind, pairs in kinds.items()}
    found: dict[str, Path] = {}
    for path in paths:
        for kind in kinds:
            if kind not in found and _is_unlike(
                path, seen[kind], [seen[other] for other in kinds if other != kind]
            ):
                found[kind] = path
    return found


def _is_unlike(path: Path, kind: _Seen, others: Sequence[_Seen]) -> bool:
    """Whether a field differs much more rarely in a kind than in others, beyond chance."""
    count, there = sum(one.differing[path] for one in others), sum(one.there[path] for one in others)
    own, seen = kind.differing[path], kind.there[path]
    if count < FEWEST_SEEN or not seen:
        return False
    share = min(1.0, count / there)
    return own / seen < share / 2 and (1 - share) ** (seen - own) < CHANCE


def _differing(pairs: ValuePairs) -> Counter[Path]:
    found: Counter[Path] = Counter()
    for one, other in pairs:
        if one != other:
            found.update({path for path, _ in differences(without_nulls(one), without_nulls(other))})
    return found


def _there(pairs: ValuePairs, paths: Sequence[Path]) -> Counter[Path]:
    return Counter(path for one, other in pairs for path in paths if has(one, path) or has(other, path))
