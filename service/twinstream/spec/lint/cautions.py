"""Warns of declarations that are allowed but often not meant, each with its consequence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

from twinstream.core.tables.settled import SETTLED_LIMIT
from twinstream.spec.decode.headers import ATTEMPT, BATCH, INPUT, QUERY
from twinstream.spec.file.equality import Equality
from twinstream.spec.file.model import EventKind, Spec
from twinstream.spec.file.orders import EVERY, Barrier, ByKey, CallableOrder, Dependent, Node, nodes
from twinstream.spec.file.paths import holds
from twinstream.spec.file.values import dotted, listed
from twinstream.spec.laws.emits import service_refusal
from twinstream.spec.lint.relations import scope_fields, when


class Note(NamedTuple):
    """A key of the file, with a remark about its value."""

    key: str
    text: str


def cautions(spec: Spec, today: date) -> Iterator[Note]:
    """Every caution about a file, those about the compared events first."""
    yield from chain(_kinds(spec), _order(spec), _equality(spec), _duplicates(spec), _proofs(spec))
    yield from chain(_rows(spec), _clock(spec), _telling(spec))
    yield from chain(_expired(spec, today), _never(spec))


# -- kinds -------------------------------------------------------------------------------------------------


def _kinds(spec: Spec) -> Iterator[Note]:
    kinds = list(spec.kinds.items())
    for place, (name, kind) in enumerate(kinds):
        first = next((other for other, fit in kinds[:place] if _implies(kind, fit)), None)
        if first is not None:
            waits = not kind.ignore and name not in spec.evidence.may_be_absent
            more = ", so the evidence for it never comes" if waits else ""
            yield Note(f"kinds.{name}", f"no event gets this kind, since `{first}` fits first{more}")
    if not spec.compared_kinds:
        yield Note("kinds", "all of them are ignored, so nothing is compared")
    if kinds and all(kind.where for _, kind in kinds):
        yield Note(
            "kinds", "an event that fits none of them is undecodable; add a last kind `{}` for the rest"
        )


def _implies(one: EventKind, other: EventKind) -> bool:
    """Whether every event that fits the first kind fits the other."""
    return all(
        field in one.where and _values(one.where[field]) <= _values(wanted)
        for field, wanted in other.where.items()
    )


def _values(wanted: object) -> set[tuple[bool, object]]:
    """The values that a condition allows; true is not 1."""
    return {(isinstance(value, bool), value) for value in listed(wanted)}


# -- order -------------------------------------------------------------------------------------------------


def _order(spec: Spec) -> Iterator[Note]:
    for node in nodes(spec.order, spec.compared_kinds):
        match node.order:
            case CallableOrder(callable=name):
                problem = f"{name} is called for every unmatched event, so its cost grows with their number"
                yield Note(dotted((*node.at, "callable")), f"{problem}; declare the order where you can")
            case Dependent():
                yield from _unnamed(node, node.order)
    yield from one_partition(spec)


def _unnamed(node: Node, order: Dependent) -> Iterator[Note]:
    """A kind that no rule names was probably forgotten."""
    named = {kind for rule in order.rules for kind in rule.pair}
    for kind in node.kinds:
        if EVERY not in named and kind not in named:
            text = f"no rule names `{kind}`: its events may be reordered with all others"
            yield Note(dotted((*node.at, "dependent")), text)


def one_partition(spec: Spec) -> Iterator[Note]:
    """The places of an order that need topics of one partition, with the reason.

    Events of one key are in one partition, so orders inside a key do not need it.
    """
    needs = "Kafka keeps no order between partitions, so each topic must have exactly one"
    inside: list[tuple[str | int, ...]] = []
    for node in nodes(spec.order, spec.compared_kinds):
        if any(holds(at, node.at) for at in inside):
            continue
        place = dotted(node.at)
        match node.order:
            case "total":
                yield Note(place, f"`total` relates all events, and {needs}")
            case Barrier(copies="one", barrier=kinds):
                names = " and ".join(kinds)
                more = "; or write a copy to each partition, with `copies: per_partition`"
                yield Note(f"{place}.barrier", f"{names} relates events of all keys, and {needs}{more}")
                inside.append(node.at)
            case CallableOrder():
                yield Note(f"{place}.callable", f"a function may relate any two events, and {needs}")
            case Dependent() if any(_related(node)):
                yield Note(f"{place}.dependent", f"rules relate events of different keys, and {needs}")
            case ByKey():
                inside.append(node.at)


def _related(node: Node) -> Iterator[bool]:
    """Whether a kind that has no key depends on anything."""
    for kind in node.kinds:
        if not scope_fields(node.order, kind):
            yield any(when(node.order, kind, other) != "never" for other in node.kinds)


# -- equality ----------------------------------------------------------------------------------------------


def _equality(spec: Spec) -> Iterator[Note]:
    for at, equality in spec.equalities:
        yield from _one_equality(dotted(at), equality, spec)


def _one_equality(place: str, equality: Equality, spec: Spec) -> Iterator[Note]:
    if equality.compare_only == []:
        text = "no field is compared, so all events are equal and only their number and order count"
        yield Note(f"{place}.compare_only", f"{text}; name the fields that must not differ")
    for field, step in equality.quantum.items():
        below, above = (f"{step / 2 + offset:f}" for offset in (-step / 100, step / 100))
        yield Note(
            f"{place}.quantum",
            f"`{field}` is rounded to multiples of {_plain(step)}, so two values that are nearly equal "
            f"may round to different ones: {below} to 0 and {above} to {_plain(step)}",
        )
    for field, name in equality.any_of.items():
        text = (
            f"{name} is called twice for each event. All values of `{field}` that it accepts count as equal, "
            "so a change among them is hidden. It must depend on the event alone: what decides (such as the "
            "input of a reducer) must be in the event"
        )
        yield Note(f"{place}.any_of", text)
    if equality.absent_is_null:
        text = "an absent member equals null, so a change between the two is hidden"
        if fields := sorted(set(spec.order_fields) | set(spec.identity or ())):
            names = " or ".join(f"`{field}`" for field in fields)
            text += f"; an event without {names} counts as one with null there"
        yield Note(f"{place}.absent_is_null", text)


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"


# -- duplicates --------------------------------------------------------------------------------------------


def _duplicates(spec: Spec) -> Iterator[Note]:
    if spec.duplicates.policy == "replays":
        text = (
            f"retries are recognized by the headers {QUERY}, {BATCH} and {ATTEMPT}, which both pipelines "
            "must write; without them, what a retry writes again counts as duplicates"
        )
        if spec.control is None:
            text += "; without `control` a difference in the last batch counts only once the next batch comes"
        yield Note("duplicates.policy", text)
    elif "horizon" in spec.duplicates.model_fields_set:
        yield Note("duplicates.horizon", "applies only to `policy: replays`; `strict` remembers no batches")


# -- rows that replace each other --------------------------------------------------------------------------


def _rows(spec: Spec) -> Iterator[Note]:
    """What it means and costs that rows fold into a table."""
    folding = spec.folding
    if folding is None:
        return
    key = ", ".join(folding.key)
    held = "the latest row of each key that is not settled"
    if folding.settled_by != "watermark":
        held += f", and digests of the last {SETTLED_LIMIT:,} settled keys (250 bytes each)"
    text = f"rows with equal {key} replace each other, and only the last one is compared; memory holds {held}"
    yield Note(f"emits.{folding.name}", text)
    if folding.tells_batches:
        text = (
            f"each row needs the header {BATCH}; tables are compared when both versions have consumed the "
            "same input, so a version that is always ahead or behind is never compared"
        )
        yield Note(f"emits.{folding.name}", text)
    if (problem := service_refusal(spec)) is not None:
        yield Note(f"emits.{folding.name}.settled_by", f"`serve` refuses it: {problem}")
    elif folding.settled_by == "input":
        text = "a key that changes in every batch may stay pending, and then nothing after it is verified"
        yield Note(f"emits.{folding.name}.settled_by", text)


# -- what can be proven, and told --------------------------------------------------------------------------


def _proofs(spec: Spec) -> Iterator[Note]:
    """Orders and clocks with which only time can show that an event is lost."""
    alone = [
        kind
        for kind in spec.compared_kinds
        if all(when(spec.order, kind, other) == "never" for other in spec.compared_kinds)
    ]
    seconds = f"{spec.overdue.after.total_seconds():g} s"
    if spec.folding is not None:
        return  # Rows are handed on when both sides are past them.
    if spec.overdue.clock == "input":
        yield from _unmarked(spec)
    elif spec.overdue.proves:
        text = f"an event that is {seconds} overdue counts as lost: true only where both pipelines keep up"
        yield Note("overdue.proves", text)
    elif alone:
        names = ", ".join(f"`{kind}`" for kind in alone)
        text = (
            f"events of {names} depend on nothing, so only time can show that one is lost: "
            f"after {seconds} it makes the verdict INCONCLUSIVE, not DIVERGED"
        )
        yield Note("overdue.proves", text)


def _unmarked(spec: Spec) -> Iterator[Note]:
    """Events that the clock of the input cannot judge."""
    window_end = spec.overdue.window_end
    text = f"an event with neither the header {INPUT} nor a time in `{window_end}` is never overdue"
    if window_end is None:
        text = (
            f"an event without the header {INPUT} is never overdue; where events are aggregates, name the "
            "field with the end of their window"
        )
    yield Note("overdue.window_end", text)


def _clock(spec: Spec) -> Iterator[Note]:
    """Keys that belong to another clock."""
    if spec.control is not None and spec.followed is None:
        uses = (
            "`overdue: {clock: input}`, `start: {at: input}`, `duplicates: {policy: replays}` and the checks "
            "of `closed_windows` and `watermark`"
        )
        yield Note("control", f"is used only for {uses}, and this file has none of them")
    if spec.start.at == "input":
        text = (
            f"an event without the header {INPUT} lies neither before nor after it, and ends the comparison"
        )
        yield Note("start.at", f"{text}; ignore the kinds of aggregates")
    for key in ("max_jump", "idle_after"):
        if key in spec.overdue.model_fields_set and spec.overdue.clock != "event_time":
            text = f"applies only to `clock: event_time`, not to `clock: {spec.overdue.clock}`"
            yield Note(f"overdue.{key}", text)


def _telling(spec: Spec) -> Iterator[Note]:
    if spec.named_by is None:
        text = "without it a changed event is reported as one that is missing and one that is extra"
        if _tolerates(spec):
            text += ", unless only numbers with a `tolerance` changed"
        yield Note("identity", text)
    if not spec.show:
        yield Note("show", "is empty, so the service masks every value; `check` shows all")
    for at, decode in spec.decodes:
        if decode.tombstones == "ignore":
            text = "records without a value are ignored, so a lost deletion is not found"
            yield Note(dotted((*at, "tombstones")), text)


def _tolerates(spec: Spec) -> bool:
    """Whether two events may be partners that differ in a number only: that is a change without identity."""
    return any(equality.tolerance for _, equality in spec.equalities)


def _never(spec: Spec) -> Iterator[Note]:
    """Declarations that can never take effect."""
    if not spec.gate.max_staleness:
        text = "is 0, and verified data is always a little older, so no gate ever passes"
        yield Note("gate.max_staleness", text)
    for known in spec.known_differences:
        if known.when.divergences == ["changed"] and spec.named_by is None and not _tolerates(spec):
            text = "explains only `changed`, and without `identity` no difference is of that kind"
            yield Note(f"known_differences.{known.id}", text)


def _expired(spec: Spec, today: date) -> Iterator[Note]:
    for known in spec.known_differences:
        if known.expires <= today:
            text = f"expired on {known.expires}, so it no longer explains anything"
            yield Note(f"known_differences.{known.id}", text)
