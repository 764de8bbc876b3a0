from __future__ import annotations

import pytest

from twinstream.core.accounting import unmatched as module
from twinstream.core.accounting.unmatched import UnmatchedEvents
from twinstream.core.events import Event, Form


def event(offset: int) -> Event:
    return Event(Form("", b"", "", b"%d" % offset), 0, offset, 0, 0.0)


@pytest.mark.parametrize("slack", [1000, 0], ids=["as queued", "queued anew"])
def test_the_first_open_offset_is_the_smallest_in_whatever_order_events_come(
    monkeypatch: pytest.MonkeyPatch, slack: int
) -> None:
    monkeypatch.setattr(module, "SLACK", slack)
    held, events = UnmatchedEvents(), [event(offset) for offset in range(10)]
    for run in ([5, 3, 8], [4, 9], [0], [7]):
        held.came([events[offset] for offset in run])
        held.settle()
    for gone, first in ((9, 0), (0, 3), (3, 4), (4, 5), (7, 5), (5, 8), (8, None)):
        held.left([events[gone]])
        held.settle()
        assert held.first_open() == ({} if first is None else {0: first})
