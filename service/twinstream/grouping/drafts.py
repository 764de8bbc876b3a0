"""Drafts changes of a comparison file that hide a group of differences, each as YAML to paste.

A draft is tried on the file before it is offered. One that the laws of the file forbid is left out: an
ignored field must not decide order, identity or kind. So is one that would not hide its group.

What a draft hides is counted from the groups, by the rules that a comparison follows: an ignored field hides
the differences in that field alone, and none that differs elsewhere, too. The counts are exact where a group
knows all fields of its differences. They do not say what the changed file would report instead, such as an
event that now has an equal one elsewhere; `replay` compares the events themselves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from twinstream.grouping.wording import listed_text
from twinstream.spec.codec.routes import typed
from twinstream.spec.file.equality import Equality
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import Path, holds, overlap, parse_path
from twinstream.spec.file.source import dump
from twinstream.spec.file.values import listed
from twinstream.spec.laws.laws import breaches
from twinstream.spec.lint.sharding import refusal
from twinstream.spec.load import with_members
from twinstream.status.common import DivergenceKind, Frozen
from twinstream.status.groups import Group

DAYS = 30
"""A known difference ends after these: long enough for a release, short enough that somebody looks again."""
SPARE = 10
"""A ceiling is higher than the count by one part of so many: the stream goes on, but a flood must show."""
OWNER = "your-team"
ID_LENGTH = 60
_CUT, _MASKED = "…", "‹"
"""The end of a name that a group has cut, and the begin of what stands in for a name that is data."""


class Draft(Frozen):
    """A change of the comparison file as YAML, and what it would hide of the final differences so far.

    `ignore` changes `equality`, and its text replaces that key of the file. `known_difference` is one more
    entry of `known_differences`. `count` is the number of differences that are hidden for certain.
    """

    change: Literal["ignore", "known_difference"]
    title: str
    yaml: str
    hides: str
    count: int


class _Effect(NamedTuple):
    """What a change hides: differences of these kinds, of events of these kinds, in covered fields alone."""

    kinds: frozenset[str]
    event_kinds: frozenset[str]
    covers: Callable[[str, Path], bool]


_Counts = Counter[Literal["hidden", "partly", "unsure"]]
"""How many differences are hidden, differ in other fields as well, or may be hidden."""


class Drafting:
    """Drafts for the groups of one comparison, which `shards` matchers share."""

    def __init__(self, spec: Spec, groups: Sequence[Group], shards: int, today: date) -> None:
        self._spec, self._groups, self._shards, self._today = spec, groups, shards, today

    def drafts(self, group: Group) -> list[Draft]:
        """The changes that would hide a group; none if a file cannot say it."""
        if group.kind == "others" or not _is_known(group) or (group.kind == "changed" and not group.fields):
            return []
        made = (self._ignoring(group), self._tolerating(group), self._declaring(group, group.kind))
        return [draft for draft in made if draft is not None]

    # -- equality ------------------------------------------------------------------------------------------

    def _ignoring(self, group: Group) -> Draft | None:
        fields = group.fields or []
        changed = self._with_equality(group, lambda members: _without(members, fields)) if fields else None
        if changed is None:
            return None
        effect = _Effect(
            frozenset(("changed",)),
            frozenset(changed.compared_kinds),
            lambda kind, path: _left_out(changed.equality_of(kind), path),
        )
        if _counted(group, effect)["hidden"] < group.count:
            return None
        counts = self._counts(effect)
        return Draft(
            change="ignore",
            title=f"Ignore {_named(fields)}",
            yaml=self._equality_text(changed),
            hides=self._hides(counts, f"{self._events(effect, fields)} that {_differ_in(fields)}"),
            count=counts["hidden"],
        )

    def _tolerating(self, group: Group) -> Draft | None:
        """For numbers that one side has rounded in all differences: half of the last digit is tolerated."""
        fields = group.fields or []
        widths = {field: width for field in fields if (width := _rounded_by(group, field)) is not None}
        if not widths or len(widths) < len(fields) or self._tolerated & widths.keys():
            return None
        changed = self._with_equality(group, lambda members: _tolerant(members, widths))
        if changed is None:
            return None
        named = listed_text([f"{width:f} in `{field}`" for field, width in widths.items()])
        hides = self._hides(_Counts({"hidden": group.count}), f"all that {_differ_in(fields)}, by rounding")
        return Draft(
            change="ignore",
            title=f"Tolerate {named}",
            yaml=self._equality_text(changed),
            hides=f"{hides} Any other change of up to {named} is hidden, too.",
            count=group.count,
        )

    def _with_equality(self, group: Group, change: Callable[[_Members], _Members]) -> Spec | None:
        """The file with the equality of a group's kinds of event changed; None if the file forbids it."""
        members = _written(self._spec.equality)
        own = members.pop("per_kind", {})
        own |= {kind: change(own[kind]) for kind in own.keys() & group.kinds.keys()}
        if group.kinds.keys() - own.keys():
            members = change(members)
        return self._allowed(equality=members | ({"per_kind": own} if own else {}))

    def _equality_text(self, changed: Spec) -> str:
        replaced = "equality" in self._spec.model_fields_set
        head = "# Put this in place of `equality` in the file.\n" if replaced else ""
        members = _written(changed.equality).items()
        return f"{head}equality:\n" + "".join(f"  {key}: {dump(value)}\n" for key, value in members)

    @property
    def _tolerated(self) -> set[str]:
        return {field for _, equality in self._spec.equalities for field in equality.tolerance}

    # -- known differences ---------------------------------------------------------------------------------

    def _declaring(self, group: Group, kind: DivergenceKind) -> Draft | None:
        """A known difference; of one kind of event alone, if the file can tell it."""
        only = self._only_kind(group)
        narrow = None if only is None else self._declared(group, kind, only)
        return narrow or self._declared(group, kind, None)

    def _only_kind(self, group: Group) -> str | None:
        """The one kind of a group's events, if its `where` tells it from all other kinds."""
        (kind, *more) = group.kinds
        if more or kind not in self._spec.kinds:
            return None
        where = self._spec.kinds[kind].where
        changed = [parse_path(field) for field in group.fields or ()]
        if any(overlap(parse_path(field), path) for field in where for path in changed):
            return None  # Both events would have to fit it.
        others = (self._spec.kinds[name].where for name in self._spec.kinds if name != kind)
        return kind if where and all(_are_apart(where, other) for other in others) else None

    def _declared(self, group: Group, kind: DivergenceKind, only: str | None) -> Draft | None:
        """A known difference of the events of the kind `only`; of all kinds if that is None.

        One for `extra` covers copies, too: under a rule, an extra event that was written twice is both.
        """
        fields = group.fields or []
        copies = kind == "extra"
        paths = [parse_path(field) for field in fields]
        effect = _Effect(
            frozenset((kind, "duplicate") if copies else (kind,)),
            frozenset(self._spec.compared_kinds if only is None else (only,)),
            lambda _, path: any(holds(outer, path) for outer in paths),
        )
        counts = self._counts(effect)
        hidden = counts["hidden"]
        where = {} if only is None else self._spec.kinds[only].where
        ends, ceiling = self._today + timedelta(DAYS), hidden + max(1, hidden // SPARE)
        entry = {
            "id": self._free_id(kind, fields),
            "when": {"divergences": [kind, "duplicate"] if copies and not self._tolerated else [kind]}
            | ({"where": dict(where)} if where else {})
            | ({"fields": fields} if fields else {}),
            "owner": OWNER,
            "expires": ends.isoformat(),
            "ceiling": {"count": ceiling},
        }
        if self._allowed(known_differences=[*self._spec.known_differences, entry]) is None:
            return None
        what = _differ_in(fields) if fields else f"{_DIFFER[kind]}{', copies included' if copies else ''}"
        return Draft(
            change="known_difference",
            title=f"Declare a known difference: up to {ceiling:,}, until {ends}",
            yaml=self._known_text(entry),
            hides=self._hides(counts, f"{self._events(effect, fields)} that {what}") + self._copies(kind),
            count=hidden,
        )

    def _copies(self, kind: DivergenceKind) -> str:
        """The sentence about differences of another kind that are copies under a rule."""
        extra = kind == "duplicate" and any(group.kind == "extra" for group in self._groups)
        return " A second copy of one that is only in the candidate is hidden, too." if extra else ""

    def _known_text(self, entry: Mapping[str, Any]) -> str:
        more = bool(self._spec.known_differences)
        head = "# Add this entry to `known_differences` of the file.\n" if more else ""
        lines = [f"{key}: {dump(value)}" for key, value in entry.items()]
        return f"{head}known_differences:\n  - " + "\n    ".join(lines) + "\n"

    def _free_id(self, kind: str, fields: Sequence[str]) -> str:
        name = re.sub(r"[^A-Za-z0-9_.]+", "-", "-".join([kind, *fields]))[:ID_LENGTH]
        taken = {known.id for known in self._spec.known_differences}
        return next(one for one in _numbered(name) if one not in taken)

    # -- what a change hides -------------------------------------------------------------------------------

    def _allowed(self, **members: Any) -> Spec | None:
        """The file with other members; None if it could not be served."""
        try:
            changed = with_members(self._spec, **members)
        except ValidationError:
            return None
        forbidden = next(breaches(changed), None) is not None or refusal(changed, self._shards) is not None
        return None if forbidden else changed

    def _counts(self, effect: _Effect) -> _Counts:
        return sum((_counted(group, effect) for group in self._groups), _Counts())

    def _events(self, effect: _Effect, fields: Sequence[str]) -> str:
        """The events of which an effect hides a difference in these fields alone."""
        paths = [parse_path(field) for field in fields]
        kinds = [
            kind
            for kind in self._spec.compared_kinds
            if kind in effect.event_kinds and all(effect.covers(kind, path) for path in paths)
        ]
        return "all" if len(kinds) == len(self._spec.compared_kinds) else f"all {_named(kinds)} events"

    def _hides(self, counts: _Counts, what: str) -> str:
        total = sum(group.count for group in self._groups)
        stay = f" {counts['partly']:,} that also differ in other fields stay." if counts["partly"] else ""
        unsure = f" {counts['unsure']:,} of unknown fields may be hidden, too." if counts["unsure"] else ""
        named = "final difference" if total == 1 else "final differences"
        return f"Hides {counts['hidden']:,} of {total:,} {named}: {what}.{stay}{unsure}"


def _is_known(group: Group) -> bool:
    """Whether a group names all fields of its differences."""
    return group.fields is not None and not group.more_fields and all(map(_is_clear, group.fields))


def _is_clear(field: str) -> bool:
    return not field.endswith(_CUT) and _MASKED not in field


def _counted(group: Group, effect: _Effect) -> _Counts:
    """What becomes of the differences of a group."""
    if group.kind == "others":
        return _Counts({"unsure": group.count})
    counts = _Counts()
    for kind, number in group.kinds.items():
        if group.kind not in effect.kinds or kind not in effect.event_kinds:
            continue
        covered = [effect.covers(kind, parse_path(field)) for field in group.fields or () if _is_clear(field)]
        if all(covered):
            counts["hidden" if _is_known(group) else "unsure"] += number
        elif any(covered):
            counts["partly"] += number
    return counts


# -- members of an equality --------------------------------------------------------------------------------

_Members = dict[str, Any]
"""The members of an equality as a file has them."""


def _written(equality: Equality) -> _Members:
    return equality.model_dump(exclude_unset=True)


def _without(members: _Members, fields: Sequence[str]) -> _Members:
    """The equality without some fields; no member names them any more, but `ignore`."""
    paths = [parse_path(field) for field in fields]

    def stays(field: str) -> bool:
        return not any(holds(path, parse_path(field)) for path in paths)

    kept: _Members = {}
    for key, value in members.items():
        if isinstance(value, dict):
            kept[key] = {field: form for field, form in value.items() if stays(field)}
        else:
            kept[key] = list(filter(stays, value)) if isinstance(value, list) else value
    left = {key: value for key, value in kept.items() if key == "compare_only" or value not in ([], {})}
    if left.get("compare_only") is not None:
        return left
    return left | {"ignore": [*left.get("ignore", []), *fields]}


def _tolerant(members: _Members, widths: Mapping[str, Decimal]) -> _Members:
    tolerated = {field: {"abs": width} for field, width in widths.items()}
    return members | {"tolerance": {**members.get("tolerance", {}), **tolerated}}


def _left_out(equality: Equality, path: Path) -> bool:
    """Whether an equality takes no notice of a field."""
    kept = equality.compare_only
    return any(holds(parse_path(field), path) for field in equality.ignore) or (
        kept is not None and not any(overlap(parse_path(field), path) for field in kept)
    )


def _rounded_by(group: Group, field: str) -> Decimal | None:
    """Half of the last digit to which a field is rounded in all differences of a group; else None."""
    for one in group.patterns:
        if (one.field, one.pattern, one.count) == (field, "rounded", group.count) and isinstance(one.by, int):
            return Decimal(5).scaleb(-one.by - 1)
    return None


# -- texts -------------------------------------------------------------------------------------------------

_DIFFER: dict[DivergenceKind, str] = {
    "missing": "are not in the candidate",
    "extra": "are only in the candidate",
    "reordered": "are on both sides, in a different order",
    "duplicate": "are one copy too many",
}


def _differ_in(fields: Sequence[str]) -> str:
    return f"differ in {_named(fields)} only" if len(fields) == 1 else f"differ only in {_named(fields)}"


def _named(fields: Sequence[str]) -> str:
    return listed_text([f"`{field}`" for field in fields])


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _are_apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether no event fits both conditions."""
    return any(
        field in other and set(map(typed, listed(values))).isdisjoint(map(typed, listed(other[field])))
        for field, values in one.items()
    )
