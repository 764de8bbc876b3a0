"""Reads single records of both topics again, beside the matching, within a given time.

It uses its own consumer, made on first use, so that the positions of the matcher do not change. The consumer
fetches little at a time, since the wanted records are scattered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from confluent_kafka import Consumer, KafkaException, Message

from twinstream.adapters.kafka.records import of_partition
from twinstream.core.events import Place, Side
from twinstream.errors import SourceError

_SPARING: dict[str, str | int | bool] = {
    "fetch.message.max.bytes": 65_536,
    "fetch.queue.backoff.ms": 10,
    "log_level": 0,
    "queued.min.messages": 1,
    "statistics.interval.ms": 0,
}


class KafkaRecall:
    """Reads records of `topics` again, with the properties of the source. `read` gets one from a message."""

    def __init__(
        self,
        topics: Mapping[Side, str],
        config: Mapping[str, str | int | bool],
        read: Callable[[Message], bytes | None],
    ) -> None:
        self._topics, self._config, self._read = dict(topics), {**config, **_SPARING}, read
        self._consumer: Consumer | None = None
        self._turn = 0

    def records(self, places: Iterable[Place], seconds: float) -> dict[Place, bytes | None]:
        """See `ports.Recall`. Partitions take turns, so that one that hangs does not delay all others."""
        until = time.monotonic() + seconds
        found: dict[Place, bytes | None] = {}
        try:
            consumer = self._consumer = self._consumer or Consumer(self._config)
            for (side, partition), wanted in self._in_turn(places):
                offsets = [offset for _, _, offset in wanted]
                topic = self._topics[side]
                for offset, record in of_partition(
                    consumer, topic, partition, offsets, self._read, lambda: until - time.monotonic()
                ):
                    found[side, partition, offset] = None if record is None else record.record
        except (TimeoutError, SourceError, KafkaException):
            pass  # Records not read in time, for whatever reason, are asked for again.
        return found

    def _in_turn(self, places: Iterable[Place]) -> list[tuple[tuple[Side, int], list[Place]]]:
        """The places by partition, each time starting with another one."""
        ordered = sorted(set(places))
        groups = [(key, list(group)) for key, group in groupby(ordered, itemgetter(0, 1))]
        self._turn += 1
        first = self._turn % max(1, len(groups))
        return groups[first:] + groups[:first]

    def close(self) -> None:
        """Close the consumer. Calling it again does nothing."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
