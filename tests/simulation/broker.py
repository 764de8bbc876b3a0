"""The broker: both topics as they grow, lose their beginnings, and are delivered in batches of any cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from tests.simulation.inputs import Input
from tests.simulation.scheduler import Scheduler
from tests.simulation.topics import Row
from twinstream.core.events import Side
from twinstream.errors import SourceError
from twinstream.ports import Batch, BeginsMs, Control, ControlEntry, Gap, Marks, Positions, Topic, TopicsLook

AWAY_SECONDS = 3.0
LOOK_SECONDS = 10.0
LOOK_TAKES_SECONDS = 2.0
"""At most."""
SLOW = (0.0, 0.1, 0.5)


class Broker:
    """Both topics, of which so many records are `written`.

    `produce` writes the next records of a side, `retain` deletes the first of a partition.
    """

    def __init__(self, scheduler: Scheduler, given: Input) -> None:
        self._scheduler = scheduler
        self._all = {side: list(given.rows[side]) for side in Side}
        self._to_come = {side: self._all[side][::-1] for side in Side}
        self.rows: dict[Side, list[list[Row]]] = {
            side: [[] for _ in range(given.partitions[side])] for side in Side
        }
        self.first = {side: dict.fromkeys(range(given.partitions[side]), 0) for side in Side}
        self._marks: dict[object, Marks] = {}
        self._lives = [0, 0]
        self.said: list[bytes] = []
        self._to_say = [list(reversed(spoken)) for spoken in given.said]
        self.written = [0, 0]
        self._written_at: tuple[list[float], list[float]] = ([], [])
        self.away = False

    def produce(self, side: Side, count: int) -> None:
        """Write the next records of a side."""
        for _ in range(min(count, len(self._to_come[side]))):
            row = self._to_come[side].pop()
            self.rows[side][row.partition].append(row)
            self.written[side] += 1
            self._written_at[side].append(self._scheduler.now)
            while self._to_say[side] and self._to_say[side][-1].behind <= self.written[side]:
                self.said.append(self._to_say[side].pop().record)

    def took(self, side: Side, begin: int, end: int) -> float:
        """The seconds from writing one record of a side to writing a later one, by their places."""
        times = self._written_at[side]
        first, last = (times[min(place, len(times) - 1)] for place in (begin, end))
        return last - first

    def end(self, side: Side, partition: int) -> int:
        """The offset behind the last record."""
        rows, first = self.rows[side][partition], self.first[side][partition]
        return max(first, rows[-1].offset + 1) if rows else first

    def retain(self, side: Side, partition: int, first: int) -> None:
        """Delete what stands below an offset."""
        self.first[side][partition] = max(self.first[side][partition], min(first, self.end(side, partition)))

    def create_anew(self, side: Side, further: int, written: int) -> None:
        """Delete a topic, and have it written again: the same records, so much further on.

        So many of them are `written` by now; the others follow, as those that never were.
        """
        self._lives[side] += 1
        self._all[side] = [_moved(row, further) for row in self._all[side]]
        self._to_come[side] = self._all[side][::-1]
        self.rows[side] = [[] for _ in self.rows[side]]
        self.first[side] = {
            partition: first + further if first else 0 for partition, first in self.first[side].items()
        }
        self.written[side] = 0
        self._written_at[side].clear()
        self.produce(side, written)

    @property
    def is_another(self) -> bool:
        """Whether a topic was created anew."""
        return any(self._lives)

    @property
    def is_gone(self) -> bool:
        """Whether a topic has lost its beginning."""
        return any(first for firsts in self.first.values() for first in firsts.values())

    def remember(self, group: object, marks: Marks) -> None:
        """Have a consumer group remember these."""
        before = self.remembered(group)
        self._marks[group] = {side: {**before[side], **marks[side]} for side in Side}

    def remembered(self, group: object) -> Marks:
        """What a consumer group remembers."""
        return self._marks.get(group) or {side: {} for side in Side}

    def ends(self, side: Side) -> dict[int, int]:
        """The ends of all partitions of a side."""
        return {partition: self.end(side, partition) for partition in range(len(self.rows[side]))}

    def all_ends(self) -> Positions:
        """The ends of all partitions."""
        return {side: self.ends(side) for side in Side}

    def described(self, side: Side) -> Topic:
        """A topic as Kafka describes it."""
        name = f"{side.name} {self._lives[side]}"
        return Topic(name, dict(self.first[side]), self.ends(side), "delete")

    def begins_ms(self, side: Side) -> dict[int, int]:
        """The times of the first records."""
        begins: dict[int, int] = {}
        for partition, rows in enumerate(self.rows[side]):
            for row in rows:
                if row.offset >= self.first[side][partition]:
                    begins.setdefault(partition, row.timestamp_ms)
        return begins


def _moved(row: Row, further: int) -> Row:
    return row._replace(offset=row.offset + further)


class SimulatedSource:
    """The port `Source` of one process, which commits to a consumer `group`.

    `fickle`: it delivers late, and in any cut. `steady`: it does not mind that the broker is away.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        broker: Broker,
        group: object = None,
        *,
        fickle: bool = True,
        steady: bool = False,
    ) -> None:
        self._scheduler, self._broker, self._group = scheduler, broker, group
        self._next: dict[Side, dict[int, int]] = {side: {} for side in Side}
        self._ends: dict[Side, dict[int, int]] = {side: {} for side in Side}
        self._paused: dict[Side, frozenset[int]] = dict.fromkeys(Side, frozenset())
        self.fickle, self._steady = fickle, steady
        self._slow = scheduler.one_of(SLOW) if fickle else 0.0
        self._most = scheduler.one_of((3, 10, 40)) if fickle else 10_000
        self._trouble = False
        self._seen = TopicsLook(0, {}, {}, {})
        self._asked = self._next_said = 0
        self._looks_at = float("inf")

    def topics(self) -> Mapping[Side, Topic]:
        """Both topics as they are now."""
        self._wait_for_answer()
        return {side: self._broker.described(side) for side in Side}

    def begins_ms(self) -> BeginsMs:
        """The times of the first records."""
        self._wait_for_answer()
        return {side: self._broker.begins_ms(side) for side in Side}

    def remember(self, marks: Marks) -> None:
        """Have the broker remember these, if it answers."""
        if not self._broker.away and not (self.fickle and self._scheduler.chance(self._slow / 2)):
            self._broker.remember(self._group, marks)

    def remembered(self) -> Marks:
        """What the broker remembers."""
        self._wait_for_answer()
        return self._broker.remembered(self._group)

    def _wait_for_answer(self) -> None:
        if self._broker.away and not self._steady:
            self._scheduler.now += AWAY_SECONDS
            raise SourceError("the broker does not answer")

    def bound(self) -> Positions | None:
        """Everything may be read."""
        return None

    def seen(self) -> TopicsLook:
        """A look, which it takes now and then, and when it is asked to, while the broker answers."""
        if not self._broker.away and self._scheduler.now >= self._looks_at:
            self._looks_at = self._scheduler.now + LOOK_SECONDS
            topics = {side: self._broker.described(side) for side in Side}
            ends = {side: self._broker.ends(side) for side in Side}
            self._seen = TopicsLook(self._asked, topics, ends, ends)
        return self._seen

    def look(self) -> int:
        """Look soon."""
        delay = self._scheduler.seconds(0.0, LOOK_TAKES_SECONDS) if self.fickle else 0.0
        self._looks_at = min(self._looks_at, self._scheduler.now + delay)
        self._asked += 1
        return self._asked

    def extend(self, side: Side, partition: int, offset: int) -> None:
        """Read one more partition."""
        self._next[side][partition] = offset

    def control(self) -> Control | None:
        """There is no control topic."""
        return None

    def assign(self, positions: Positions) -> None:
        """Read from these positions on."""
        self._next = {side: dict(positions[side]) for side in Side}
        self._looks_at = self._scheduler.now + LOOK_SECONDS

    def pause(self, side: Side, partitions: Collection[int]) -> None:
        """Leave these partitions of a side alone."""
        self._paused[side] = frozenset(partitions)

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:
        """Some of what is there."""
        self._trouble = self._broker.away
        if self._broker.away or (self.fickle and self._scheduler.chance(self._slow)):
            self._scheduler.now += timeout
            return ()
        self._ends[side] = self._broker.ends(side)
        found = list(self._deliver(side))
        if not found:
            self._scheduler.now += timeout
        return found

    def _deliver(self, side: Side) -> Iterator[Batch | Gap]:
        partitions = [partition for partition in self._next[side] if partition not in self._paused[side]]
        if self.fickle and len(partitions) > 1:
            self._scheduler.random.shuffle(partitions)
            del partitions[self._scheduler.number(1, len(partitions)) :]
        for partition in partitions:
            wanted, first = self._next[side][partition], self._broker.first[side][partition]
            if wanted < first or wanted > max(first, self._broker.end(side, partition)):
                self._next[side][partition] = first
                yield Gap(side, partition, wanted, first)
            else:
                yield from self._batches(side, partition)

    def _batches(self, side: Side, partition: int) -> Iterator[Batch]:
        first = self._next[side][partition]
        rows = [row for row in self._broker.rows[side][partition] if row.offset >= first]
        while rows:
            size = self._scheduler.number(1, self._most) if self.fickle else len(rows)
            taken, rows = rows[:size], rows[size:]
            self._next[side][partition] = taken[-1].offset + 1
            yield Batch(
                side,
                partition,
                [row.record for row in taken],
                [row.offset for row in taken],
                [row.timestamp_ms for row in taken],
                [row.headers for row in taken],
            )
            if self.fickle and self._scheduler.chance(0.6):
                break

    def follow(self, position: int | None) -> None:
        """Read the control topic from this offset on."""
        self._next_said = position or 0

    def said(self) -> Sequence[ControlEntry]:
        """Some of what was said since."""
        if self._broker.away or (self.fickle and self._scheduler.chance(self._slow)):
            return ()
        records = self._broker.said[self._next_said :][: self._most]
        first, self._next_said = self._next_said, self._next_said + len(records)
        return [ControlEntry(first + number, record) for number, record in enumerate(records)]

    def heard_all(self) -> bool:
        """Whether all was said that is there."""
        return self._next_said >= len(self._broker.said)

    def ends(self) -> Mapping[Side, Mapping[int, int]]:
        """The ends as of the last time that the broker answered."""
        return {side: dict(ends) for side, ends in self._ends.items()}

    def trouble(self) -> str | None:
        """That the broker was away when it was asked last."""
        return "no broker answers" if self._trouble else None

    def close(self) -> None:
        """Nothing to give back."""
