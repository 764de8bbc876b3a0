"""Random streams to compare under random orders.

A `World` is two streams as they come. They are drawn from a handful of different events, so that equal ones
are frequent, and written in one line: ``L:a/k=1/v=0 R:a/k=1/v=0~2 L:.``, in style 0 or the one behind ``~``.
What a failure prints builds it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.support.orders import KINDS, NO_KINDS, Event, Order, dependent, events, orders, spec_of
from tests.support.streams import LEFT, RIGHT, Batch, Driver, record
from twinstream.core.events import Side

NOISE = "noise"
STEP_MS = 10_000
"""A field that an equality may ignore."""


class Step(NamedTuple):
    """An event of a side in one style of writing, or (None) the end of that side."""

    side: Side
    event: Event | None
    style: int = 0


@dataclass(frozen=True)
class World:
    """Two streams as they come, and the order that they are compared under.

    `ignoring`: they are compared but for the field `noise`. `kinds` are those that the file declares.
    """

    order: Order
    steps: tuple[Step, ...]
    ignoring: bool = False
    kinds: tuple[str, ...] = KINDS

    def __repr__(self) -> str:
        """What builds it again, in one line."""
        more = f"ignoring={self.ignoring}, kinds={self.kinds}"
        return f"world({json.dumps(self.order)!r}, {line(self.steps)!r}, {more})"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Hypothesis prints a failure in this form."""
        printer.text(repr(self))

    def dependent(self, a: Event, b: Event) -> bool:
        return dependent(self.order, a, b)

    def letter(self, event: Event) -> frozenset[tuple[str, Any]]:
        """What is compared of an event."""
        return frozenset(
            (name, value) for name, value in event.items() if not (self.ignoring and name == NOISE)
        )

    def equal(self, a: Event, b: Event) -> bool:
        return self.letter(a) == self.letter(b)

    def events(self, side: Side) -> list[Event]:
        return [step.event for step in self.steps if step.side is side and step.event is not None]

    def swapped(self) -> World:
        """The same with the sides exchanged."""
        return replace(self, steps=tuple(step._replace(side=step.side.other) for step in self.steps))

    def driver(self, order: Order | None = None, **more: Any) -> Driver:
        """A comparison of these streams, not fed yet; under their order, or another that means the same.

        `more` are further keys of its file.
        """
        if self.ignoring:
            more["equality"] = {"ignore": [NOISE]}
        return Driver(spec_of(self.order if order is None else order, self.kinds, **more))

    def batches(self, cuts: Sequence[bool] = (True,)) -> list[Batch]:
        """Runs of one side as batches, cut further where `cuts` (repeated) says so. A step takes 10 s."""
        runs: list[list[tuple[int, Step]]] = []
        for place, step in enumerate(self.steps):
            before = runs[-1][-1][1] if runs else None
            apart = before is None or before.side is not step.side or None in (before.event, step.event)
            if apart or cuts[place % len(cuts)]:
                runs.append([])
            runs[-1].append((place, step))
        return [
            Batch(
                run[0][1].side,
                [record(step.event, step.style) for _, step in run if step.event is not None],
                [place * STEP_MS for place, _ in run],
            )
            for run in runs
        ]


def line(steps: Iterable[Step]) -> str:
    """Steps in one line, each a word."""
    return " ".join(
        f"{'LR'[side]}:{_word(event)}" + (f"~{style}" if style else "") for side, event, style in steps
    )


def _word(event: Event | None) -> str:
    if event is None:
        return "."
    return "/".join([event["type"], *(f"{name}={value}" for name, value in event.items() if name != "type")])


def world(order: str, text: str, *, ignoring: bool = False, kinds: tuple[str, ...] = KINDS) -> World:
    """The world that a failure prints.

    >>> world('"total"', 'L:a/k=1 R:.').steps[0].event
    {'type': 'a', 'k': 1}
    """
    steps = []
    for word in text.split():
        side, _, rest = word.partition(":")
        event, _, style = rest.partition("~")
        known = None if event == "." else event_of(event)
        steps.append(Step(LEFT if side == "L" else RIGHT, known, int(style or 0)))
    return World(json.loads(order), tuple(steps), ignoring, kinds)


def event_of(word: str) -> Event:
    """An event from its word."""
    kind, *members = word.split("/")
    pairs = (member.partition("=") for member in members)
    return {"type": kind, **{name: json.loads(value) for name, _, value in pairs}}


@st.composite
def worlds(
    draw: st.DrawFn,
    most: int = 12,
    among: Sequence[Order] = (),
    faults: int = 2,
    ordered: Callable[[Sequence[str]], st.SearchStrategy[Order]] = orders,
) -> World:
    """Streams of which one is the other, reordered as allowed, with up to so many faults; interleaved.

    Their order is one of those that are named, or any that is `ordered` for their kinds.
    """
    kinds = draw(st.sampled_from([KINDS, KINDS, KINDS, NO_KINDS]))
    tree = draw(st.sampled_from(among) if among else ordered(kinds))
    ignoring, lean = draw(st.booleans()), draw(st.booleans())
    pool = draw(st.lists(events(tree, kinds, lean=lean), min_size=1, max_size=6, unique_by=_word))
    size = draw(st.integers(0, most))
    left = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    right = draw(reorderings(tree, left))
    for _ in range(draw(st.integers(0, faults))):
        right = draw(faulty(tree, right, pool))
    steps = draw(interleavings(left, right))
    if ignoring:
        steps = [
            step._replace(event={**step.event, NOISE: draw(st.integers(0, 9))}) if step.event else step
            for step in steps
        ]
    return World(tree, tuple(steps), ignoring, kinds)


@st.composite
def reorderings(draw: st.DrawFn, order: Order, stream: list[Event]) -> list[Event]:
    """The same events in another order that is allowed."""
    rest, found = list(stream), []
    while rest:
        free = [
            place
            for place, event in enumerate(rest)
            if not any(dependent(order, event, earlier) for earlier in rest[:place])
        ]
        found.append(rest.pop(draw(st.sampled_from(free))))
    return found


@st.composite
def faulty(draw: st.DrawFn, order: Order, stream: list[Event], pool: list[Event]) -> list[Event]:
    """The same stream with one thing wrong."""
    place = draw(st.integers(0, max(0, len(stream) - 1)))
    here, rest = stream[place : place + 1], stream[place + 1 :]
    head, fault = stream[:place], draw(st.sampled_from(["drop", "copy", "insert", "move", "change"]))
    if fault == "drop":
        return head + rest
    if fault == "copy":
        return head + here * 2 + rest
    if fault == "insert":
        return [*head, draw(st.sampled_from(pool)), *here, *rest]
    if fault == "change":
        return [*head, *({**event, "v": event["v"] + 1} for event in here), *rest]
    later = [to for to, event in enumerate(rest, 1) if here and dependent(order, here[0], event)]
    to = draw(st.sampled_from(later)) if later else 0
    return [*head, *rest[:to], *here, *rest[to:]]


@st.composite
def interleavings(draw: st.DrawFn, left: list[Event], right: list[Event]) -> list[Step]:
    """Both streams as one, each with its end or open."""
    queues: dict[Side, list[Event | None]] = {LEFT: [*left], RIGHT: [*right]}
    for queue in queues.values():
        queue.extend([None] * draw(st.booleans()))
    steps = []
    while rest := [side for side in Side if queues[side]]:
        side = draw(st.sampled_from(rest))
        steps.append(Step(side, queues[side].pop(0), draw(st.integers(0, 3))))
    return steps
