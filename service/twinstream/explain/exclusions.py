"""Lists what a comparison file leaves out or lets pass, with the owner of each exclusion."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from twinstream.core.events import Side
from twinstream.spec.file.equality import Equality
from twinstream.spec.file.known_differences import KnownDifference
from twinstream.spec.file.model import Spec
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
    order any order - events that change places are no difference
    equality.ignore at - any change of the field
    equality.quantum fare - changes that round to the same multiple of 0.01
    decode record keys, headers and timestamps - any change of them that the values do not show
    """
    return (
        *_order(spec),
        *_kinds(spec),
        *_fields(spec),
        *_records(spec),
        *map(_known, spec.known_differences),
    )


def _order(spec: Spec) -> Iterator[Exclusion]:
    if spec.order != "total":
        yield Exclusion(
            key="order",
            name=spec.order_text.removeprefix("in "),
            hides="events that change places are no difference"
            if spec.order == "unordered"
            else "any change of places that this order allows",
        )


def _kinds(spec: Spec) -> Iterator[Exclusion]:
    for name, kind in spec.kinds.items():
        if kind.ignore:
            yield Exclusion(key="kinds", name=name, hides="all events of this kind, which are only counted")
    for name in spec.evidence.may_be_absent:
        yield Exclusion(key="evidence.may_be_absent", name=name, hides="that none of this kind came")


def _fields(spec: Spec) -> Iterator[Exclusion]:
    yield from _equality("equality", spec.equality)
    for kind, equality in spec.equality.per_kind.items():
        yield from _equality(f"equality.per_kind.{kind}", equality)


def _equality(key: str, equality: Equality) -> Iterator[Exclusion]:
    for field in equality.ignore:
        yield Exclusion(key=f"{key}.ignore", name=field, hides="any change of the field")
    if equality.compare_only is not None:
        hides = "any change of all other fields"
        yield Exclusion(key=f"{key}.compare_only", name=", ".join(equality.compare_only), hides=hides)
    for field, quantum in equality.quantum.items():
        hides = f"changes that round to the same multiple of {quantum}"
        yield Exclusion(key=f"{key}.quantum", name=field, hides=hides)
    for field, tolerance in equality.tolerance.items():
        allowed = [f"{tolerance.abs}"] if tolerance.abs else []
        allowed += [f"{tolerance.rel} of the larger number"] if tolerance.rel else []
        yield Exclusion(
            key=f"{key}.tolerance", name=field, hides=f"changes by up to {' plus '.join(allowed)}"
        )
    for field in equality.unordered:
        yield Exclusion(key=f"{key}.unordered", name=field, hides="another order of the array's elements")
    for field in equality.sets:
        yield Exclusion(
            key=f"{key}.sets", name=field, hides="another order, and repeated elements, of the array"
        )
    if equality.absent_is_null:
        yield Exclusion(key=f"{key}.absent_is_null", name="null", hides="a member that is null or absent")


def _records(spec: Spec) -> Iterator[Exclusion]:
    if not spec.whole:
        hides = "any change of them that the values do not show"
        yield Exclusion(key="decode", name="record keys, headers and timestamps", hides=hides)
    if spec.undecodable.budget:
        hides = f"up to {spec.undecodable.budget:,} records that are no events of the comparison"
        yield Exclusion(key="undecodable.budget", name="undecodable records", hides=hides)
    if "ignore" in {spec.decode_of(side).tombstones for side in Side}:
        yield Exclusion(key="decode.tombstones", name="records without a value", hides="all of them")
    if spec.duplicates.policy == "replays":
        hides = "copies that a retry of a batch has written, which are only counted"
        yield Exclusion(key="duplicates", name="replays", hides=hides)
    if spec.on_divergence == "halt":
        hides = "everything behind the first difference"
        yield Exclusion(key="on_divergence", name="halt", hides=hides)


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
