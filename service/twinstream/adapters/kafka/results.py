"""Reads what a Spark job says of a comparison, from its results topics: a shelf without a hand.

A status counts by the same argument as one that comes through Redis (`processes.standby`), with two changes:

- The offset of its record takes the place of its number. The topic has one partition, so it grows.
- No clock stands between the host of a task and this one. So both must agree within `CLOCKS_APART_SECONDS`;
  a status that comes from the future is not heard.

The token of the owner is the run of the job. Two jobs that write about one comparison take turns in it, and
then no status counts.
"""

from __future__ import annotations

import time
from base64 import b64decode
from concurrent.futures import Future
from math import inf
from threading import Lock
from typing import Any, NamedTuple

import orjson
import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)

from twinstream.adapters.kafka.client import (
    LinkFaults,
    Properties,
    admin_client,
    config_of,
    opened,
    reason_of,
)
from twinstream.adapters.kafka.records import know
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import NoResults, StoreError
from twinstream.ports import EMPTY, Heard, Stored

CLOCKS_APART_SECONDS = 5.0
DIVERGENCES = ".divergences"
"""What the name of the topic of divergences has behind that of the results."""
JOB = "job"
"""In the place of a shard: the claim of a job."""
READ_AT_ONCE, LOOK_SECONDS, POLL_SECONDS = 10_000, 3.0, 0.05
QUIET_SECONDS = 5.0
"""When nothing has come for so long, the topics may be gone, or others: a job tells something each second."""
UNHEARD = (
    "no Spark job is heard that compares this: start it with the same comparison file, --results and "
    "--shards, or wait until its next batch"
)
NO_HAND = "a Spark job is reset by starting it with a new checkpoint location: see docs/scale.md"

log = structlog.get_logger()


class _Told(NamedTuple):
    """The last status of a shard."""

    run: str
    of: int
    began: str
    head: bytes
    stamp: float
    bulletin: bytes


class ResultsTopics:
    """The results topics, read so far; all its methods may be called from any thread.

    `statuses` are by comparison and shard, `reports` besides by id. `claims` are the offset and the run of
    the last claim of each comparison, `ids` tell topics from others of the same names. Raises SettingsError
    if a property of Kafka is wrong.
    """

    def __init__(self, brokers: str, results: str, properties: Properties) -> None:
        self._results, self._brokers = results, brokers
        more = {"group.id": "twinstream.results", "enable.auto.commit": False}
        more |= {"isolation.level": "read_committed", "allow.auto.create.topics": False}
        more |= {"enable.partition.eof": True}
        self._consumer = opened(Consumer, {**config_of(brokers, properties), **more})
        self._admin = admin_client(brokers, properties, LinkFaults())
        self._lock, self._heard_at = Lock(), -inf
        self.ids: dict[str, str] = {}
        self._ended_at = -1
        self.claims: dict[str, tuple[int, str]] = {}
        self.statuses: dict[tuple[str, int], _Told] = {}
        self.reports: dict[tuple[str, int], dict[str, tuple[str, bytes]]] = {}

    def read(self) -> None:
        """Read what has come. Raises StoreError if Kafka does not answer, or lacks a topic."""
        with self._lock:
            if time.monotonic() - self._heard_at > QUIET_SECONDS:
                self._look()
            while messages := self._consumer.consume(READ_AT_ONCE, 0):
                self._heard_at = time.monotonic()
                errors = [error for message in messages if (error := self._take(message)) is not None]
                if errors:  # What came with it has been read, and does not come again.
                    self._heard_at = -inf
                    raise StoreError(f"kafka at {self._brokers} does not answer: {errors[0].str()}")

    def read_to_end(self, seconds: float) -> None:
        """Read all statuses and claims that are there by now. Raises StoreError if that takes longer.

        `read` takes what has come: of a topic whose leader is still being looked up, that is nothing.
        """
        until = time.monotonic() + seconds
        self.read()
        end = self._end(seconds)
        while self._ended_at < end:
            if time.monotonic() > until:
                raise StoreError(
                    f"kafka at {self._brokers} does not answer: topic {self._results} is not read up to its "
                    f"end, offset {end}"
                )
            time.sleep(POLL_SECONDS)
            self.read()

    def _end(self, seconds: float) -> int:
        """Where the topic of statuses and claims ends, as Kafka says now."""
        try:
            told = self._consumer.get_watermark_offsets(TopicPartition(self._results, 0), timeout=seconds)
        except KafkaException as error:
            raise StoreError(f"kafka at {self._brokers} does not answer: {reason_of(error)}") from None
        if told is None:
            raise StoreError(f"kafka at {self._brokers} does not tell where topic {self._results} ends")
        return int(told[1])

    def _look(self) -> None:
        """Read both topics from their beginning, if they are others than before.

        A consumer that is assigned to a topic does not notice that it was deleted.
        """
        names = (self._results, self._results + DIVERGENCES)
        described = self._admin.describe_topics(TopicCollection([*names]), request_timeout=LOOK_SECONDS)
        ids = {name: self._id(name, future) for name, future in described.items()}
        if ids != self.ids:
            for name in names:
                know(self._consumer, name)
            self._consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING) for name in names])
            self.claims, self.statuses, self.reports = {}, {}, {}
            self.ids, self._ended_at = ids, -1
        self._heard_at = time.monotonic()

    def _id(self, name: str, described: Future[Any]) -> str:
        try:
            return str(described.result().topic_id)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise StoreError(f"kafka at {self._brokers} does not answer: {reason_of(error)}") from None
            raise NoResults(
                f"kafka at {self._brokers} has no topic {name}: start the Spark job, which makes it, or "
                "correct --results"
            ) from None

    def _take(self, message: Message) -> KafkaError | None:
        """Take a record, or return an error. What no job has written is left out, and logged."""
        key, value, error = message.key(), message.value(), message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            if message.topic() == self._results:
                self._ended_at = message.offset() or 0
            return None
        if error is None and key is not None and value is not None:
            try:
                self._note(message, key.decode(), orjson.loads(value))
            except (ValueError, KeyError, TypeError):
                log.warning("record of no job", topic=message.topic(), offset=message.offset())
        return error

    def _note(self, message: Message, key: str, said: dict[str, Any]) -> None:
        name, shard, *more = key.split("/", 2)
        if shard == JOB:
            self.claims[name] = (message.offset() or 0, said["run"])
            return
        place = (name, int(shard))
        if more:
            report = orjson.dumps(said["report"])
            self.reports.setdefault(place, {})[more[0]] = (said["began"], report)
            return
        bulletin = said["bulletin"] | {"number": message.offset()}
        told = _Told(
            said["run"],
            said["of"],
            said["began"],
            b64decode(said["head"]),
            bulletin["stamp"],
            orjson.dumps(bulletin),
        )
        self.statuses[place] = told

    def close(self) -> None:
        """Close the consumer."""
        try:
            self._consumer.close()
        except KafkaException as error:
            raise StoreError(reason_of(error)) from None


class ResultsShelf:
    """What a job says of one comparison: a `ReadShelf`."""

    def __init__(self, topics: ResultsTopics, name: str) -> None:
        self._topics, self._name = topics, name

    def shards(self) -> int | None:
        """The number of shards of the job."""
        return next(
            (told.of for (name, _), told in self._topics.statuses.items() if name == self._name), None
        )

    def store(self, shard: Shard) -> ResultsStore:
        """What a shard has saved."""
        return ResultsStore(self._topics, self._name, shard)

    def relay(self, shard: Shard) -> ResultsRelay:
        """What a shard tells."""
        return ResultsRelay(self._topics, self._name, shard)

    def close(self) -> None:
        """Do nothing: other comparisons share the topics."""


class ResultsStore:
    """The saved divergences of a shard; nobody saves through it."""

    def __init__(self, topics: ResultsTopics, name: str, shard: Shard) -> None:
        self._topics, self._place = topics, (name, shard.number)
        self._passed: dict[str, bytes] = {}
        self._began = ""

    def glance(self) -> Stored:
        """The head of the shard, and the divergences that were saved since the last call."""
        told = self._topics.statuses.get(self._place)
        if told is None or not told.head:
            return EMPTY
        if told.began != self._began:
            self._began, self._passed = told.began, {}
        reports = self._topics.reports.get(self._place, {})
        new = {
            key: report
            for key, (began, report) in reports.items()
            if began == told.began and self._passed.get(key) != report
        }
        self._passed.update(new)
        return Stored(1, told.head, (), new)

    def close(self) -> None:
        """Do nothing: other comparisons share the topics."""


class ResultsRelay:
    """The bulletins of a shard, as its job has told them."""

    def __init__(self, topics: ResultsTopics, name: str, shard: Shard) -> None:
        self._topics, self._name, self._shard = topics, name, shard

    def heard(self) -> Heard | None:
        """The last bulletin of the shard, if it is of a job with as many shards. Raises StoreError."""
        self._topics.read()
        told = self._topics.statuses.get((self._name, self._shard.number))
        now = time.time()
        if told is None or told.of != self._shard.of or told.stamp > now + CLOCKS_APART_SECONDS:
            return None
        return Heard(max(now, told.stamp), told.run, told.bulletin)

    def close(self) -> None:
        """Do nothing: other comparisons share the topics."""
