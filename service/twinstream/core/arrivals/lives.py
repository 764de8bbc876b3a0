"""The lives of partitions, so that no two events of a side have one place.

Kafka gives an offset again when a topic is created anew, or when a partition is cut off below what was read.
Events that were read before may still wait, and everything in a comparison names an event by partition and
offset, and relies on offsets that grow. So a partition that goes back begins another *life*: in a comparison
the offsets of each life lie `LIFE` behind those of the life before.

Those of the first life are Kafka's. Offsets of Kafka become those of a comparison here, where runs come and
where control records name an offset. What leaves a comparison says where it is in Kafka, by `in_kafka`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from twinstream.core.arrivals.run import Run
from twinstream.core.events import LIFE, Side

LivesState = list[list[list[int]]]
"""By side, each partition that has gone back, with the number of its life."""


class Lives:
    """The present life of each partition.

    >>> lives, run = Lives(), Run([], 0, [7], [70], 0.0)
    >>> lives.begin(Side.LEFT, 0)
    >>> lives.placed(Side.LEFT, run).offsets == [LIFE + 7], lives.placed(Side.RIGHT, run) is run
    (True, True)
    >>> lives.below(Side.LEFT, {0: 8}, {0: LIFE + 5}), lives.below(Side.LEFT, {0: 8}, {0: 5})
    ({0: 5}, {0: 0})
    """

    def __init__(self) -> None:
        self._numbers: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def begin(self, side: Side, partition: int) -> None:
        """Begin another life of a partition."""
        numbers = self._numbers[side]
        numbers[partition] = numbers.get(partition, 0) + 1

    def placed(self, side: Side, run: Run) -> Run:
        """A run of Kafka's offsets with those of the comparison. Complexity: O(1) in a first life."""
        number = self._numbers[side].get(run.partition)
        if number is None:
            return run
        return run._replace(offsets=[number * LIFE + offset for offset in run.offsets])

    def ends(self, side: Side, ends: Mapping[int, int]) -> dict[int, int]:
        """By partition, offsets of Kafka as they are in the comparison."""
        numbers = self._numbers[side]
        return {partition: numbers.get(partition, 0) * LIFE + end for partition, end in ends.items()}

    def below(self, side: Side, position: Mapping[int, int], first: Mapping[int, int]) -> dict[int, int]:
        """By partition, a position in Kafka, or the `first` offset of some events if that comes before.

        It is 0 where that is in an earlier life: then no offset of this one lies before it.
        """
        found = {}
        for partition, offset in self.ends(side, position).items():
            begin = offset - position[partition]
            found[partition] = max(0, min(offset, first.get(partition, offset)) - begin)
        return found

    def state(self) -> LivesState:
        """The state as plain data; empty where no partition has gone back."""
        return _plain(self._numbers)

    def restore(self, state: LivesState) -> None:
        """Take over the `state`."""
        for numbers, known in zip(self._numbers, state, strict=False):
            numbers.update((partition, number) for partition, number in known)


def joined(states: Iterable[LivesState]) -> LivesState:
    """The states of several comparisons of the same partitions as one: of each the latest life.

    >>> joined([[[[0, 2], [1, 1]], []], [], [[[0, 1]], [[3, 1]]]])
    [[[0, 2], [1, 1]], [[3, 1]]]
    """
    found: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for state in states:
        for numbers, known in zip(found, state, strict=False):
            for partition, number in known:
                numbers[partition] = max(number, numbers.get(partition, 0))
    return _plain(found)


def _plain(numbers: Sequence[Mapping[int, int]]) -> LivesState:
    return [list(map(list, of_side.items())) for of_side in numbers] if any(numbers) else []
