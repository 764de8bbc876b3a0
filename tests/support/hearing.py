"""A matcher that reads what two versions write, and hears what they say of their input, at any pace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tests.support.streams import Driver
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side

ALL = 10**6
"""More than there is."""


class Speaks(Protocol):
    """A version: its records with their marks by partition, how many of them are read, and what it said."""

    topic: dict[int, list[tuple[bytes, Any]]]
    read: dict[int, int]
    said: list[Finished]


class Hearing:
    """The matcher of two versions with so many partitions."""

    def __init__(self, versions: Sequence[Speaks], driver: Driver, partitions: int) -> None:
        self._versions, self._partitions = versions, partitions
        self.driver = driver

    def act(self, action: tuple[Any, ...]) -> None:
        match action:
            case "read", side, partition, count:
                self.read(side, partition, count)
            case "hear", side, count:
                self.hear(side, count)
            case "restart", _:
                self.driver.restart()
        self.look()

    def read(self, side: Side, partition: int, count: int) -> None:
        version = self._versions[side]
        first = version.read[partition]
        rows = version.topic[partition][first : first + count]
        if rows:
            version.read[partition] += len(rows)
            self.driver.offsets[side] = first
            records, marks = zip(*rows, strict=True)
            self.driver.feed(side, records, partition=partition, marks=marks)

    def hear(self, side: Side, count: int) -> None:
        facts = self._versions[side].said
        for fact in facts[:count]:
            self.driver.comparison.note_finished(side, fact)
        del facts[:count]

    def look(self) -> None:
        for side in Side:
            self.driver.comparison.look(side, dict(self._versions[side].read), {}, 0.0)
        self.driver.comparison.survey((False, False))

    def read_all(self) -> None:
        for side in Side:
            for partition in range(self._partitions):
                self.read(side, partition, ALL)
            self.hear(side, ALL)
        self.look()
