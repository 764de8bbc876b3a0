"""The laws of equality: fields that decide are compared unchanged, and no field has two conflicting forms.

`equality_paths` lists every field that an equality names, with what it does to the field. The equality of a
kind in `per_kind` replaces that of all kinds as a whole. So each is checked by itself, against the fields
that decide something for its own kinds.

Tolerance is not transitive (1 ~ 2 and 2 ~ 3, but not 1 ~ 3), so it cannot be part of a canonical form: it is
allowed only where the partner of an event is known without it. In a sequence the partner stands in the same
place; `identity` names the partner. In a bag only equality finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from operator import eq
from typing import NamedTuple

from twinstream.spec.file.equality import Equality
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Barrier, Decision, Order, PerKey, reached_by
from twinstream.spec.file.paths import Path, holds, overlap, parse_path
from twinstream.spec.file.values import Breach, Location, dotted, listed

_CHANGES = ("ignore", "quantum", "tolerance", "unordered", "sets", "any_of")


def within(array: Path, inner: Path) -> bool:
    """Whether a field is in the elements of an array, and not the array itself."""
    return array != inner and holds(array, inner)


_EXCLUDE = {
    ("quantum", "tolerance"): overlap,
    ("tolerance", "unordered"): lambda inner, array: holds(array, inner),
    ("tolerance", "sets"): lambda inner, array: holds(array, inner),
    ("unordered", "sets"): eq,
    ("unordered", "any_of"): within,
    ("sets", "any_of"): within,
}
"""The forms that exclude each other, and when. An array in the elements of another is another array.

Elements of an array without an order have no places that show which belong together, as a tolerance needs. A
judged value inside them would be sorted by what it is, although that does not count.
"""


class EqualityPath(NamedTuple):
    """A field that an equality names: its place, and the key that says how it is compared."""

    field: str
    at: Location
    does: str


class _Part(NamedTuple):
    """One equality of the file, its place, and the kinds that it applies to."""

    equality: Equality
    at: Location
    kinds: tuple[str, ...]

    def breach(self, name: str, problem: str) -> Breach:
        """A breach in the member `name` of this equality."""
        return Breach((*self.at, name), problem)

    def key(self, name: str) -> str:
        """The key of the member `name`, as messages name it."""
        return dotted((*self.at, name))

    def paths(self) -> Iterator[EqualityPath]:
        """The fields that it names, list by list."""
        for does in ("compare_only", *_CHANGES):
            fields = getattr(self.equality, does)
            for n, field in enumerate(fields or ()):
                yield EqualityPath(field, (*self.at, does, field if isinstance(fields, dict) else n), does)


def equality_paths(spec: Spec) -> Iterator[EqualityPath]:
    """Every field that the equality of any kind names."""
    for part in _parts(spec):
        yield from part.paths()


def equality_laws(spec: Spec) -> Iterator[Breach]:
    """The breaches in the equality of a file: that of all kinds first, then those of single kinds."""
    for part in _parts(spec):
        yield from _decided(spec, part)
        yield from _told_from_null(spec, part)
        yield from _apart(part)
        yield from _partner_known(spec, part)
        yield from _judged_as_it_is(spec, part)


def _parts(spec: Spec) -> Iterator[_Part]:
    """The equality of all kinds without one of their own, then those of single kinds."""
    own = spec.equality.per_kind
    for at, equality in spec.equalities:
        kinds = (str(at[-1]),) if at[1:] else tuple(kind for kind in spec.kind_names if kind not in own)
        yield _Part(equality, at, kinds)


def _decided(spec: Spec, part: _Part) -> Iterator[Breach]:
    """A field that decides something must be compared, and unchanged."""
    named = (one for one in spec.kept_as_they_are if not one.field.startswith("$"))
    decisions = [decision for decision in named if set(decision.kinds) & set(part.kinds)]
    for decision in decisions:
        path = parse_path(decision.field)
        for found in part.paths():
            if found.does in _CHANGES and overlap(path, parse_path(found.field)):
                yield Breach(found.at, f"may not name `{found.field}`: {_because(decision)}")
        kept = part.equality.compare_only
        if kept is not None and not any(holds(parse_path(field), path) for field in kept):
            yield part.breach("compare_only", f"must name `{decision.field}`: {_because(decision)}")


def _because(decision: Decision) -> str:
    decides = f"`{decision.field}` decides the {decision.what} (`{decision.place}`)"
    return f"{decides}, so it must be compared as it is"


def _told_from_null(spec: Spec, part: _Part) -> Iterator[Breach]:
    """A kind may not require null if null and absent are equal."""
    if not part.equality.absent_is_null:
        return
    for decision in spec.decisions:
        if decision.what == "kind" and set(decision.kinds) & set(part.kinds):
            wanted = spec.kinds[str(decision.at[1])].where[decision.field]
            if None in listed(wanted):
                told = f"`{decision.place}` tells a `{decision.field}` that is null from one that is absent"
                yield part.breach("absent_is_null", f"may not be true: {told}; keep one of them")


def _apart(part: _Part) -> Iterator[Breach]:
    """No field is compared in two ways that exclude each other, or in some way and left out."""
    paths = list(part.paths())
    for one, other in combinations(paths, 2):
        clash = _EXCLUDE.get((one.does, other.does))
        if clash and clash(parse_path(one.field), parse_path(other.field)):
            problem = f"`{other.field}` stands under `{one.does}` too (`{one.field}`); keep one of them"
            yield Breach(other.at, problem)
    for found in paths:
        if found.does not in {"ignore", "compare_only"}:
            yield from _left_out(part, found)


def _left_out(part: _Part, found: EqualityPath) -> Iterator[Breach]:
    """A field that is not compared cannot have a form of comparison."""
    path = parse_path(found.field)
    if any(holds(parse_path(field), path) for field in part.equality.ignore):
        yield Breach(found.at, f"`{found.field}` is left out by `{part.key('ignore')}`; keep one of them")
    kept = part.equality.compare_only
    if kept is not None and not any(_reaches(parse_path(field), path, found.does) for field in kept):
        only = part.key("compare_only")
        yield Breach(found.at, f"`{found.field}` is left out, since `{only}` does not name it; name it there")


def _reaches(kept: Path, path: Path, does: str) -> bool:
    """Whether some of a field is kept; of an array, parts of its elements are enough."""
    return overlap(kept, path) if does in {"unordered", "sets"} else holds(kept, path)


def _partner_known(spec: Spec, part: _Part) -> Iterator[Breach]:
    """Tolerance needs a partner that is known without it."""
    if spec.named_by is not None:
        return
    bags = [kind for kind in spec.compared_kinds if kind in part.kinds and not in_sequence(spec.order, kind)]
    for found in part.paths() if bags else ():
        if found.does == "tolerance":
            problem = f"which `{bags[0]}` events match must be known before a number may differ"
            offer = f"write `quantum: {{{found.field}: …}}`, or `identity`, or an order that is a sequence"
            yield Breach(found.at, f"{problem}: {offer} (`total`, `per_key`)")
            return


def _judged_as_it_is(spec: Spec, part: _Part) -> Iterator[Breach]:
    """A form that says which value is right cannot leave it to the pair whether numbers are close."""
    tolerant = next((at for at, equality in spec.equalities if equality.tolerance), None)
    if part.equality.any_of and tolerant is not None:
        problem = (
            f"may not stand beside `{dotted((*tolerant, 'tolerance'))}`: whether an event is right must not "
            "depend on its partner; let the function accept what is close enough, or use `quantum`"
        )
        yield part.breach("any_of", problem)


def in_sequence(order: Order, kind: str) -> bool:
    """Whether the events of a kind (under a key) form one sequence, so that places show partners."""
    return any(
        form == "total" or isinstance(form, PerKey) or (isinstance(form, Barrier) and kind in form.barrier)
        for form in reached_by(order, kind)
    )
