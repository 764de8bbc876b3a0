"""What is held does not depend on when lists of what came and left are made shorter."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.accounting.unmatched import SETTLE_SOON, UnmatchedEvents
from twinstream.core.events import Event, Form, Side

STEPS = st.lists(
    st.tuples(st.sampled_from(["came", "left", "thin", "settle"]), st.integers(0, 1_000_000)),
    max_size=60,
)


@given(steps=STEPS, crowded=st.booleans())
def test_thinning_changes_nothing_that_a_look_sees(steps: list[tuple[str, int]], *, crowded: bool) -> None:
    thinned, plain = UnmatchedEvents(), UnmatchedEvents()
    open_events: list[tuple[Side, Event]] = []
    seen: list[list[Any]] = []
    if crowded:
        _come((thinned, plain), open_events, SETTLE_SOON)
    for number, (step, choice) in enumerate([*steps, ("settle", 0)]):
        if step == "came":
            _come((thinned, plain), open_events, choice % 4, 10_000 + 10 * number)
        elif step == "thin":
            thinned.thin()
        elif step == "settle":
            for held in (thinned, plain):
                held.settle()
            seen.append([_look(thinned), _look(plain)])
        elif step == "left" and open_events:
            _, event = open_events.pop(choice % len(open_events))
            for held in (thinned, plain):
                held.left([event])
    for one, other in seen:
        assert one == other


def _come(
    both: tuple[UnmatchedEvents, UnmatchedEvents],
    open_events: list[tuple[Side, Event]],
    count: int,
    first: int = 0,
) -> None:
    for offset in range(first, first + count):
        side = Side(offset // 2 % 2)
        event = Event(Form("", b"", "", b"." * (offset % 7)), offset % 3, offset, offset // 5, 0.0)
        open_events.append((side, event))
        for held in both:
            held.came(side, [event])


def _look(held: UnmatchedEvents) -> list[Any]:
    return [
        [list(map(id, one)), one.first_open(), one.oldest_ms(), one.size_bytes, one.until(2003)]
        for one in map(held.of, Side)
    ] + [[list(map(id, change.added)), sorted(change.removed)] for change in _changes(held)]


def _changes(held: UnmatchedEvents) -> list[Any]:
    return [held.of(side).take_changes() for side in Side]
