"""Detects changes of the topics themselves: one is recreated, gets partitions, or is compacted.

Kafka's metadata of a topic is compared with the remembered metadata, while the matcher runs and after it was
down. Each change is a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twinstream.core.accounts import PLACE, Hole
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.explain.divergence import NAMES
from twinstream.ports import Positions, Topic
from twinstream.spec.file.model import Spec

COMPACT = "compact"


class Heard(NamedTuple):
    """How far a control topic is heard: the next offset, and the id of the topic."""

    offset: int = 0
    topic: str = ""


NOTHING_HEARD = Heard()


class KnownTopic(NamedTuple):
    """The remembered metadata of a topic.

    Control records before `said` may be about an earlier topic of its name.
    """

    id: str
    partitions: frozenset[int]
    compacted: bool
    said: Heard = NOTHING_HEARD


class TopicBook:
    """Remembers both topics, and finds their changes.

    `missing` are sentences about topics that were not there at the last look: they may be recreated.
    """

    def __init__(self, spec: Spec) -> None:
        self._names = {Side.LEFT: spec.reference.topic, Side.RIGHT: spec.candidate.topic}
        self._known: dict[Side, KnownTopic] = {}
        self.missing: list[str] = []

    def refusal(self, topics: Mapping[Side, Topic]) -> str | None:
        """The reason why these topics cannot be compared at all."""
        for side, topic in topics.items():
            if topic.cleanup_policy is not None and COMPACT in topic.cleanup_policy:
                return (
                    f"the {NAMES[side]}'s topic {self._names[side]} has cleanup.policy "
                    f"{topic.cleanup_policy}: compaction removes records that are to be compared; use a "
                    "topic without it"
                )
        return None

    def begin(self, topics: Mapping[Side, Topic], before: Sequence[Any] = ()) -> None:
        """Remember the topics as they are now; `before` is the state before a reset."""
        self.restore(before)
        same = {side: known for side, known in self._known.items() if known.id == topics[side].id}
        self._known = {side: _known(topic, same.get(side)) for side, topic in topics.items()}

    def changes(
        self, topics: Mapping[Side, Topic | None], positions: Positions, said: Heard = NOTHING_HEARD
    ) -> list[Hole]:
        """The changes since the topics were remembered; remembers them as they are now.

        `positions` are the next offsets to read, and `said` is how far the control topic is heard.
        """
        self.missing = [
            f"the {NAMES[side]}'s topic {self._names[side]} is not there any more"
            for side, topic in topics.items()
            if topic is None
        ]
        found: list[Hole] = []
        for side, topic in topics.items():
            if topic is not None:
                found += self._changes(side, topic, positions[side])
                self._known[side] = _known(topic, self._known.get(side), said)
        return found

    def forget_said(self) -> None:
        """The control topic was created anew: its records are about the topics of now."""
        self._known = {side: known._replace(said=NOTHING_HEARD) for side, known in self._known.items()}

    def is_of_another(self, side: Side, fact: Finished, control: str) -> bool:
        """Whether a control record may be about an earlier topic of the name, which was created anew.

        `control` is the id of the control topic, empty if it is not known.
        """
        said = self._known[side].said if side in self._known else NOTHING_HEARD
        same = control == said.topic or not (control and said.topic)
        return same and fact.at is not None and fact.at < said.offset

    def _changes(self, side: Side, topic: Topic, positions: Mapping[int, int]) -> Iterator[Hole]:
        known = self._known.get(side, _known(topic))
        now = _known(topic, known)
        if known.id != now.id:
            for partition, wanted in sorted(positions.items()):
                yield Hole(_created_anew(topic, partition, wanted), side, partition, wanted)
        for partition in sorted(now.partitions - known.partitions):
            yield added(side, partition, topic.first[partition])
        if now.compacted and not known.compacted:
            reason = f"{PLACE} is compacted now (cleanup.policy {topic.cleanup_policy})"
            yield Hole(f"{reason}: Kafka may remove records before they are compared", side)

    def ids(self) -> dict[Side, str]:
        """The ids of the topics."""
        return {side: known.id for side, known in self._known.items()}

    def state(self) -> list[Any]:
        """The remembered topics, as JSON values."""
        return [
            [int(side), known.id, sorted(known.partitions), known.compacted, *known.said]
            for side, known in self._known.items()
        ]

    def restore(self, state: Sequence[Any]) -> None:
        """Take over the `state`."""
        self._known = {
            Side(side): KnownTopic(name, frozenset(partitions), compacted, Heard(*said))
            for side, name, partitions, compacted, *said in state
        }


def added(side: Side, partition: int, first: int) -> Hole:
    """The hole for a partition that came later than the others."""
    reason = f"{PLACE} was added, which begins at offset {first:,}"
    return Hole(f"{reason}: events of one key may now stand in two partitions", side, partition, first)


def _created_anew(topic: Topic, partition: int, wanted: int) -> str:
    reason = f"{PLACE} was deleted and created anew: offset {wanted:,} was next"
    if partition not in topic.first:
        return f"{reason}, and the new topic has no such partition"
    first, end = topic.first[partition], topic.ends[partition]
    return f"{reason}, and the new topic begins there at {first:,} and ends at {end:,}"


def _known(topic: Topic, before: KnownTopic | None = None, said: Heard = NOTHING_HEARD) -> KnownTopic:
    """The metadata to remember; a cleanup policy that Kafka does not report is unchanged."""
    told = topic.cleanup_policy
    compacted = bool(before and before.compacted) if told is None else COMPACT in told
    if before is not None and before.id == topic.id:
        said = before.said
    return KnownTopic(topic.id, frozenset(topic.first), compacted, said)
