"""Explains why two events may not change places, from the declared order.

Matching asks only whether two events are dependent. People ask why, and about kinds rather than events:
`links` gives every way in which the declared order makes events of two kinds dependent, `condition` says when
a link applies, and `why` explains it for two events.

Rules of this file:

- The first and second kind of a link are those asked for, whichever way the file names them.
- Links decide no match: a test checks that they agree with matching.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from twinstream.errors import DecodeError
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.codec.routes import exact_time
from twinstream.spec.file.model import DEFAULT_KIND
from twinstream.spec.file.orders import (
    EVERY,
    Barrier,
    ByKey,
    CallableOrder,
    Dependent,
    Order,
    PairRule,
    PerKey,
    Within,
    reached_by,
)

Fields = Mapping[str, Any]
"""The fields that the order reads from one event, with their values."""
Pairs = tuple[tuple[str, str], ...]
"""Fields that must be equal: one of the first event, one of the second."""


@dataclass(frozen=True)
class Link:
    """One way in which an event of the `first` kind and one of the `second` are dependent.

    All of `same` (a field of the first, a field of the second) must be equal, and the times must satisfy
    `within`, or `before`: the field, the kind of the smaller time and that of the other. `barrier` is the
    kind that is one, `function` the name of the user's.
    """

    first: str
    second: str
    form: Literal["sequence", "barrier", "rule", "function"]
    same: Pairs = ()
    within: Within | None = None
    before: tuple[str, str, str] | None = None
    barrier: str = ""
    function: str = ""

    @property
    def always(self) -> bool:
        """Whether all events of the two kinds are dependent."""
        return not (self.same or self.within or self.before or self.function)


def links(order: Order, first: str, second: str) -> Iterator[Link]:
    """Every way in which events of two kinds are dependent; none where they may always change places.

    >>> order = Barrier.model_validate({"barrier": "night", "inner": {"per_key": ["taxi"]}})
    >>> [condition(link) for link in links(order, "ride", "ride")], list(links("unordered", "a", "b"))
    (['taxi equal'], [])
    """
    keys: Pairs = ()
    for form in reached_by(order, first, second):
        match form:
            case "total":
                yield Link(first, second, "sequence", same=keys)
            case PerKey(per_key=fields):
                yield Link(first, second, "sequence", same=(*keys, *_alike(fields)))
            case ByKey(by_key=fields):
                keys += _alike(fields)
            case Barrier(barrier=barriers) if first in barriers or second in barriers:
                barrier = first if first in barriers else second
                yield Link(first, second, "barrier", same=keys, barrier=barrier)
            case Dependent(rules=rules):
                for rule in rules:
                    yield from _rule_links(rule, first, second, keys)
            case CallableOrder(callable=name):
                yield Link(first, second, "function", same=keys, function=name)


def _alike(fields: Sequence[str]) -> Pairs:
    return tuple((field, field) for field in fields)


def _rule_links(rule: PairRule, first: str, second: str, keys: Pairs) -> Iterator[Link]:
    """The link of a rule, if it applies to these kinds, in the way in which they are asked for."""
    turned = not _names(rule.pair, first, second)
    if turned and not _names(rule.pair, second, first):
        return
    link = Link(first, second, "rule")
    if EVERY in rule.pair:
        named = [kind for kind in rule.pair if kind != EVERY]
        link = Link(first, second, "barrier", barrier=named[0]) if named else Link(first, second, "sequence")
    yield replace(
        link,
        same=(*keys, *((there, here) if turned else (here, there) for here, there in rule.pairs)),
        within=rule.within,
        before=None if rule.before is None else (rule.before.field, *rule.pair),
    )


def _names(pair: tuple[str, str], first: str, second: str) -> bool:
    return pair[0] in {first, EVERY} and pair[1] in {second, EVERY}


# -- of kinds ----------------------------------------------------------------------------------------------


def condition(link: Link) -> str:
    """When events of the two kinds are dependent by a link, in a few words.

    >>> same, before = (("user", "user_id"),), ("ts", "order", "payment")
    >>> condition(Link("order", "payment", "rule", same=same, before=before))
    'order.user = payment.user_id and order.ts < payment.ts'
    """
    parts = [_equal(link, here, there) for here, there in link.same]
    if link.within is not None:
        field = link.within.field
        parts.append(f"|{field} - {field}| < {link.within.less_than}")
    if link.before is not None:
        field, earlier, later = link.before
        parts.append(f"{earlier}.{field} < {later}.{field}")
    if link.function:
        parts.append(f"{link.function} says so")
    return " and ".join(parts) or "always"


def _equal(link: Link, here: str, there: str) -> str:
    return f"{here} equal" if here == there else f"{link.first}.{here} = {link.second}.{there}"


def when(order: Order, first: str, second: str) -> str:
    """When events of two kinds are dependent: `never`, `always`, or a condition.

    >>> when("unordered", "ride", "ride"), when("total", "ride", "ride")
    ('never', 'always')
    """
    found = list(links(order, first, second))
    if any(link.always for link in found):
        return "always"
    return " or ".join(dict.fromkeys(map(condition, found))) or "never"


def scope_fields(order: Order, kind: str) -> tuple[str, ...]:
    """The key of a kind: the fields such that events that differ in one never depend on each other.

    >>> scope_fields(PerKey.model_validate({"per_key": ["taxi"]}), "ride")
    ('taxi',)
    """
    found: list[str] = []
    for form in reached_by(order, kind):
        match form:
            case PerKey(per_key=fields) | ByKey(by_key=fields):
                found += fields
            case Dependent(rules=rules):
                asked = [rule.alike for rule in rules if {kind, EVERY} & set(rule.pair)]
                found += [field for field in asked[0] if all(field in one for one in asked)] if asked else []
    return tuple(dict.fromkeys(found))


# -- of two events -----------------------------------------------------------------------------------------


def holds(link: Link, first: Fields, second: Fields) -> bool:
    """Whether two events with these fields are dependent by a link, as far as fields can tell."""
    try:
        return all(
            canonical_value(first[here]) == canonical_value(second[there]) for here, there in link.same
        ) and _times_hold(link, first, second)
    except (KeyError, DecodeError):
        return False


def _times_hold(link: Link, first: Fields, second: Fields) -> bool:
    if link.within is not None:
        field = link.within.field
        apart, limit = exact_time(first[field]) - exact_time(second[field]), exact_time(link.within.less_than)
        return -limit < apart < limit
    if link.before is not None:
        field, earlier, _ = link.before
        times = exact_time(first[field]), exact_time(second[field])
        return times[0] < times[1] if earlier == link.first else times[1] < times[0]
    return True


class Reason(NamedTuple):
    """Why two events must keep their order: a sentence without its stop.

    `is_law` if the sentence itself says that they must; else it says what the two have in common.
    """

    text: str
    is_law: bool

    def so(self, conclusion: str) -> str:
        """The whole sentence, with what follows from the reason."""
        return f"{self.text}, so {conclusion}."


def why(
    order: Order, first: str, second: str, first_fields: Fields, second_fields: Fields, shown: Fields
) -> Reason:
    """Why two events must keep their order.

    The kinds and fields of both tell which link holds. `shown` has the fields of the first whose values may
    be shown, as texts.

    >>> order = PerKey.model_validate({"per_key": ["taxi"]})
    >>> why(order, "ride", "ride", {"taxi": 7}, {"taxi": 7}, {"taxi": "7"}).text
    'Both belong to taxi 7'
    >>> order = ByKey.model_validate({"by_key": ["taxi"], "inner": order})
    >>> why(order, "ride", "ride", {"taxi": 7}, {"taxi": 7}, {"taxi": "7"}).text
    'Both belong to taxi 7'
    """
    found = list(links(order, first, second))
    holding = [link for link in found if holds(link, first_fields, second_fields)] or found
    if not holding:
        return Reason("The declared order relates them", is_law=False)
    link = holding[0]
    conditions = [*_same_texts(link, shown), *_time_texts(link)]
    is_law = bool(link.function) or link.form == "barrier" or not conditions
    if link.function:
        conditions.append(f"`{link.function}` says that their order matters")
    elif is_law:
        conditions.append(_law(link))
    text = " and ".join(conditions)
    return Reason(text if text.startswith("`") else text[0].upper() + text[1:], is_law)


def _same_texts(link: Link, shown: Fields) -> Iterator[str]:
    alike = list(dict.fromkeys(here for here, there in link.same if here == there))  # Orders may nest.
    if alike and all(field in shown for field in alike):
        yield f"both belong to {', '.join(f'{field} {shown[field]}' for field in alike)}"
    elif alike:
        yield f"both have the same {' and '.join(alike)}"
    for here, there in link.same:
        if here != there:
            value = f" ({shown[here]})" if here in shown else ""
            yield f"the {here} of the {link.first} is the {there} of the {link.second}{value}"


def _time_texts(link: Link) -> Iterator[str]:
    if link.within is not None:
        yield f"their {link.within.field} differ by less than {link.within.less_than}"
    if link.before is not None:
        field, earlier, later = link.before
        yield f"the {field} of the {earlier} is smaller than that of the {later}"


def _law(link: Link) -> str:
    """The rule that the order states, in terms of the kinds."""
    if link.form == "sequence":
        return "all events must keep their order"
    if link.form == "barrier":
        return f"no event may move across {one_of(link.barrier)}"
    if link.first == link.second:
        return f"all {_plural(link.first)} must keep their order"
    return f"events of kinds {link.first} and {link.second} must keep their order"


def one_of(kind: str) -> str:
    """An event of a kind, in words.

    >>> one_of("ride"), one_of("end_of_day"), one_of("event")
    ('a ride event', 'an end_of_day event', 'an event')
    """
    if kind == DEFAULT_KIND:
        return "an event"
    return f"{'an' if kind[:1] in set('aeiou') else 'a'} {kind} event"


def _plural(kind: str) -> str:
    return "events" if kind == DEFAULT_KIND else f"{kind} events"
