"""Small named examples: events in words, two streams of them through `check`, and what it found.

A word is an event: ``r7`` is ``{"type": "r", "n": 7}``, ``E`` is ``{"type": "E"}``; ``r7@x`` has the key
``{"k": "x"}`` besides, and ``r7@x=3`` the value ``{"v": 3}``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any

from tests.support.orders import spec_of
from tests.support.streams import LEFT, RIGHT, record
from twinstream.core.events import Side
from twinstream.offline.check import check
from twinstream.ports import Line

INTERLEAVINGS = ("alternate", "reference-first", "candidate-first")

Event = dict[str, Any]
Events = str | Sequence[Event]


def events(given: Events) -> list[Event]:
    """The events of some words; events are what they are.

    >>> events("E r7 r8@x=3")
    [{'type': 'E'}, {'type': 'r', 'n': 7}, {'type': 'r', 'n': 8, 'k': 'x', 'v': 3}]
    """
    return [_event(word) for word in given.split()] if isinstance(given, str) else list(given)


def _event(word: str) -> Event:
    match = re.fullmatch(r"([A-Za-z_]+)(\d*)(?:@(\w+))?(?:=(\d+))?", word)
    assert match, f"{word!r} is no event"
    kind, number, key, value = match.groups()
    members = {"n": number and int(number), "k": key, "v": value and int(value)}
    return {"type": kind, **{name: member for name, member in members.items() if member not in (None, "")}}


def in_words(event: Event) -> str:
    """The word of an event.

    >>> in_words({'type': 'r', 'n': 8, 'k': 'x', 'v': 3})
    'r8@x=3'
    """
    parts = (("", "n"), ("@", "k"), ("=", "v"))
    return event["type"] + "".join(f"{mark}{event[name]}" for mark, name in parts if name in event)


def lines(reference: Events, candidate: Events, interleave: str = "alternate") -> Iterator[Line]:
    """The lines of two streams, in the order in which `check` would read two files."""
    sides = [
        [(side, event) for event in events(given)] for side, given in ((LEFT, reference), (RIGHT, candidate))
    ]
    if interleave == "candidate-first":
        sides.reverse()
    turns = zip_longest(*sides) if interleave == "alternate" else sides
    offsets = {LEFT: 0, RIGHT: 0}
    for number, (side, event) in enumerate(filter(None, chain.from_iterable(turns)), 1):
        yield line(side, event, offsets[side], number)
        offsets[side] += 1


def line(side: Side, event: Event | None, offset: int, number: int, partition: int = 0) -> Line:
    """One line of a trace; without an event, the end of its side."""
    content = None if event is None else record(event)
    return Line(side, content, partition, offset, 0, "trace", number, number)


def compare(
    order: Any,
    reference: Events,
    candidate: Events,
    interleave: str = "alternate",
    *,
    open_ended: bool = False,
    kinds: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """What `check` answers. `more` are keys of the comparison file; `open_ended` leaves the sides open.

    `kinds` are those of the file, else each type that occurs is one.
    """
    types = {event["type"] for stream in (reference, candidate) for event in events(stream)}
    spec = spec_of(order, kinds or sorted(types), **more)
    answer = check(spec, lines(reference, candidate, interleave), open_ended=open_ended)
    for side in ("reference", "candidate"):
        accounts = dict(answer["accounts"][side])
        assert accounts.pop("consumed") == sum(accounts.values())
    return answer


def differences(answer: dict[str, Any]) -> dict[str, int]:
    """How many differences of each kind, without those of which there are none."""
    return {kind: count for kind, count in answer["divergences"]["by_kind"].items() if count}


def found(answer: dict[str, Any]) -> Counter[str]:
    """Each difference as kind and event: ``missing r7``, ``changed r7=1 r7=2``."""
    return Counter(
        " ".join(
            [example["kind"], *dict.fromkeys(in_words(example[side]) for side in _SIDES if example[side])]
        )
        for example in answer["examples"]
    )


_SIDES = ("reference", "candidate")
