"""Watches the partition of each class of ordered events; a class in two partitions is a hole.

Kafka keeps no order between the partitions of a topic. So events that may be dependent must be in one of
them; if not, their order is unknown. The watch looks at the first events of each partition and at all of a
small run, and of a large one at one event in `SAMPLE`: a key that is spread over partitions shows soon. At
which, chance decides: the places looked at in one partition must not be those passed over in another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from twinstream.core.accounts import Hole
from twinstream.core.arrivals.run import Run
from twinstream.core.events import OFFSET, PARTITION, Form, Side, in_kafka
from twinstream.core.matching.index import Pairs
from twinstream.core.order import BARRIER, Order, ordered_class, stable

SAMPLE = 16
LOOKED_AT = 64
"""So many events of a run are looked at in any case: all of a small one."""
FIRST = 4_096
"""So many events of each partition are all looked at, after each start."""
LIMIT = 100_000
"""Classes remembered; above this, the older half is forgotten."""
SAVED = 10_000
"""The latest are remembered over a restart, each by 64 bits: two collide once in many lifetimes."""


class KeyPartitions:
    """The partitions of the classes of one side."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._home_of: dict[Hashable, int] = {}
        self._before: dict[bytes, int] = {}
        self._seen = Counter[int]()
        self._forgotten = self._saved = 0

    def displaced(self, forms: Sequence[Form], partition: int) -> Iterator[tuple[int, int]]:
        """The sampled events of a partition whose class was in another one before: index, and that partition.

        Complexity: O(`LOOKED_AT` + n / `SAMPLE`).
        """
        home_of = self._home_of
        for kept_together in tuple(islice(home_of, len(home_of) // 2 if len(home_of) > LIMIT else 0)):
            self._forget(kept_together)
        step = 1 if self._seen[partition] < FIRST else min(SAMPLE, 1 + len(forms) // LOOKED_AT)
        chance = blake2b(b"%d %d" % (partition, self._seen[partition]), digest_size=4).digest()
        self._seen[partition] += len(forms)
        for place in range(int.from_bytes(chance) % step, len(forms), step):
            kept_together = ordered_class(self._order, forms[place][0])
            if kept_together is None:
                continue
            if self._before and kept_together not in home_of:
                home_of[kept_together] = self._before.pop(_hashed(kept_together), partition)
            home = home_of.setdefault(kept_together, partition)
            if home != partition:
                self._forget(kept_together)
                home_of[kept_together] = partition
                yield place, home

    def _forget(self, kept_together: Hashable) -> None:
        del self._home_of[kept_together]
        self._forgotten += 1

    def state(self, *, whole: bool) -> list[list[Any]]:
        """The partitions of the latest classes, newest first; unless `whole`, of those since the last call.

        Complexity: about 1 µs a class.
        """
        added = len(self._home_of) + self._forgotten
        latest = islice(reversed(self._home_of.items()), SAVED if whole else min(SAVED, added - self._saved))
        self._saved = added
        saved = [[_hashed(kept_together), home] for kept_together, home in latest]
        before = islice(self._before.items(), SAVED - len(saved) if whole else 0)
        return saved + [[name, home] for name, home in before]

    def restore(self, state: Iterable[Sequence[Any]]) -> None:
        """Take over a whole `state`."""
        self._before = dict(map(tuple, state))


class PartitionWatch:
    """Watches the partitions of both sides: an event whose partition leaves its order unknown is a hole.

    `keeps_partitions`: the file asserts that equal events are in partitions of the same number. Each pair is
    checked until the first that is not.
    """

    def __init__(self, order: Order, *, keeps_partitions: bool = False) -> None:
        self.keeps_partitions = keeps_partitions
        self.key_partitions = KeyPartitions(order), KeyPartitions(order)

    def came(self, side: Side, run: Run) -> Iterator[Hole]:
        """The holes caused by the events of a run."""
        for place, home in self.key_partitions[side].displaced(run.forms, run.partition):
            low, high = sorted((home, run.partition))
            reason = (
                f"events whose order matters are in two partitions ({low} and {high}), and Kafka keeps no "
                "order between partitions"
            )
            yield Hole(reason, side, run.partition, in_kafka(run.offsets[place]))

    def paired(self, pairs: Pairs) -> Hole | None:
        """The hole caused by a pair in partitions of different numbers. Complexity: 50 ns a pair.

        A barrier with copies is in every partition; which of its copies came first does not matter.
        """
        if not self.keeps_partitions or list(map(_PARTITION, pairs.partners)) == list(
            map(_PARTITION, pairs.events)
        ):
            return None
        apart = (pair for pair in zip(pairs.partners, pairs.events, strict=True) if pair[0][1] != pair[1][1])
        found = next((pair for pair in apart if pair[0][0][0] is not BARRIER), None)
        if found is None:
            return None
        self.keeps_partitions = False
        places = [f"at offset {in_kafka(event[OFFSET])} of partition {event[PARTITION]}" for event in found]
        return Hole(
            f"two equal events are {places[0]} of one topic and {places[1]} of the other, but the file says "
            "`co_partitioned: true`: remove that, and reset the comparison without `--shards`"
        )


def merged(states: Sequence[Sequence[Sequence[Any]]]) -> list[Sequence[Any]]:
    """The states of one side, the first of them whole, as one whole state."""
    found: dict[Any, Sequence[Any]] = {}
    for row in chain.from_iterable(reversed(states)):
        found.setdefault(row[0], row)
    return list(islice(found.values(), SAVED))


_PARTITION = itemgetter(1)


def _hashed(kept_together: Hashable) -> bytes:
    return blake2b(stable(kept_together), digest_size=8).digest()
