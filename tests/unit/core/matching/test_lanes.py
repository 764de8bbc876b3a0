from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from twinstream.core.diagnosis.scope import Scope
from twinstream.core.events import Canonical, Event, Form, Side
from twinstream.core.matching.bags import Bags
from twinstream.core.matching.index import Hooks, Index
from twinstream.core.matching.lanes import LanesIndex, Queue
from twinstream.core.order import Lanes, Order
from twinstream.core.rules import Rules

LEFT, RIGHT = Side
BAG = b"bag"


def event(lane: str | bytes, content: bytes = b"x", offset: int = 0, at_ms: int = 0) -> Event:
    return Event(Form(lane, content, "event", content), 0, offset, at_ms, 0.0)


class Opened(list[Scope]):
    """The scopes that an index opened."""

    def open(self, owner: Index, order: Order, depth: int) -> Scope:
        self.append(Scope(owner, order, depth, Rules(canonical=bytes, order=order)))
        return self[-1]

    def met(self, index: Index) -> None:
        raise AssertionError(f"{index} has no barriers")

    def absorb(self, _whole: Scope, part: Scope) -> None:
        self.remove(part)


def no_return(side: Side, events: Sequence[Event]) -> None:
    raise AssertionError(f"no scope was lost, and yet {events} of {side} came back")


def lanes_over(opened: Opened, canonical: Canonical = bytes) -> LanesIndex:
    def equal(one: Event, another: Event) -> bool:
        return canonical(one[0][1]) == canonical(another[0][1])

    bags = None if canonical is bytes else Bags(equal)
    hooks = Hooks(
        canonical, equal, opened.open, opened.remove, opened.met, opened.absorb, no_return, 100, bags
    )
    return LanesIndex(Lanes(), hooks, 0)


@pytest.fixture
def lanes() -> LanesIndex:
    return lanes_over(Opened())


def test_a_single_waiting_event_is_held_without_a_queue(lanes: LanesIndex) -> None:
    lanes.feed(LEFT, [event("a")])
    assert isinstance(lanes.held[LEFT]["a"], Event)


def test_a_lane_remembers_since_when_it_was_not_empty_though_its_first_is_gone(
    lanes: LanesIndex,
) -> None:
    lanes.feed(LEFT, [event("a", at_ms=10), event("a", at_ms=50)])
    lanes.feed(RIGHT, [event("a")])
    assert [since for _, since in lanes.unmatched(LEFT)] == [10]


def test_a_restored_lane_remembers_it_too_even_with_one_event(lanes: LanesIndex) -> None:
    lanes.restore(LEFT, event("a", at_ms=50), "a", 10)
    assert [since for _, since in lanes.unmatched(LEFT)] == [10]
    lanes.feed(LEFT, [event("a", at_ms=60)])
    lanes.feed(RIGHT, [event("a")])
    assert [(waiting[3], since) for waiting, since in lanes.unmatched(LEFT)] == [(60, 10)]


def test_a_lane_that_is_restored_copy_by_copy_waits_since_its_first(lanes: LanesIndex) -> None:
    for at_ms in (10, 50, 60):
        lanes.restore(LEFT, event("a", at_ms=at_ms), "a", at_ms)
    assert {since for _, since in lanes.unmatched(LEFT)} == {10}


def test_an_emptied_lane_begins_anew(lanes: LanesIndex) -> None:
    lanes.feed(LEFT, [event("a", at_ms=10)])
    lanes.feed(RIGHT, [event("a")])
    lanes.feed(LEFT, [event("a", at_ms=50)])
    assert [since for _, since in lanes.unmatched(LEFT)] == [50]


def test_a_queue_is_held_where_several_wait(lanes: LanesIndex) -> None:
    lanes.feed(LEFT, [event("a", offset=0), event("b", offset=1), event("a", offset=2)])
    assert isinstance(lanes.held[LEFT]["a"], Queue)


class Counted(dict[Any, Any]):
    """A dictionary that counts what is read of it."""

    reads = 0

    def get(self, key: Any, default: Any = None) -> Any:
        self.reads += 1
        return super().get(key, default)

    def values(self) -> Any:
        self.reads += len(self)
        return super().values()

    def __iter__(self) -> Iterator[Any]:
        self.reads += len(self)
        return super().__iter__()


def _chains(lanes: LanesIndex) -> list[tuple[int, list[int]]]:
    """The chains of the left: since when, and the offsets of the copies."""
    return [(since_ms, [copy[2] for copy in copies]) for since_ms, copies in lanes.chains(LEFT)]


def _copies(lanes: LanesIndex, lane: str | bytes, *offsets: int) -> None:
    lanes.feed(LEFT, [event(lane, offset=offset, at_ms=offset) for offset in offsets])


def test_copies_wait_as_a_chain_when_the_oldest_has_left(lanes: LanesIndex) -> None:
    _copies(lanes, BAG, 1, 2, 3)
    assert _chains(lanes) == []
    lanes.feed(RIGHT, [event(BAG)])
    assert _chains(lanes) == _chains(lanes) == [(1, [2, 3])]
    lanes.feed(RIGHT, [event(BAG)] * 2)
    assert _chains(lanes) == []
    _copies(lanes, BAG, 4)
    assert _chains(lanes) == []


def test_copies_below_a_key_are_a_chain_too() -> None:
    lane = ("key", BAG)
    lanes = LanesIndex(Lanes(), lanes_over(Opened())._hooks, 1)
    lanes.feed(LEFT, [Event(Form(lane, b"x", "event", b"x"), 0, at, at, 0.0) for at in (1, 2)])
    lanes.feed(RIGHT, [Event(Form(lane, b"x", "event", b"x"), 0, 0, 0, 0.0)])
    assert _chains(lanes) == [(1, [2])]


def test_a_lane_that_is_a_sequence_is_no_chain_whatever_lanes_are_beside_it(lanes: LanesIndex) -> None:
    _copies(lanes, "sequence", 1, 2)
    _copies(lanes, BAG, 3, 4)
    lanes.feed(RIGHT, [event("sequence"), event(BAG)])
    assert _chains(lanes) == [(3, [4])]


def test_a_chain_of_which_the_waiting_copies_are_dropped_is_none(lanes: LanesIndex) -> None:
    first, second, third = (event(BAG, offset=offset, at_ms=offset) for offset in (1, 2, 3))
    lanes.feed(LEFT, [first, second, third])
    lanes.feed(RIGHT, [event(BAG)])
    lanes.remove(LEFT, [second])
    assert _chains(lanes) == []
    lanes.remove(LEFT, [third])
    assert _chains(lanes) == []


def test_a_chain_that_is_restored_is_one(lanes: LanesIndex) -> None:
    lanes.restore(LEFT, event(BAG, offset=5, at_ms=5), BAG, 2)
    lanes.restore(LEFT, event(BAG, offset=6, at_ms=6), BAG, 2)
    assert _chains(lanes) == [(2, [5, 6])]


def test_what_waits_alone_is_not_looked_at_for_chains(lanes: LanesIndex) -> None:
    counted = Counted()
    lanes.held = (counted, lanes.held[RIGHT])
    _copies(lanes, BAG, 1, 2)
    lanes.feed(LEFT, [event(b"alone %d" % number) for number in range(10_000)])
    lanes.feed(RIGHT, [event(BAG)])
    counted.reads = 0
    assert _chains(lanes) == [(1, [2])]
    assert counted.reads == 1
