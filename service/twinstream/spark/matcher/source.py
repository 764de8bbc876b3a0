"""The source of a worker in a Spark job: Spark reads both topics, and the worker is fed.

Only what Spark does not tell is asked of Kafka: how the topics are, from time to time, by a look that all
shards of a Python worker share (see `adapters.kafka.watch`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from twinstream.adapters.kafka.watch import TopicWatch
from twinstream.core.events import Side
from twinstream.ports import Batch, Control, ControlEntry, Gap, Marks, Positions, Topic, TopicsLook


class FedSource:
    """A source that reads nothing. `topics` are both as they were when the job, or this worker, began."""

    def __init__(self, topics: Mapping[Side, Topic], watch: TopicWatch) -> None:
        self._topics, self._watch = topics, watch
        self._ends = {side: dict(topics[side].ends) for side in Side}

    def reached(self, side: Side, partition: int, end: int) -> None:
        """Note the end of a partition, as Kafka told it to the task that read the partition."""
        self._ends[side][partition] = max(end, self._ends[side].get(partition, 0))

    def topics(self) -> Mapping[Side, Topic]:
        """Both topics as they were."""
        return self._topics

    def remember(self, marks: Marks) -> None:
        """Do nothing: the checkpoint of the query is the one memory of a job."""

    def remembered(self) -> Marks:
        """Nothing."""
        return {side: {} for side in Side}

    def bound(self) -> Positions | None:
        """No bound: the query has its starting offsets."""
        return None

    def seen(self) -> TopicsLook:
        """The last look of this Python worker."""
        return self._watch.seen

    def look(self) -> int:
        """Ask for a look soon."""
        return self._watch.look()

    def control(self) -> Control | None:
        """No control topic is read."""
        return None

    def extend(self, side: Side, partition: int, offset: int) -> None:
        """Do nothing: Spark reads new partitions by itself."""

    def assign(self, positions: Positions) -> None:
        """Do nothing: Spark has assigned them."""

    def pause(self, side: Side, partitions: Collection[int]) -> None:
        """Do nothing: the query limits its batches."""

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:
        """Nothing: the worker is fed."""
        return ()

    def follow(self, position: int | None) -> None:
        """Do nothing."""

    def said(self) -> Sequence[ControlEntry]:
        """Nothing."""
        return ()

    def heard_all(self) -> bool:
        """Whether the control topic was read to its end: there is none."""
        return False

    def ends(self) -> Positions:
        """The ends of the partitions, as the tasks that read them were told."""
        return self._ends

    def trouble(self) -> str | None:
        """None: a task that cannot read fails."""
        return None

    def close(self) -> None:
        """Do nothing: the look is shared."""
