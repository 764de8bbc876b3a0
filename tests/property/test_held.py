"""What is held does not depend on when fresh events are taken in, and agrees with a plain list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.accounting import unmatched
from twinstream.core.accounting.unmatched import FRESH_LIMIT, UnmatchedEvents
from twinstream.core.events import Event, Form, Side

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["came", "left", "left early", "came back", "settle", "saved"]),
        st.integers(0, 1_000_000),
    ),
    max_size=80,
)


class Plain:
    """The events held of one side, and those that a checkpoint knows, as plain lists."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.saved: set[int] = set()

    def first_open(self) -> dict[int, int]:
        partitions = {event[1] for event in self.events}
        return {one: min(event[2] for event in self.events if event[1] == one) for one in partitions}


@pytest.mark.parametrize("limit", [5, FRESH_LIMIT])
@given(steps=STEPS)
def test_what_is_held_agrees_with_a_plain_list_at_each_look(limit: int, steps: list[tuple[str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unmatched, "FRESH_LIMIT", limit)
        _compare(steps)


def _compare(steps: list[tuple[str, int]]) -> None:
    held, plain = (UnmatchedEvents(), UnmatchedEvents()), (Plain(), Plain())
    gone: list[tuple[Side, Event]] = []
    checkpoint: list[list[tuple[int, int]]] = [[], []]
    for number, (step, choice) in enumerate([*steps, ("settle", 0)]):
        side = Side(choice % 2)
        events = plain[side].events
        if step == "came":
            came = _events(10_000 + 10 * number, choice % 4)
            held[side].came(came)
            events += came
        elif step == "left early":
            came = _events(10_000 + 10 * number, 3)
            held[side].left(came[:2])
            held[side].came(came)
            events += came[2:]
        elif step == "left" and events:
            event = events.pop(choice % len(events))
            held[side].left([event])
            gone.append((side, event))
        elif step == "came back" and gone:
            side, event = gone.pop(choice % len(gone))
            held[side].came_back([event])
            plain[side].events.append(event)
        elif step in ("settle", "saved"):
            for of in Side:
                held[of].settle()
                _agree(held[of], plain[of])
                if step == "saved":
                    _save(held[of], checkpoint[of])
                    places = [(event[1], event[2]) for event in plain[of].events]
                    assert sorted(checkpoint[of]) == sorted(places)


def _agree(one: UnmatchedEvents, plain: Plain) -> None:
    events = plain.events
    assert sorted(map(id, one)) == sorted(map(id, events))
    assert len(one) == len(events)
    assert one.oldest_ms() == min((event[3] for event in events), default=None)
    assert one.until(2003) == sum(event[3] <= 2003 for event in events)
    assert one.size_bytes == sum(len(event[0][3]) for event in events)
    assert all(map(one.holds, events))
    assert set(one.first_open()) == set(plain.first_open())


def _save(held: UnmatchedEvents, checkpoint: list[tuple[int, int]]) -> None:
    """Apply the changes to a checkpoint as a restore does: what left first, then what came."""
    change = held.take_changes()
    for place in change.removed:
        checkpoint.remove(place)
    checkpoint += [(event[1], event[2]) for event in change.added]


@given(steps=STEPS)
def test_the_first_open_offset_is_the_smallest_while_offsets_come_in_order(
    steps: list[tuple[str, int]],
) -> None:
    held, plain = UnmatchedEvents(), Plain()
    for number, (step, choice) in enumerate([*steps, ("settle", 0)]):
        if step == "came":
            came = _events(10 * number, 1 + choice % 4)
            held.came(came)
            plain.events += came
        elif step == "left" and plain.events:
            held.left([plain.events.pop(choice % len(plain.events))])
        elif step == "settle":
            held.settle()
            assert held.first_open() == plain.first_open()


def _events(first: int, count: int) -> list[Event]:
    return [
        Event(Form("", b"", "", b"." * (offset % 7)), offset % 3, offset, offset // 5, 0.0)
        for offset in range(first, first + count)
    ]
