"""Proposals: single loosenings of a comparison file, each with its evidence and what it would hide.

A proposal names the key of the file that it changes. A `Draft` is a starting file with some proposals in it;
the file that is shown, verified and written is made only from those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from twinstream.calibration.fields import Noise
from twinstream.calibration.ordering import OrderData
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Order
from twinstream.spec.file.paths import Path, holds, overlap, parse_path
from twinstream.spec.file.source import dump
from twinstream.spec.laws.equality import in_sequence
from twinstream.spec.load import loads


@dataclass(frozen=True)
class Proposal:
    """One change: `value` is put at the path `at` of the file, for `field` if it names one.

    `loosens`: it makes more runs equal; other proposals only name the identity of events, or separate kinds.
    """

    at: Path
    field: str | None
    value: Any
    evidence: str
    hides: str
    loosens: bool = True

    @property
    def key(self) -> str:
        """The key of the file, as people name it."""
        return ".".join(self.at)

    def to_dict(self) -> dict[str, Any]:
        """The proposal as ``calibrate --json`` prints it."""
        shown = {"key": self.key, "field": self.field, "value": plain(self.value)}
        return {**shown, "evidence": self.evidence, "hides": self.hides}


class Draft(NamedTuple):
    """A comparison file to start from, with proposals in it.

    `base` and `declared` are its data and its spec without them. `given` tells whether the caller gave a
    file; else the start is the tightest possible one.
    """

    base: Mapping[str, Any]
    declared: Spec
    given: bool
    proposals: tuple[Proposal, ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """The data of the file."""
        data = deepcopy(dict(self.base))
        for proposal in self.proposals:
            _put(data, proposal)
        return data

    @property
    def spec(self) -> Spec:
        """The spec of the file; its schema files are those of the start. Raises SpecError."""
        if not self.proposals:
            return self.declared
        read = {key: getattr(self.declared, key) for key in ("decode", "reference", "candidate")}
        return loads(dump(self.data), "the proposal").model_copy(update=read)

    def with_(self, proposals: Iterable[Proposal]) -> Draft:
        """The file with these proposals, and no others."""
        return self._replace(proposals=tuple(proposals))

    def without(self, proposal: Proposal) -> Draft:
        """The draft without one proposal."""
        return self.with_(one for one in self.proposals if one is not proposal)


def plain(value: Any) -> Any:
    """The data of a file as JSON types; a decimal becomes its text, which a file may hold, too."""
    if isinstance(value, Mapping):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return f"{value:f}" if isinstance(value, Decimal) else value


_INSTEAD = {"quantum": ("tolerance",), "tolerance": ("quantum",), "sets": ("unordered",)}
"""The keys that each way of comparing a field replaces."""


def _put(data: dict[str, Any], proposal: Proposal) -> None:
    *outer, name = proposal.at
    place = data
    for key in outer:
        place[key] = dict(place.get(key) or {})
        place = place[key]
    field, value = proposal.field, proposal.value
    if field is None:
        place[name] = value
        return
    for other in _INSTEAD.get(name, ()):
        if field in (place.get(other) or ()):
            left = [one for one in place[other] if one != field]
            place[other] = (
                left if isinstance(place[other], list) else {one: place[other][one] for one in left}
            )
    if name == "ignore" and place.get("compare_only") is not None:
        place["compare_only"] = [one for one in place["compare_only"] if one != field]
    elif value is None:
        place[name] = [*(place.get(name) or ()), field]
    else:
        place[name] = {**(place.get(name) or {}), field: value}


# -- from noise to proposals -------------------------------------------------------------------------------


def for_order(order: OrderData, evidence: str) -> Proposal:
    """A proposal of another order."""
    if order == "unordered":
        hides = "any other order of the events"
    else:
        hides = "events in another order, unless these fields order them"
    return Proposal(("order",), None, order, evidence, hides)


def for_identity(fields: Sequence[str], evidence: str) -> Proposal:
    """A proposal of the fields by which events were paired as `identity`."""
    hides = "nothing; a difference is called changed, not missing and extra"
    return Proposal(("identity",), None, list(fields), evidence, hides, loosens=False)


def for_kind(kind: str, field: str, start: Draft) -> Proposal:
    """A proposal of an own equality, unchanged so far, for a kind without the noise of the others."""
    equality = start.data.get("equality") or {}
    equality.pop("per_kind", None)
    evidence = f"`{field}` is the same in both runs for `{kind}`, and not for other kinds"
    hides = "nothing; what is proposed for other kinds does not hold for this one"
    return Proposal(("equality", "per_kind", kind), None, equality, evidence, hides, loosens=False)


def for_replays(count: int) -> Proposal:
    """A proposal to recognize rows that a retry wrote again."""
    events = "event" if count == 1 else "events"
    evidence = f"{count:,} {events} came again, and the headers of their sink tell them from others"
    hides = "a second copy that a retry of the same batch wrote"
    return Proposal(("duplicates", "policy"), None, "replays", evidence, hides)


def for_noise(noise: Sequence[Noise], start: Spec, order: OrderData) -> list[Proposal]:
    """The proposals for some noise under an order; for no number if one needs a partner that is not known."""
    kept = _outermost(noise)
    found = [(one.how, _for_field(one, start, order)) for one in kept if one.how != "absent"]
    numbers = all(proposal is not None for _, proposal in found)
    fields = [proposal for how, proposal in found if proposal is not None and (numbers or how != "number")]
    kinds = dict.fromkeys(one.kind for one in kept if one.how == "absent")
    absent = [
        _for_absent([one for one in kept if one.how == "absent" and one.kind == kind]) for kind in kinds
    ]
    return [*fields, *absent]


def _outermost(noise: Sequence[Noise]) -> list[Noise]:
    """The noise without fields that lie inside a field that is left out anyway."""
    left_out = [one for one in noise if one.how == "ignore"]

    def is_inside(one: Noise) -> bool:
        others = (outer for outer in left_out if outer is not one and outer.kind == one.kind)
        return any(holds(outer.path, one.path) for outer in others)

    return [one for one in noise if not is_inside(one)]


_HIDDEN = {
    "ignore": ("differed", "any change of"),
    "unordered": ("came in another order", "another order of the elements of"),
    "sets": ("repeated elements", "another order and repeats of the elements of"),
}
"""What a field did, and what of it would not be seen, by the key that it is named under."""


def _for_field(noise: Noise, start: Spec, order: OrderData) -> Proposal | None:
    if noise.how == "number":
        return _for_number(noise, start, order)
    did, hidden = _HIDDEN[noise.how]
    evidence = f"{did} in {noise.differed:,} of {noise.seen:,} pairs"
    hides = f"{hidden} `{noise.field}`"
    return Proposal((*_equality(noise), noise.how), noise.field, None, evidence, hides)


def _equality(noise: Noise) -> Path:
    return ("equality",) if noise.kind is None else ("equality", "per_kind", noise.kind)


def _for_number(noise: Noise, start: Spec, order: OrderData) -> Proposal | None:
    assert noise.wobble is not None, "a number's noise is how far it wobbles"
    small, field, at = noise.wobble, noise.field, _equality(noise)
    largest = _THREE_DIGITS.divide(*map(Decimal, small.largest.as_integer_ratio()))
    evidence = f"differed in {noise.differed:,} of {noise.seen:,} pairs, by at most {largest:.3g}"
    if not noise.in_bag and _partner_known(noise, start, order):
        how, most, of = "abs", small.bound, ""
        if small.part is not None:
            how, most, of = "rel", small.part, " of the larger number"
            evidence += f", which is in no pair more than {most:.0e} of the larger number"
        hides = f"a change of `{field}` by up to {most:f}{of}"
        return Proposal((*at, "tolerance"), field, {how: most}, evidence, hides)
    if small.step is None:
        return None
    near = "no value lies that near a rounding boundary"
    if small.at_risk:
        lie = "value lies" if small.at_risk == 1 else "values lie"
        near = f"{small.at_risk:,} {lie} that near a rounding boundary, where another run may fall apart"
    hides = f"a change of `{field}` of less than {small.step:f}, mostly"
    return Proposal((*at, "quantum"), field, small.step, f"{evidence}; {near}", hides)


_THREE_DIGITS = Context(prec=3)
"""Not a double: a number may be beyond its range."""


def _partner_known(noise: Noise, start: Spec, order: OrderData) -> bool:
    """Whether the partner of an event is known without its numbers, so that they may differ."""
    if start.identity is not None:
        return True
    own = set(start.equality.per_kind)
    kinds = [kind for kind in start.compared_kinds if kind not in own] if noise.kind is None else [noise.kind]
    return all(in_sequence(_ORDER.validate_python(order), kind) for kind in kinds)


_ORDER: TypeAdapter[Order] = TypeAdapter(Order)


def _for_absent(noise: Sequence[Noise]) -> Proposal:
    most = sorted(noise, key=lambda one: -one.differed)[:5]
    told = ", ".join(f"`{one.field}` in {one.differed:,} of {one.seen:,} pairs" for one in most)
    more = f", and {len(noise) - len(most)} more fields" if len(noise) > len(most) else ""
    hides = "a member that is null in one version and missing in the other, at any depth"
    evidence = f"null on one side and missing on the other: {told}{more}"
    return Proposal((*_equality(noise[0]), "absent_is_null"), None, True, evidence, hides)


def decides(spec: Spec, noise: Noise) -> str | None:
    """The key of the file by which a noisy field decides something, so that it must be compared unchanged.

    A list of the fields to compare cannot leave out a part of one.
    """
    if noise.how == "absent":
        return None
    compared = (spec.equality if noise.kind is None else spec.equality.per_kind[noise.kind]).compare_only
    if noise.how == "ignore" and any(
        holds(outer := parse_path(field), noise.path) and outer != noise.path for field in compared or ()
    ):
        return "equality.compare_only"
    found = (one for one in spec.kept_as_they_are if not one.field.startswith("$"))
    return next((one.place for one in found if overlap(parse_path(one.field), noise.path)), None)
