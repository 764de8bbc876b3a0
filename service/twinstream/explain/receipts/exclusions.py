"""Lists what a comparison file leaves out or lets pass, with the owner of each exclusion."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import chain, starmap

from twinstream.core.events import Side
from twinstream.spec.file.equality import Equality
from twinstream.spec.file.known_differences import KnownDifference
from twinstream.spec.file.model import Spec
from twinstream.spec.file.values import Location
from twinstream.status.common import Frozen


class Exclusion(Frozen):
    """One thing that is left out: the key of the file that does it, and what it hides.

    `name` is that of a field, a kind or a rule. Only known differences have an `owner`, and an end.
    """

    key: str
    name: str
    hides: str
    owner: str | None = None
    expires: date | None = None
    ceiling: str | None = None
    ticket: str | None = None


def exclusions(spec: Spec) -> tuple[Exclusion, ...]:
    """Every exclusion of a comparison file.

    >>> from twinstream.spec.load import loads
    >>> file = '''{version: 1, name: t, reference: {topic: a}, candidate: {topic: b}, order: unordered,
    ... equality: {ignore: [at], quantum: {fare: 0.01}}}'''
    >>> for one in exclusions(loads(file)): print(one.key, one.name, '-', one.hides)
    order any order - any reordering
    equality.ignore at - any change of the field
    equality.quantum fare - changes that round to the same multiple of 0.01
    decode record keys, headers and timestamps - changes of them that the values do not show
    """
    fields = chain.from_iterable(starmap(_equality, spec.equalities))
    rows = (*_order(spec), *_kinds(spec), *fields, *_records(spec))
    left_out = (Exclusion(key=key, name=name, hides=hides) for key, name, hides in rows)
    return (*left_out, *map(_known, spec.known_differences))


_Row = tuple[str, str, str]
"""The key, the name, and what is hidden."""


def _order(spec: Spec) -> Iterator[_Row]:
    name = spec.order_text.removeprefix("in ")
    if spec.order == "unordered":
        yield "order", name, "any reordering"
    elif spec.order != "total":
        yield "order", name, "reordering that this order permits"


def _kinds(spec: Spec) -> Iterator[_Row]:
    for name, kind in spec.kinds.items():
        if kind.ignore:
            yield "kinds", name, "all events of this kind, which are only counted"
    for name in spec.evidence.may_be_absent:
        yield "evidence.may_be_absent", name, "that no event of this kind came"


def _equality(location: Location, equality: Equality) -> Iterator[_Row]:
    key = ".".join(map(str, location))
    for field in equality.ignore:
        yield f"{key}.ignore", field, "any change of the field"
    if equality.compare_only is not None:
        yield f"{key}.compare_only", ", ".join(equality.compare_only), "any change of all other fields"
    for field, quantum in equality.quantum.items():
        yield f"{key}.quantum", field, f"changes that round to the same multiple of {quantum}"
    for field, tolerance in equality.tolerance.items():
        allowed = [f"{tolerance.abs}"] if tolerance.abs else []
        allowed += [f"{tolerance.rel} of the larger number"] if tolerance.rel else []
        yield f"{key}.tolerance", field, f"changes by up to {' plus '.join(allowed)}"
    for field in equality.unordered:
        yield f"{key}.unordered", field, "another order of the array's elements"
    for field in equality.sets:
        yield f"{key}.sets", field, "another order, and repeated elements, of the array"
    for field, function in equality.any_of.items():
        yield f"{key}.any_of", field, f"changes from one value that {function} accepts to another"
    if equality.absent_is_null:
        yield f"{key}.absent_is_null", "null", "a member that is null or absent"


def _records(spec: Spec) -> Iterator[_Row]:
    if spec.start.at in ("event_time", "barrier"):
        yield "start", "events before the start", "all of them"  # It may be that of a reset, or of a range.
    yield "decode", _beside_values(spec), "changes of them that the values do not show"
    if budget := spec.undecodable.budget:
        hides = f"up to {budget:,} records that are not events of the comparison"
        yield "undecodable.budget", "undecodable records", hides
    if "ignore" in {spec.decode_of(side).tombstones for side in Side}:
        yield "decode.tombstones", "records without a value", "all of them"
    if spec.duplicates.policy == "replays":
        yield "duplicates", "replays", "copies that a retry of a batch has written, which are only counted"
    if spec.folding is not None:
        yield f"emits.{spec.folding.name}", "replaced rows", "all rows of a key before its last"
    if spec.on_divergence == "halt":
        yield "on_divergence", "halt", "everything after the first difference"


def _beside_values(spec: Spec) -> str:
    """The parts of a record that are not compared, since nothing of the file names them."""
    named = {field.partition(".")[0] for field in spec.deciding_fields if field.startswith("$")}
    headers = "other headers" if "$headers" in named else "headers"
    parts = {"$key": "record keys", "": headers, "$timestamp": "timestamps"}
    if spec.whole:
        parts["$partition"] = "partitions"
    *most, last = (name for part, name in parts.items() if part not in named)
    return f"{', '.join(most)} and {last}" if most else last


def _known(rule: KnownDifference) -> Exclusion:
    kinds = " and ".join(rule.when.divergences)
    where = ", ".join(f"{field} is {wanted}" for field, wanted in rule.when.where.items())
    fields = f" in {', '.join(rule.when.fields)}" if rule.when.fields else ""
    ceiling = rule.ceiling
    share = None if ceiling.share is None else f"{ceiling.share:.4g} of the pairs"
    return Exclusion(
        key="known_differences",
        name=rule.id,
        hides=f"differences that are {kinds}{fields}{f', where {where}' if where else ''}",
        owner=rule.owner,
        expires=rule.expires,
        ceiling=share or f"{ceiling.count:,}",
        ticket=rule.ticket,
    )
