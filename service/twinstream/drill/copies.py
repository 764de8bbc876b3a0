"""Selects the records that a drill copies: a recent stretch of both topics, with the same events on both.

Two topics that are read from some offset on do not begin or end with the same event. So each side keeps only
the events that the other side has as well, the latest of equal ones. If that leaves too little, or no
equivalent pair (the candidate is behind, or already differs), both copies are made from the reference alone:
a drill tests whether a difference is noticed, not whether there is one.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, zip_longest
from typing import NamedTuple

from twinstream.core.events import Form, Side
from twinstream.core.order import Epochs, nodes
from twinstream.errors import InputError, RelationError, SettingsError
from twinstream.offline.check import check
from twinstream.ports import Line
from twinstream.spec.codec.codec import IGNORED, Codec
from twinstream.spec.drills import DrillRecord
from twinstream.spec.file.model import Spec

LEAST_EVENTS = 20
"""With fewer there is nothing before the difference, and too little after it to show it."""


Records = Sequence[DrillRecord]


class CopiedPair(NamedTuple):
    """The records of both copies by side, in the order in which they are written."""

    reference: Records
    candidate: Records


class CopiedStretch(NamedTuple):
    """A pair without a difference. `alone` is why both are from the reference; None if they are not."""

    pair: CopiedPair
    alone: str | None = None


class CopyReader:
    """Reads records as events, with the codec of a comparison."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.codec = spec, Codec(spec)

    def form(self, record: DrillRecord, side: Side) -> Form | None:
        """The form of an event; None if the record is no event, or is left out."""
        (form,), _ = self.codec.forms([record.held(self.spec)], side)
        return None if form is IGNORED else Form._make(form)

    def letter(self, record: DrillRecord, side: Side) -> bytes | None:
        """The canonical form that equal events share."""
        form = self.form(record, side)
        return None if form is None else self.codec.canonical(form.content)

    def refusal(self, record: DrillRecord, side: Side) -> str | None:
        """Why a record is no event; None if it is one, or the comparison file leaves it out."""
        _, refused = self.codec.forms([record.held(self.spec)], side)
        return next((one.reason for one in refused), None)


def in_order(records: Sequence[DrillRecord]) -> list[DrillRecord]:
    """The records of all partitions as one: by time, and each partition in its own order."""
    return _merged(records, (record.timestamp_ms for record in records))


def _merged(records: Iterable[DrillRecord], moments: Iterable[int]) -> list[DrillRecord]:
    """The records by their moments; one that is earlier than its partition has come to waits for it."""
    partitions: defaultdict[int, list[tuple[int, DrillRecord]]] = defaultdict(list)
    for record, moment in zip(records, moments, strict=True):
        those = partitions[record.partition]
        those.append((max(moment, those[-1][0]) if those else moment, record))
    return [record for _, record in merge(*partitions.values(), key=lambda one: one[0])]


def stretch_of(
    spec: Spec, reference: Sequence[DrillRecord], candidate: Sequence[DrillRecord]
) -> CopiedStretch:
    """The pair that the drill copies. Raises SettingsError if there is none."""
    reading = CopyReader(spec)
    read = CopiedPair(in_order(reference), in_order(candidate))
    if not read.reference:
        topic = spec.reference.topic
        raise SettingsError(f"topic {topic} has no record to copy: drill when the pipelines have written")
    both = _in_both(reading, read)
    why = _why_not(spec, both, len(read.reference))
    if why is None:
        return CopiedStretch(both)
    if spec.decode_of(Side.LEFT) != spec.decode_of(Side.RIGHT):
        raise SettingsError(
            f"no stretch of both topics can be copied, since {why}, and the reference alone will not do "
            "where each side has a format of its own"
        )
    refusals = [reading.refusal(record, Side.LEFT) for record in read.reference]
    if all(refusals):
        raise SettingsError(
            f"nothing can be drilled on the last records of {spec.reference.topic}: none is an event of this "
            f"comparison, the first one because: {refusals[0]}"
        )
    kept = [record for record, why_not in zip(read.reference, refusals, strict=True) if why_not is None]
    alone = _behind_barrier(reading, CopiedPair(kept, kept))
    why_not = _why_not(spec, alone, 0)
    if why_not is not None:
        raise SettingsError(
            f"nothing can be drilled on the last records of {spec.reference.topic}: {why_not}"
        )
    return CopiedStretch(alone, why)


def _in_both(reading: CopyReader, read: CopiedPair) -> CopiedPair:
    letters = [[reading.letter(record, side) for record in read[side]] for side in Side]
    common = Counter(filter(None, letters[0])) & Counter(filter(None, letters[1]))
    kept = CopiedPair(*(_latest(reading, read[side], side, letters[side], common) for side in Side))
    return _behind_barrier(reading, _alike(reading, kept))


def _alike(reading: CopyReader, pair: CopiedPair) -> CopiedPair:
    """The pair with the candidate's partitions joined as the reference's are.

    Joined by its own times, a burst within a millisecond would be joined differently on each side, and
    matching records would get times far apart.
    """
    places: defaultdict[bytes | None, deque[int]] = defaultdict(deque)
    for place, record in enumerate(pair.reference):
        places[reading.letter(record, Side.LEFT)].append(place)

    def place_of(record: DrillRecord) -> int:
        letter = reading.letter(record, Side.RIGHT)
        return 0 if letter is None else places[letter].popleft()

    return pair._replace(candidate=_merged(pair.candidate, map(place_of, pair.candidate)))


def _latest(
    reading: CopyReader, records: Records, side: Side, letters: Sequence[bytes | None], common: Counter[bytes]
) -> list[DrillRecord]:
    """The events that both sides have, the latest of equal ones; and the records left out by rule."""
    left, kept = Counter(common), []
    for record, letter in zip(reversed(records), reversed(letters), strict=True):
        if letter is None:
            if reading.refusal(record, side) is None:
                kept.append(record)
        elif left[letter] > 0:
            left[letter] -= 1
            kept.append(record)
    return kept[::-1]


def _behind_barrier(reading: CopyReader, pair: CopiedPair) -> CopiedPair:
    """The part after one barrier in all partitions, if each has a copy of it.

    Epochs are counted by the copies that a partition has brought, so all must begin in the same epoch.
    """
    order = reading.codec.order
    if not any(isinstance(node.order, Epochs) and node.order.copies for node in nodes(order)):
        return pair
    copies: defaultdict[bytes, dict[tuple[Side, int], int]] = defaultdict(dict)
    for side in Side:
        for place, record in enumerate(pair[side]):
            form = reading.form(record, side)
            if form is not None and form[0] is None:
                letter = reading.codec.canonical(form.content)
                copies[letter].setdefault((side, record.partition), place)
    wanted = {(side, record.partition) for side in Side for record in pair[side]}
    begins = next((found for found in copies.values() if found.keys() == wanted), None)
    if begins is None:
        return CopiedPair((), ())
    return CopiedPair(
        *(
            [record for place, record in enumerate(pair[side]) if place >= begins[side, record.partition]]
            for side in Side
        )
    )


def _why_not(spec: Spec, pair: CopiedPair, of: int) -> str | None:
    """Why a pair cannot be copied; None if it can. It should hold at least half of `of` records."""
    least = min(len(pair.reference), len(pair.candidate))
    if least < LEAST_EVENTS:
        return f"the sides have only {least} of their last events in common, and {LEAST_EVENTS} are needed"
    if least * 2 < of:
        return f"the sides have only {least} of the last {of} events in common"
    try:
        answer = check(spec, lines_of(spec, pair))
    except (InputError, RelationError) as error:
        return str(error)
    reason = str(answer["reason"])
    return None if answer["verdict"] == "EQUIVALENT" else f"{reason[:1].lower()}{reason[1:].rstrip('.')}"


def placed(records: Records) -> list[tuple[int, int]]:
    """The partition and the offset of each record in a topic that holds nothing else."""
    ends: Counter[int] = Counter()
    places = []
    for record in records:
        places.append((record.partition, ends[record.partition]))
        ends[record.partition] += 1
    return places


def lines_of(spec: Spec, pair: CopiedPair) -> list[Line]:
    """A pair as `check` reads it, alternating between sides, with the offsets that the copies will have."""
    lines = [_lines(spec, side, pair[side]) for side in Side]
    turns = filter(None, chain.from_iterable(zip_longest(*lines)))
    return [line._replace(position=position) for position, line in enumerate(turns, 1)]


def _lines(spec: Spec, side: Side, records: Records) -> Iterator[Line]:
    for record, (partition, offset) in zip(records, placed(records), strict=True):
        held, at = record.held(spec), f"{spec.version_of(side).topic}/{partition}"
        yield Line(
            side, held, partition, offset, record.timestamp_ms, at, record.offset, 0, held is None,
            record.headers,
        )  # fmt: skip
