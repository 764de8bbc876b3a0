"""The order of a comparison file: a tree of named forms that says which events are dependent.

The grammar is that of data-trace types, plus a list of rules:

    order := unordered | total | {per_key: [field…]} | {by_key: [field…], inner: order}
           | {barrier: kind | [kind…], inner: order, copies: one | per_partition}
           | {parallel: {name: {kinds: [kind…], order: order}, …}} | {dependent: [rule…]} | {callable: "m:f"}
    rule  := [kind, kind] | {pair: [kind, kind], same: [field…], within: {…} | before: {…}}

Rules of this file:

- A form is told by its key (`per_key`, `barrier`, …) before anything in it is read, so that a message is
  about the intended form.
- `nodes` is the only walk over the tree: it gives each node with its place in the file and the kinds that
  reach it. A barrier keeps its kinds from the inner order; a branch lets in only its own.

Source: Mamouras, Stanford, Alur, Ives, Tannen, "Data-Trace Types for Distributed Stream Processing Systems"
(PLDI 2019), section 3.
"""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from typing_extensions import TypeAliasType

from twinstream.spec.file.values import (
    Above0,
    FieldPath,
    FunctionName,
    KindName,
    Location,
    Strict,
    given,
    key_of,
    nearest,
    problem,
)

EVERY = "*"
"""In a rule: every kind that reaches the node."""

TAG = "\0"
"""The names of forms in pydantic's locations begin with it; no key of a file does."""


class PerKey(Strict):
    """Events with equal values of these fields are in order; others are independent."""

    per_key: Annotated[list[FieldPath], Field(min_length=1)]
    """Events with equal values of all these fields are in order."""


class ByKey(Strict):
    """Events with different values of these fields are independent; those with equal ones are as `inner`."""

    by_key: Annotated[list[FieldPath], Field(min_length=1)]
    """Events with different values of these fields are independent."""
    inner: Order
    """The order of events with equal values."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_KindOrKinds = KindName | Annotated[list[KindName], Field(min_length=1)]


class Barrier(Strict):
    """Events of these kinds depend on everything here and on each other; those between depend as `inner`.

    Barriers with copies directly inside others with copies are the same order as all of them in one list, and
    are read as that: which copies belong together is counted by partition over all of them.
    """

    barrier: Annotated[
        list[KindName], Field(min_length=1), BeforeValidator(_listed, json_schema_input_type=_KindOrKinds)
    ]
    """The kind, or kinds, that everything here is in order with."""
    inner: Order
    """The order of the events between two barriers."""
    copies: Literal["one", "per_partition"] = "one"
    """`one` barrier for the topic, or one copy of it in each partition."""

    @model_validator(mode="after")
    def _copies_in_one(self) -> Barrier:
        inner = self.inner
        if self.copies == "one" or not isinstance(inner, Barrier) or inner.copies == "one":
            return self
        return self.model_copy(update={"barrier": [*self.barrier, *inner.barrier], "inner": inner.inner})


class Branch(Strict):
    """The events of some kinds, and their order."""

    kinds: Annotated[list[KindName], Field(min_length=1)]
    """The kinds in this branch."""
    order: Order
    """The order of their events."""


class Parallel(Strict):
    """Events of different branches are independent; every kind is in exactly one."""

    parallel: Annotated[dict[KindName, Branch], Field(min_length=1)]
    """Branch → its kinds and their order; every kind is in exactly one branch."""


class SamePair(Strict):
    """A field of the first kind that must equal a field of the second."""

    first: FieldPath
    """The field in the event of the first kind."""
    second: FieldPath
    """The field in the event of the second kind."""


def _same_pair(value: Any) -> Any:
    """`{user: user_id}` is short for `{first: user, second: user_id}`."""
    if isinstance(value, dict) and len(value) == 1 and not value.keys() & SamePair.model_fields.keys():
        ((first, second),) = value.items()
        return {"first": first, "second": second}
    if not isinstance(value, (str, dict, SamePair)):
        wanted = "must be a field, or `{first: FIELD, second: FIELD}`"
        raise problem(f"{wanted}, but {given(value)} was given")
    return value


_OneName = Annotated[
    dict[
        Annotated[FieldPath, Field(json_schema_extra={"not": {"enum": ["first", "second"]}})],
        FieldPath,
    ],
    Field(
        min_length=1,
        max_length=1,
        description="The field of the first kind, and the field of the second that must equal it.",
    ),
]
Same = Annotated[
    Annotated[FieldPath, Tag(TAG + "field")] | Annotated[SamePair, Tag(TAG + "pair")],
    Discriminator(lambda value: TAG + ("field" if isinstance(value, str) else "pair")),
    BeforeValidator(_same_pair, json_schema_input_type=FieldPath | SamePair | _OneName),
]


class Within(Strict):
    """The two numbers in `field` differ by less than `less_than`."""

    field: FieldPath
    """A number in both events."""
    less_than: Above0
    """The limit. Events whose numbers differ by exactly this much are independent."""


class Before(Strict):
    """The number in `field` is smaller in the event of the first kind."""

    field: FieldPath
    """A number in both events."""


def _two_kinds(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(k, str) and k for k in value):
        return value
    raise problem(f"must be two kinds, such as `[a, b]`, but {given(value)} was given")


KindPair = Annotated[tuple[KindName, KindName], BeforeValidator(_two_kinds)]


class PairRule(Strict):
    """An event of the one kind depends on one of the other when all of the conditions hold."""

    pair: KindPair
    """Two kinds; `*` is every kind that comes here."""
    same: list[Same] = []
    """Fields that must be equal in both events; all must be."""
    within: Within | None = None
    """Dependent when a number differs by less than a limit."""
    before: Before | None = None
    """Dependent when a number is smaller in the event of the first kind."""

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The fields that must be equal: one of the first kind, one of the second."""
        return tuple((one, one) if isinstance(one, str) else (one.first, one.second) for one in self.same)

    @property
    def alike(self) -> list[str]:
        """The fields that must be equal and have one name in both kinds."""
        return [same for same in self.same if isinstance(same, str)]

    @model_validator(mode="after")
    def _conditions(self) -> PairRule:
        if self.within and self.before:
            raise ValueError("`within` and `before` exclude each other; write two rules")
        if not (self.same or self.within or self.before):
            pair = f"[{', '.join(self.pair)}]"
            raise ValueError(
                f"has none of `same`, `within` and `before`; for always, write the rule as `{pair}`"
            )
        return self


def _rule(value: Any) -> Any:
    if isinstance(value, (dict, PairRule)):
        return value
    if isinstance(value, (list, tuple)):
        return _two_kinds(value)
    wanted = "must be a rule, `[a, b]` or `{pair: [a, b], same: [FIELD]}`"
    raise problem(f"{wanted}, but {given(value)} was given")


Rule = Annotated[
    Annotated[KindPair, Tag(TAG + "kinds")] | Annotated[PairRule, Tag(TAG + "rule")],
    Discriminator(lambda value: TAG + ("kinds" if isinstance(value, (list, tuple)) else "rule")),
    BeforeValidator(_rule),
]


class Dependent(Strict):
    """Exactly the pairs that a rule names are dependent."""

    dependent: Annotated[list[Rule], Field(min_length=1)]
    """Rules: exactly the pairs that one of them names are dependent."""

    @property
    def rules(self) -> list[PairRule]:
        """The rules in one form; two kinds alone are a rule without conditions."""
        return [
            rule if isinstance(rule, PairRule) else PairRule.model_construct(pair=rule)
            for rule in self.dependent
        ]


class CallableOrder(Strict):
    """Two events are dependent when a function says so. It is asked about each pair, which is slow."""

    callable: FunctionName
    """`package.module:function`, called with two events."""


_WORDS = ("unordered", "total")
_FORMS: dict[str, type[Strict]] = {
    "per_key": PerKey,
    "by_key": ByKey,
    "barrier": Barrier,
    "parallel": Parallel,
    "dependent": Dependent,
    "callable": CallableOrder,
}


def _form(value: Any) -> Any:
    """Check that an order has exactly one form, before the form is read."""
    if (isinstance(value, str) and value in _WORDS) or isinstance(value, tuple(_FORMS.values())):
        return value
    if not isinstance(value, dict):
        near = nearest(value, (*_WORDS, *_FORMS)) if isinstance(value, str) else None
        raise problem(f"must be an order, but {given(value)} was given; {_hint(near)}")
    named = [form for form in _FORMS if form in value]
    if len(named) > 1:
        both = " and ".join(f"`{form}`" for form in named[:2])
        raise problem(f"holds {both}, which are two orders; write one as the `inner` of the other")
    if not named:
        raise _formless(value)
    return value


def _formless(value: dict[Any, Any]) -> Exception:
    """An error that names the form probably meant by a mapping without the key of any form."""
    keys = [key for key in value if key not in {"inner", "copies"}]
    for key in keys:
        if near := nearest(key, _FORMS):
            return problem(f"is not an order; did you mean `{near}`?", key)
    return problem(f"is not an order; {_hint(None)}", next(iter(keys), None))


def _hint(near: str | None) -> str:
    if near is None:
        return f"write `unordered`, `total`, or a mapping with one of {', '.join(_FORMS)}"
    return f"did you mean `{near}`?" if near in _WORDS else f"did you mean a mapping with the key `{near}`?"


def _tag(value: Any) -> str:
    if isinstance(value, str):
        return TAG + "word"
    keys = value if isinstance(value, dict) else type(value).model_fields
    return TAG + next(form for form in _FORMS if form in keys)


Order = TypeAliasType(
    "Order",
    Annotated[
        Annotated[Literal["unordered", "total"], Tag(TAG + "word")]
        | Annotated[PerKey, Tag(TAG + "per_key")]
        | Annotated[ByKey, Tag(TAG + "by_key")]
        | Annotated[Barrier, Tag(TAG + "barrier")]
        | Annotated[Parallel, Tag(TAG + "parallel")]
        | Annotated[Dependent, Tag(TAG + "dependent")]
        | Annotated[CallableOrder, Tag(TAG + "callable")],
        Discriminator(_tag),
        BeforeValidator(_form),
    ],
)

for _model in (ByKey, Barrier, Branch, Parallel):
    _model.model_rebuild()


# -- the walk ----------------------------------------------------------------------------------------------


class Node(NamedTuple):
    """A node of the tree: the order in it, its place in the file, the kinds whose events reach it."""

    order: Order
    at: Location
    kinds: tuple[str, ...]


class Decision(NamedTuple):
    """A field that decides something of an event: its place in the file, and the kinds it is read for."""

    field: str
    at: Location
    kinds: tuple[str, ...]
    what: Literal["kind", "order", "identity", "start", "key", "window", "time"] = "order"

    @property
    def place(self) -> str:
        """The key of the file that names the field."""
        return key_of(self.at)


def nodes(order: Order, kinds: tuple[str, ...], at: Location = ("order",)) -> Iterator[Node]:
    """Each node of an order, the outer before the inner.

    >>> order = Barrier.model_validate({"barrier": "night", "inner": {"per_key": ["taxi"]}})
    >>> [(".".join(node.at), node.kinds) for node in nodes(order, ("night", "ride"))]
    [('order', ('night', 'ride')), ('order.inner', ('ride',))]
    """
    yield Node(order, at, kinds)
    match order:
        case ByKey():
            yield from nodes(order.inner, kinds, (*at, "inner"))
        case Barrier():
            rest = tuple(kind for kind in kinds if kind not in order.barrier)
            yield from nodes(order.inner, rest, (*at, "inner"))
        case Parallel():
            for name, branch in order.parallel.items():
                inside = tuple(kind for kind in kinds if kind in branch.kinds)
                yield from nodes(branch.order, inside, (*at, "parallel", name, "order"))


def reached_by(order: Order, *kinds: str) -> Iterator[Order]:
    """The nodes of an order that events of all these kinds reach, the outer before the inner."""
    return (node.order for node in nodes(order, kinds) if set(node.kinds) >= set(kinds))


def reads(node: Node) -> Iterator[Decision]:
    """The fields that a node itself reads, in the order of the file."""
    for key in ("per_key", "by_key"):
        for n, field in enumerate(getattr(node.order, key, ())):
            yield Decision(field, (*node.at, key, n), node.kinds)
    if isinstance(node.order, Dependent):
        for n, rule in enumerate(node.order.rules):
            yield from _rule_reads(rule, (*node.at, "dependent", n), node.kinds)


def _rule_reads(rule: PairRule, at: Location, reaching: tuple[str, ...]) -> Iterator[Decision]:
    first, second = (reaching if kind == EVERY else (kind,) for kind in rule.pair)
    both = tuple(dict.fromkeys((*first, *second)))
    for n, same in enumerate(rule.same):
        if isinstance(same, SamePair):
            yield Decision(same.first, (*at, "same", n, "first"), first)
            yield Decision(same.second, (*at, "same", n, "second"), second)
        else:
            yield Decision(same, (*at, "same", n), both)
    for name, time in (("within", rule.within), ("before", rule.before)):
        if time is not None:
            yield Decision(time.field, (*at, name, "field"), both)


# -- in words ----------------------------------------------------------------------------------------------


def text_of(order: Order) -> str:
    """An order in words, to be read behind "the outputs are compared".

    >>> text_of(Barrier.model_validate({"barrier": "night", "inner": {"per_key": ["taxi"]}}))
    'in order per taxi between equal night barriers'
    """
    match order:
        case PerKey(per_key=fields):
            return f"in order per {', '.join(fields)}"
        case ByKey(by_key=fields, inner=inner):
            return f"{text_of(inner)}, for each {', '.join(fields)}"
        case Barrier(barrier=kinds, inner=inner):
            comma = "," if isinstance(inner, (ByKey, Parallel)) else ""
            return f"{text_of(inner)}{comma} between equal {' or '.join(kinds)} barriers"
        case Parallel(parallel=branches):
            parts = [f"{', '.join(branch.kinds)} {text_of(branch.order)}" for branch in branches.values()]
            return f"with {' and '.join(parts)}"
        case Dependent(dependent=rules):
            return "by one rule of order" if len(rules) == 1 else f"by {len(rules)} rules of order"
        case CallableOrder(callable=function):
            return f"in the order that {function} asks for"
    return {"unordered": "in any order", "total": "in one order"}[order]
