"""Sorts events into before and behind the start, by the input record that they come from.

Each event names the one input record that it comes from, so both versions sort it alike. An input partition
that only one version has named so far is not part of the cut yet: its events must wait until the other one
reports where it begins there. Control records do not wait for events, so that wait ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twinstream.core.arrivals.run import Run
from twinstream.core.clocks.input import Finished, InputPartition, offsets_of, rows_of
from twinstream.core.events import Side
from twinstream.core.start.cut import Cut, Passed, kept_of
from twinstream.core.start.input_start import Firsts, first_of, firsts_of, firsts_rows, known_firsts
from twinstream.errors import DecodeError

_NAMES = ("reference", "candidate")


class InputCut(Cut):
    """Compares all events that come from the input at the cut or behind it.

    `place_of` reads the mark of an event; it raises DecodeError. An event without a mark, such as an
    aggregate, cannot be sorted: then nothing is compared, and `refused` says why. `found`: the cut is known,
    at least for some of the input.

    Complexity: about 0.3 µs an event.
    """

    def __init__(self, place_of: Callable[[str], tuple[str, int, int]]) -> None:
        self._place_of = place_of
        self._firsts: dict[Side, Firsts] = {side: {} for side in Side}
        self._cuts: dict[InputPartition, int] = {}
        self._by_prefix: dict[str, int] = {}

    @property
    def waiting(self) -> str | None:
        """The reason why nothing is compared yet."""
        return None if self.found else "no safe start yet: the versions have not said what they have consumed"

    def open(self, firsts: Mapping[Side, Firsts]) -> None:
        """Set the first offsets of each version, and the cut from them."""
        self._firsts = {side: {name: dict(of) for name, of in firsts[side].items()} for side in Side}
        self._cuts = {}
        self._find()

    def hear(self, side: Side, fact: Finished) -> str | None:
        """Note a control record after the start; a sentence if events behind the cut may be missing."""
        if fact.written is None:
            return None
        queries = self._firsts[side]
        known = fact.query in queries
        firsts = queries.setdefault(fact.query, {})
        late = None
        for place, consumed in fact.consumed.items():
            if place in firsts:
                continue
            firsts[place] = fact.since.get(place, consumed) if known else consumed
            if firsts[place] > self._cuts.get(place, firsts[place]):
                late = (
                    f"query {fact.query} of the {_NAMES[side]} is first heard of at offset {firsts[place]} "
                    f"of {place[0]} partition {place[1]}, behind the start at {self._cuts[place]}: what it "
                    "made of the input between may be missing"
                )
        self._find()
        return late

    def _find(self) -> None:
        left, right = (known_firsts(self._firsts[side]) for side in Side)
        for place in left.keys() & right.keys() - self._cuts.keys():
            self._cuts[place] = max(left[place], right[place])
        self._by_prefix = {f"{topic}:{partition}": cut for (topic, partition), cut in self._cuts.items()}
        self.found = bool(self._cuts)

    def begin(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        """Do nothing: the partitions of the output do not matter."""

    def lacks(self, side: Side, marks: Sequence[str | None]) -> str | None:
        """Why events with these marks cannot be sorted yet, None if all can. Complexity: 0.1 µs a mark."""
        prefixes = {mark.rpartition(":")[0] for mark in marks if mark is not None}
        for prefix in sorted(prefixes - self._by_prefix.keys()):
            try:
                topic, partition, _ = self._place_of(f"{prefix}:0")
            except DecodeError:
                continue
            if (topic, partition) in self._cuts:
                continue
            silent = [_NAMES[of] for of in Side if first_of(self._firsts[of], (topic, partition)) is None]
            return (
                f"the {_NAMES[side]} is not read on: it has an event that comes from {topic} partition "
                f"{partition}, of which the {' and the '.join(silent)} has not said where it begins"
            )
        return None

    def take(self, side: Side, run: Run) -> Passed:
        """Keep the events from the cut on."""
        kept: list[int] = []
        refused: list[tuple[int, str]] = []
        marks: Sequence[Any] = run.marks if run.marks is not None else [None] * len(run.forms)
        for place, mark in enumerate(marks):
            if mark is None:
                self.refused = self._unmarked(side, run, place)
                return Passed([])
            try:
                behind = self._is_behind(mark)
            except DecodeError as error:
                refused.append((place, str(error)))
                continue
            if behind:
                kept.append(place)
        return kept_of(side, run, kept, refused)

    def _is_behind(self, mark: str) -> bool:
        prefix, _, offset = mark.rpartition(":")
        cut = self._by_prefix.get(prefix)
        if cut is not None and offset.isascii() and offset.isdigit() and len(offset) < 19:
            return int(offset) >= cut
        topic, partition, at = self._place_of(mark)
        return at >= self._cuts[topic, partition]

    @staticmethod
    def _unmarked(side: Side, run: Run, place: int) -> str:
        return (
            f"no safe start: the event at offset {run.offsets[place]} of partition {run.partition} of the "
            f"{_NAMES[side]} does not name the one record of the input that it comes from (aggregates have "
            "none), so `start: {at: input}` cannot tell whether it is compared: start at an event time or a "
            "barrier, or leave such events out"
        )

    def state(self) -> dict[str, Any]:
        """The cut, and the first offsets of each query, as plain data."""
        return {
            "cuts": rows_of(self._cuts),
            "firsts": firsts_rows(self._firsts),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a `state`."""
        self._cuts = offsets_of(state["cuts"])
        self._firsts = firsts_of(state["firsts"])
        self._find()
