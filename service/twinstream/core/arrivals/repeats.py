"""Finds the events that the candidate wrote twice, if a known difference names `duplicate`.

Whether an event is a copy or was never seen before is then state, and a function of each partition alone: an
event is a *repeat* if its partition of the right side has an equal one within the `horizon` before it, in
offsets. That is decided when the event is read, whatever the other side has written by then. So each
partition keeps 128-bit digests of the canonical forms of its last `horizon` offsets, and marks on its
unmatched events that are repeats.

Events further back are forgotten. An event that is no repeat may be a copy of one of them: that is unknown
(`doubt`). It is also unknown if events that depend on nothing are in several partitions, and the equal one of
another partition may have been the first.

A digest stands for a form: among 10^9 forms, two collide with a probability below 10^-20.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

from twinstream.core.events import CONTENT, FORM, OFFSET, PARTITION, ROUTE, Canonical, Event, in_kafka
from twinstream.core.order import BARRIER, Order, ordered_class

DIGEST_BYTES = 16
NEVER = -(1 << 62)
"""The first offset of a partition whose beginning is unknown: further back than any horizon."""
KEPT = 10_000
"""The marks are cleaned up when there are twice as many as after the last clean-up, and so many more."""
RepeatsState = dict[str, Any]


def digest(canonical: bytes) -> bytes:
    """The digest of a canonical form. Complexity: about 0.6 µs."""
    return blake2b(canonical, digest_size=DIGEST_BYTES).digest()


class Window:
    """The last offsets of one partition: the digest at each offset, and the last offset of each digest."""

    def __init__(self) -> None:
        self.rows: deque[tuple[int, bytes]] = deque()
        self.last: dict[bytes, int] = {}
        self.first: int | None = None
        self.unsaved = 0

    def add(self, rows: Sequence[tuple[int, bytes]], horizon: int) -> Iterator[int]:
        """Note the digests at the next offsets; yields the indices of the rows that are repeats."""
        last, known = self.last, self.last.get
        for place, (offset, form) in enumerate(rows):
            before = known(form)
            if before is not None and 0 < offset - before <= horizon:
                yield place
            last[form] = offset
        if self.first is None and rows:
            self.first = rows[0][0]
        self.rows.extend(rows)
        self.unsaved += len(rows)
        self._forget(horizon)

    def _forget(self, horizon: int) -> None:
        """Forget the rows that are no longer within the horizon of any event to come."""
        rows, last = self.rows, self.last
        while rows and rows[-1][0] - rows[0][0] > horizon:
            offset, form = rows.popleft()
            if last[form] == offset:
                del last[form]

    def reaches(self, offset: int, horizon: int) -> bool:
        """Whether all events before an offset lie within the horizon."""
        return self.first is None or offset - self.first <= horizon

    def has_forgotten(self, horizon: int) -> bool:
        """Whether some earlier event is no longer within the horizon."""
        newest = self.rows[-1][0] if self.rows else 0
        return not self.reaches(newest, horizon)


class Repeats:
    """The repeats of the right side."""

    def __init__(self, horizon: int, canonical: Canonical, order: Order) -> None:
        self._horizon, self._canonical, self._order = horizon, canonical, order
        self._windows: dict[int, Window] = {}
        self._marked: dict[int, Event] = {}
        self._mark_limit = KEPT

    # -- as events come ------------------------------------------------------------------------------------

    def note(self, partition: int, events: Sequence[Event]) -> None:
        """Note the next events of a partition, in its order, before they are matched.

        Complexity: about 1.5 µs each, beside the canonical form.
        """
        window = self._windows.setdefault(partition, Window())
        canonical = self._canonical
        rows = [(event[OFFSET], digest(canonical(event[FORM][CONTENT]))) for event in events]
        for place in window.add(rows, self._horizon):
            self._marked[id(events[place])] = events[place]

    def skip(self, partition: int) -> None:
        """Skip the first events of a partition: an event that is no repeat may be a copy of one of them."""
        self._windows.setdefault(partition, Window()).first = NEVER

    def trim(self, holds: Callable[[Event], bool]) -> None:
        """Forget the marks of settled events. Complexity: O(1) amortised."""
        if len(self._marked) > self._mark_limit:
            self._marked = {key: event for key, event in self._marked.items() if holds(event)}
            self._mark_limit = KEPT + 2 * len(self._marked)

    # -- asking --------------------------------------------------------------------------------------------

    def is_copy(self, event: Event) -> bool:
        """Whether an event is a repeat."""
        return id(event) in self._marked

    def doubt(self, event: Event) -> str | None:
        """A sentence why an event that is no repeat may still be a copy; None if it is no copy."""
        route, partition, offset = event[FORM][ROUTE], event[PARTITION], event[OFFSET]
        of = f"the event at offset {in_kafka(offset)} of partition {partition} of the candidate"
        window = self._windows.get(partition)
        if window is None or not window.reaches(offset, self._horizon):
            return (
                f"{of} has no partner; it may be a copy of an event more than {self._horizon:,} offsets "
                "before it (limits.duplicate_horizon), which is forgotten"
            )
        depends_on_nothing = route is not BARRIER and ordered_class(self._order, route) is None
        if depends_on_nothing and self._may_stand_elsewhere(event):
            return (
                f"{of} has no partner; it may be a copy of an event in another partition, and copies are "
                "recognized within one partition only"
            )
        return None

    def _may_stand_elsewhere(self, event: Event) -> bool:
        form, horizon = digest(self._canonical(event[FORM][CONTENT])), self._horizon
        others = (window for partition, window in self._windows.items() if partition != event[PARTITION])
        return any(form in window.last or window.has_forgotten(horizon) for window in others)

    # -- state ---------------------------------------------------------------------------------------------

    def state(self, events: Iterable[Event], *, whole: bool) -> RepeatsState:
        """The state as plain data, with the marks of some events; unless `whole`, only the new digests.

        Complexity: O(n) in the events and in the new digests, at most the horizon of each partition.
        """
        marked = [event for event in events if id(event) in self._marked]
        state = {
            "windows": [_saved(partition, one, whole=whole) for partition, one in self._windows.items()],
            "marked": [[event[PARTITION], event[OFFSET]] for event in marked],
        }
        for window in self._windows.values():
            window.unsaved = 0
        return state

    def restore(self, state: RepeatsState, held: Mapping[tuple[int, int], Event]) -> None:
        """Take over a whole `state`."""
        for saved in state["windows"]:
            window = self._windows[saved["partition"]] = Window()
            window.rows.extend(_rows(saved))
            window.last.update((form, offset) for offset, form in window.rows)
            window.first = saved["first"]
        places = map(tuple, state["marked"])
        self._marked = {id(event): event for place in places if (event := held.get(place)) is not None}

    def mark(self, events: Iterable[Event]) -> None:
        """Take over repeats that are not held, but may come back."""
        self._marked.update((id(event), event) for event in events)


def merged(states: Sequence[RepeatsState], gone: Sequence[Iterable[Sequence[int]]]) -> RepeatsState:
    """Several states, the first of them whole, as one whole state; `gone` are the places left before each."""
    rows: dict[int, dict[int, bytes]] = {}
    marked: dict[tuple[int, int], None] = {}
    for state, left in zip(states, gone, strict=True):
        for partition, offset in left:
            marked.pop((partition, offset), None)
        marked.update(dict.fromkeys(map(tuple, state["marked"])))
        for saved in state["windows"]:
            rows.setdefault(saved["partition"], {}).update(_rows(saved))
    return {
        **states[-1],
        "windows": [_joined(saved, rows[saved["partition"]]) for saved in states[-1]["windows"]],
        "marked": list(map(list, marked)),
    }


def _saved(partition: int, window: Window, *, whole: bool) -> RepeatsState:
    """A window as plain data, or only its rows since the last snapshot."""
    count = len(window.rows) if whole else min(window.unsaved, len(window.rows))
    newest = list(islice(reversed(window.rows), count))[::-1]
    return {
        "partition": partition,
        "first": window.first,
        "oldest": window.rows[0][0] if window.rows else None,
        **_packed(newest),
    }


def _joined(last: RepeatsState, rows: Mapping[int, bytes]) -> RepeatsState:
    """The window as in the last state, with all its rows from all states."""
    oldest = last["oldest"]
    kept = [] if oldest is None else [row for row in sorted(rows.items()) if row[0] >= oldest]
    return {**last, **_packed(kept)}


def _packed(rows: Sequence[tuple[int, bytes]]) -> RepeatsState:
    return {"offsets": [offset for offset, _ in rows], "digests": [form for _, form in rows]}


def _rows(saved: RepeatsState) -> Iterable[tuple[int, bytes]]:
    return zip(saved["offsets"], saved["digests"], strict=True)
