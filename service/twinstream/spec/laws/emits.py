"""The laws of `emits`: nothing else in the file contradicts that rows replace each other.

Rows fold into a table before they are compared (see `core.tables`). So the order may not relate rows of
different keys, since a table has no order; and no declaration may need rows that were replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinstream.spec.file.emits import Folding
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Barrier, PerKey
from twinstream.spec.file.values import Breach, Location, dotted


def emits_laws(spec: Spec) -> Iterator[Breach]:
    """The breaches of a file whose rows replace each other."""
    folding = spec.folding
    if folding is None:
        return
    yield from _order(spec, folding)
    yield from _rows(spec, folding)
    yield from _clock(spec, folding)
    yield from _intermediate(spec, folding)
    yield from _once(spec, folding)
    for at, what in _unfit(spec, folding):
        yield Breach(at, f"with `emits` {what}")


def _order(spec: Spec, folding: Folding) -> Iterator[Breach]:
    """Rows of different keys are independent, but for barriers around them all."""
    at: Location = ("order",)
    order = spec.order
    barrier = isinstance(order, Barrier)
    if isinstance(order, Barrier):
        order, at = order.inner, ("order", "inner")
    key = ", ".join(folding.key)
    by_key = isinstance(order, PerKey) and sorted(order.per_key) == sorted(folding.key)
    if order != "unordered" and not by_key:
        problem = (
            "a table has no order between its keys: with `emits` write `unordered`, or "
            f"`{{per_key: [{key}]}}`, or an outermost barrier with one of these inside"
        )
        yield Breach(at, problem)
    if barrier != (folding.settled_by == "barrier"):
        place = ("emits", folding.name, "settled_by")
        problem = (
            "`barrier` needs an order whose outermost form is a barrier"
            if not barrier
            else f"with a barrier in `order` only `barrier` tells which rows lie before it; the "
            f"{folding.settled_by} does not"
        )
        yield Breach(place, problem)


def _rows(spec: Spec, folding: Folding) -> Iterator[Breach]:
    """The rows are of one kind, and named by their key."""
    if len(spec.row_kinds) != 1:
        named = ", ".join(f"`{kind}`" for kind in spec.row_kinds) or "none"
        problem = (
            f"rows of one kind replace each other, and beside barriers the file compares {named}; leave one "
            "kind, and give the others `ignore: true`"
        )
        yield Breach(("kinds",), problem)
    if spec.identity is not None and sorted(spec.identity) != sorted(folding.key):
        key = ", ".join(folding.key)
        yield Breach(("identity",), f"a row is about its key ({key}); leave `identity` out")


def _clock(spec: Spec, folding: Folding) -> Iterator[Breach]:
    """A row that is final goes to matching late, so only a clock that knows of it can find it overdue."""
    if spec.overdue.clock == "event_time":
        problem = (
            "the time of a row says nothing about when it is final; write `input`, or leave `overdue` out"
        )
        yield Breach(("overdue", "clock"), problem)
    if spec.overdue.proves:
        problem = "a row waits for later ones, so its age proves nothing; leave `proves` out"
        yield Breach(("overdue", "proves"), problem)
    window_end = spec.overdue.window_end
    if window_end is not None and window_end != folding.window_end:
        wanted = folding.window_end
        problem = (
            f"must be `{wanted}`, the field of `settled_by`"
            if wanted
            else "is for rows that the watermark settles, and these are settled by the "
            f"{folding.settled_by}; leave it out"
        )
        yield Breach(("overdue", "window_end"), problem)


def _intermediate(spec: Spec, folding: Folding) -> Iterator[Breach]:
    """What is asked of intermediate rows can be told of them."""
    asked, at = folding.intermediate, ("emits", folding.name, "intermediate")
    if asked is None:
        return
    for n, field in enumerate(asked.monotone or ()):
        if field in folding.key:
            problem = f"`{field}` is a field of the key, and the same in all rows of a key; leave it out"
            yield Breach((*at, "monotone", n), problem)
    if asked.final_after_settled:
        for problem in _final(spec, folding):
            yield Breach((*at, "final_after_settled"), problem)


def _final(spec: Spec, folding: Folding) -> Iterator[str]:
    """Why nothing tells that a row comes after its key was settled for good."""
    if folding.name == "complete":
        yield "a table is whole again with each batch, and no key of it is settled for good; leave this out"
    elif folding.settled_by == "input":
        yield (
            "the `input` settles what a key is after so much input, and more input may change it; settle it "
            "by `watermark` or `barrier`, or leave this out"
        )
    if folding.settled_by == "watermark" and spec.control is None:
        yield "needs `control`, the topic on which both versions report their watermarks"
    if folding.settled_by == "barrier" and any(equality.tolerance for _, equality in spec.equalities):
        yield "what was settled is remembered as digests, which show no closeness; write `quantum`"


def _once(spec: Spec, folding: Folding) -> Iterator[Breach]:
    """A second row of a key is what update mode is about."""
    problem = "with `emits` a key has a row for each of its changes; leave `once` out"
    if folding.name == "upsert" and folding.settled_by != "input":
        problem += ", or write `emits.upsert.intermediate: {final_after_settled: true}`"
    for n, check in enumerate(spec.checks):
        if check.once is not None:
            yield Breach(("checks", n, "once"), problem)


def _unfit(spec: Spec, folding: Folding) -> Iterator[tuple[Location, str]]:
    """What needs each row by itself, or rows that are not held."""
    if spec.duplicates.policy == "replays":
        yield ("duplicates", "policy"), "a row that a retry writes again replaces itself; write `strict`"
    if spec.start.at != "earliest":
        yield ("start", "at"), "a table is made of all its rows; write `earliest`"
    if spec.keep == "hashes":
        yield ("keep",), "the key of a row is read from its record; leave `keep` out"
    for at, decode in spec.decodes:
        if decode.tombstones == "ignore":
            yield (*at, "tombstones"), "a record without a value deletes a row; leave `tombstones` out"
    for decision in spec.decisions:
        if decision.field.startswith("$"):
            what = f"only fields of the value may decide, and `{decision.field}` is none; name one"
            yield decision.at, what
    for at, equality in spec.equalities:
        if equality.tolerance and folding.settled_by == "input":
            what = "a table is remembered as digests, which show no closeness; write `quantum`"
            yield (*at, "tolerance"), what


def service_refusal(spec: Spec) -> str | None:
    """Why a running comparison cannot tell when rows are final; recorded input has an end."""
    folding = spec.folding
    if folding is None or folding.settled_by == "barrier":
        return None
    place = dotted(("emits", folding.name, "settled_by"))
    window_end = folding.window_end
    wanted = "clock: input" if window_end is None else f"clock: input, window_end: {window_end}"
    if spec.overdue.clock == "input" and spec.overdue.window_end == window_end:
        return None
    return (
        f"`{place}` needs the progress that both versions report: write "
        f"`control: TOPIC` and `overdue: {{{wanted}}}`"
    )
