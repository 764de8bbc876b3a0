"""A backup of positions beside the store: what Kafka keeps of a comparison in its consumer group.

With each checkpoint, its offsets are committed to the group `twinstream.NAME`, with a note. By them a matcher
recognizes a store that came back empty: it reads the comparison again from its old start, and says so until
it has come as far as before. Only the checkpoint decides; a matcher continues without the group.

A comparison that was moved to a Spark job has a note of that, too: there would be two owners if a service
went on with it in a store that came back empty, or as it was before the move. The first checkpoint after the
way back replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, ValidationError

from twinstream.core.accounts import PLACE, Hole
from twinstream.core.events import Side
from twinstream.core.verdict import Verdict
from twinstream.explain.divergence import NAMES
from twinstream.explain.holes import offsets
from twinstream.intake.topics import added
from twinstream.ports import Mark, Marks, Positions, Topic
from twinstream.spec.file.start import Start
from twinstream.starting.reset_model import Resets
from twinstream.status.common import Frozen

LOST = "the state in the store was lost"
AWAITED = f"{LOST}, and everything was read again: a difference that had been found is awaited"


class Backup(Frozen):
    """The note about a comparison: its beginning, latest checkpoint, verdict and number of holes.

    Also the number of resets, and the start of the last one without its offsets, which are kept beside it.
    The note of each partition has the offset at which reading it began, and the id of its topic. `moved` is
    where the comparison was moved, if it was.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: Literal[1]
    digest: str
    run: datetime
    sequence: int
    verdict: Verdict
    holes: int
    resets: int
    begins: dict[str, Any] | None
    start: int = 0
    topic: str = ""
    moved: str = ""

    @property
    def age(self) -> tuple[int, float, int]:
        """Orders the notes of a comparison by the checkpoints that they are of."""
        return *self.beginning, self.sequence

    @property
    def beginning(self) -> tuple[int, float]:
        """The number of resets and the time of the last one; shards begin apart where there is none."""
        return self.resets, self.run.timestamp() if self.resets else 0.0


class Past(NamedTuple):
    """The memory of the group: where reading began, how far it came, and the note of that time.

    A side of which nothing is remembered has no starts.
    """

    starts: Positions
    reached: Positions
    topics: Mapping[Side, str]
    account: Backup

    def resets(self, topics: Mapping[Side, Topic]) -> Resets:
        """The number of resets, and the start of the last one; their records are lost.

        A side of which no start is remembered begins at the first records left (see `resumed`).
        """
        named = self.account.begins
        if named is None:
            return Resets(made=self.account.resets)
        starts = {NAMES[side]: self.starts[side] or topics[side].first for side in Side}
        offsets = starts if named["at"] == "offsets" else {}
        return Resets((), self.account.resets, Start.model_validate({**named, **offsets}), rested=True)


def marks_of(starts: Positions, reached: Positions, topics: Mapping[Side, str], account: Backup) -> Marks:
    """The marks to commit: for each partition the next offset, and the note."""

    def note(side: Side, partition: int, offset: int) -> str:
        own = {"start": starts[side].get(partition, offset), "topic": topics[side]}
        return account.model_copy(update=own).model_dump_json()

    return {
        side: {
            partition: Mark(offset, note(side, partition, offset))
            for partition, offset in reached[side].items()
        }
        for side in Side
    }


def past_of(marks: Marks, digest: str, after_other: str | None = None) -> Past | None:
    """The memory of the group; None if there is none, or if it is about another comparison file.

    Another file may share one topic with this one: then it has replaced the notes of that topic alone. The
    notes of a run from before `after_other`, the time when another file began, do not count: that run ended
    when its file was replaced.
    """
    since = None if after_other is None else datetime.fromisoformat(after_other)
    every_note = {side: _later(since, digest, _notes(marks[side])) for side in Side}
    notes = {side: _about(digest, every_note[side]) for side in Side}
    if any(every_note[side] and not notes[side] for side in Side):
        return None
    every = (note for side in Side for note in notes[side].values())
    newest = max(every, key=lambda note: note.age, default=None)
    if newest is None:
        return None
    ours = {
        side: {p: note for p, note in notes[side].items() if note.beginning == newest.beginning}
        for side in Side
    }
    return Past(
        {side: {p: note.start for p, note in ours[side].items()} for side in Side},
        {side: {p: marks[side][p].offset for p in ours[side]} for side in Side},
        {side: next((note.topic for note in ours[side].values()), "") for side in Side},
        newest,
    )


def moved_marks(marks: Marks, place: str, sequence: int | None = None) -> Marks:
    """The same marks, with notes that the comparison was moved to a place, by the checkpoint `sequence`."""

    def moved(mark: Mark, note: Backup) -> Mark:
        update = {"moved": place, "sequence": max(note.sequence, sequence or 0)}
        return Mark(mark.offset, note.model_copy(update=update).model_dump_json())

    notes = {side: _notes(marks[side]) for side in Side}
    return {side: {p: moved(marks[side][p], note) for p, note in notes[side].items()} for side in Side}


def moved_to(marks: Marks, sequence: int | None = None, began: str = "") -> str:
    """Where the comparison was moved, as its newest note says, whatever its file was; empty if it was not.

    A checkpoint in the store that is no older, of this `sequence` and a run that `began` then, has come after
    the move, so the comparison is back. One that is older was there before the move, and has come back.
    """
    every = (note for side in Side for note in _notes(marks[side]).values())
    newest = max(every, key=lambda note: (note.age, note.moved), default=None)
    if newest is None or sequence is None:
        return "" if newest is None else newest.moved
    came_after = sequence > newest.sequence or datetime.fromisoformat(began) > newest.run
    return "" if came_after else newest.moved


def _notes(marks: Mapping[int, Mark]) -> dict[int, Backup]:
    """The notes of partitions; texts of others are left out."""
    notes: dict[int, Backup] = {}
    for partition, mark in marks.items():
        with suppress(ValidationError):
            notes[partition] = Backup.model_validate_json(mark.note)
    return notes


def _later(since: datetime | None, digest: str, notes: Mapping[int, Backup]) -> dict[int, Backup]:
    """All notes but those about a comparison file whose run began before a time."""
    return {
        partition: note
        for partition, note in notes.items()
        if since is None or note.digest != digest or note.run >= since
    }


def _about(digest: str, notes: Mapping[int, Backup]) -> dict[int, Backup]:
    """Those notes that are about a comparison file."""
    return {partition: note for partition, note in notes.items() if note.digest == digest}


class Rereading:
    """The way back to where a comparison had come before its state was lost."""

    def __init__(self, reached: Positions, verdict: Verdict) -> None:
        self._reached, self._verdict = reached, verdict

    def sentence(self, positions: Positions) -> str | None:
        """How far it is; None when everything was read again."""
        for side in Side:
            for partition, target in self._reached[side].items():
                position = positions[side].get(partition)
                if position is not None and position < target:
                    return (
                        f"{LOST}, and everything is read again: the {NAMES[side]} has come to offset "
                        f"{position} of {target} in partition {partition}"
                    )
        return None

    def missing(self, *, diverged: bool) -> Hole | None:
        """What had been announced and was not found again."""
        if self._verdict is not Verdict.DIVERGED or diverged:
            return None
        return Hole(f"a difference had been found before {LOST}, and reading again has not proved it")

    def joined(self, other: Rereading | None) -> Rereading:
        """The way to both places, with what had been announced at either."""
        if other is None:
            return self
        verdict = other._verdict if other._verdict is Verdict.DIVERGED else self._verdict
        further = {
            side: {p: max(known.get(p, 0) for known in (mine, others)) for p in {**mine, **others}}
            for side, mine, others in ((side, self._reached[side], other._reached[side]) for side in Side)
        }
        return Rereading(further, verdict)

    def state(self) -> list[Any]:
        """All of it, as JSON values."""
        return [[list(map(list, self._reached[side].items())) for side in Side], self._verdict.value]

    @classmethod
    def of(cls, state: list[Any]) -> Rereading:
        """What `state` was of."""
        reached, verdict = state
        return cls({side: dict(reached[side]) for side in Side}, Verdict(verdict))


def resumed(past: Past, topics: Mapping[Side, Topic]) -> tuple[Positions, list[Hole]]:
    """Where to read again from, and what cannot be read again."""
    positions: dict[Side, dict[int, int]] = {}
    holes: list[Hole] = []
    for side, topic in topics.items():
        positions[side] = {}
        anew = _is_anew(past, side, topic)
        for partition, first in topic.first.items():
            start = past.starts[side].get(partition, first)
            positions[side][partition] = first if anew else max(start, first)
            if anew:
                wanted = past.reached[side].get(partition, first)
                reason = (
                    f"{PLACE} was deleted and created anew: offset {wanted:,} was next, and the new topic "
                    f"begins there at {first:,}"
                )
                holes.append(Hole(reason, side, partition, wanted))
    holes += _unknown(past.starts)
    kept = {side: {} if _is_anew(past, side, topic) else past.starts[side] for side, topic in topics.items()}
    holes += gone(kept, topics)
    holes += _added(kept, topics)
    holes += forgotten(past, 0)
    return positions, holes


def forgotten(past: Past, known: int) -> Iterator[Hole]:
    """The hole for those that had been noted and are not among the `known` ones of the state."""
    if (number := past.account.holes - known) > 0:
        yield Hole(f"before {LOST}, stretches that were not checked had been noted ({number})")


def _is_anew(past: Past, side: Side, topic: Topic) -> bool:
    return bool(past.topics[side]) and past.topics[side] != topic.id


def _unknown(starts: Positions) -> Iterator[Hole]:
    """Sides of which nothing is remembered: what is left of them may begin before their start."""
    for side in Side:
        if not starts[side]:
            reason = f"{LOST}, and Kafka does not remember from where on {PLACE} was compared"
            yield Hole(f"{reason}: all that is left of it is read", side)


def _added(starts: Positions, topics: Mapping[Side, Topic]) -> Iterator[Hole]:
    """Partitions that were not there when the comparison began."""
    for side, topic in topics.items():
        for partition in sorted(topic.first.keys() - starts[side].keys() if starts[side] else ()):
            yield added(side, partition, topic.first[partition])


def gone(starts: Positions, topics: Mapping[Side, Topic]) -> Iterator[Hole]:
    """What a comparison that lost its state would be read again from, and Kafka does not have any more."""
    for side, topic in topics.items():
        for partition, first in topic.first.items():
            start = starts[side].get(partition, first)
            if first > start:
                reason = (
                    f"{LOST}, and Kafka no longer has {offsets(start, first)} of {PLACE}, from which it "
                    "would be read again"
                )
                yield Hole(reason, side, partition, start)
