"""One job a comparison: a job that begins waits for another to fall silent, and an older one ends.

Spark keeps two queries from one checkpoint; nothing keeps them from two checkpoints with one results topic.
So a job writes its *claim* there before it begins, and looks at the topic as long as it runs. The last claim
wins: whoever finds a later one than its own, ends. Until then the statuses of both come in turns, and those
who show them take neither for the owner's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import orjson
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from twinstream.adapters.kafka.client import LinkFaults, admin_client, config_of, opened, reason_of
from twinstream.adapters.kafka.results import DIVERGENCES, JOB, ResultsTopics
from twinstream.errors import Fenced, NoResults, SettingsError, SourceError, StoreError

SILENT_SECONDS = 10.0
"""After so long without a status another job counts as ended."""
LOOK_SECONDS = 1
"""How often a job looks at the topic."""
TIMEOUT_SECONDS = 10.0
TAKEN_OVER = (
    "another job has claimed comparison {name!r} on the results topic {results}, so this one ends: run one "
    "of them, or give each its own --results"
)


def make_topics(brokers: str, results: str, properties: Mapping[str, Any]) -> bool:
    """Make the results topics that are missing; returns whether there was one.

    Raises SourceError, and SettingsError where one that is there has several partitions.
    """
    client = admin_client(brokers, dict(properties), LinkFaults())
    topics = [
        NewTopic(name, num_partitions=1, config={"cleanup.policy": "compact"})
        for name in (results, results + DIVERGENCES)
    ]
    made: Mapping[str, Future[Any]] = client.create_topics(topics, request_timeout=TIMEOUT_SECONDS)
    missing = False
    for name, future in made.items():
        try:
            future.result()
            missing = True
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise SourceError(
                    f"kafka at {brokers} does not make topic {name}: {reason_of(error)}"
                ) from None
            _check_partitions(name, client)
    return missing


def _check_partitions(name: str, client: AdminClient) -> None:
    (described,) = client.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_SECONDS).values()
    try:
        count = len(described.result().partitions)
    except KafkaException:
        return  # It is being deleted, or may not be described: whoever reads it says so.
    if count > 1:
        raise SettingsError(
            f"the results topic {name} has {count} partitions, and only one would be read: delete it, and "
            "the job makes it, or name another with --results"
        )


class Claim:
    """The claim of one run of a job on a comparison."""

    def __init__(
        self, brokers: str, results: str, properties: Mapping[str, Any], name: str, run: str
    ) -> None:
        self._brokers, self._results, self._name, self._run = brokers, results, name, run
        self._topics = ResultsTopics(brokers, results, dict(properties))
        self._properties = properties
        self._offset, self._made_in = 0, dict[str, str]()
        self._said: Mapping[Any, Any] | None = None
        self._silent_since = 0.0
        self._refused: KafkaError | None = None

    def known(self) -> bool:
        """Whether a job has written about the comparison on the topics. Raises StoreError."""
        try:
            self._topics.read_to_end(TIMEOUT_SECONDS)
        except NoResults:
            return False
        return self._name in {*self._topics.claims, *(name for name, _ in self._topics.statuses)}

    def make(self, say: Callable[[str], object]) -> None:
        """Wait until no other job writes about the comparison, and claim it. Raises SourceError."""
        waiting = False
        while self._silence() < SILENT_SECONDS:
            if not waiting:
                say(
                    f"another job writes about comparison {self._name!r}: this one begins when that has ended"
                )
            waiting = True
            time.sleep(LOOK_SECONDS)
        self._made_in = self._topics.ids
        producer = opened(Producer, {**config_of(self._brokers, self._properties), "acks": "all"})
        value = orjson.dumps({"run": self._run})
        key = f"{self._name}/{JOB}".encode()
        producer.produce(self._results, key=key, value=value, partition=0, on_delivery=self._told)
        if producer.flush(TIMEOUT_SECONDS):
            raise SourceError(
                f"kafka at {self._brokers} does not take the claim of the job: is it reachable?"
            )
        if self._refused is not None:
            raise SourceError(
                f"kafka at {self._brokers} refuses the claim of the job on topic {self._results}: "
                f"{self._refused.str()}"
            )

    def _told(self, error: KafkaError | None, message: Message) -> None:
        self._offset, self._refused = message.offset() or 0, error

    def check(self) -> None:
        """Raise Fenced if another job has a later claim, NoResults without its topics; Kafka may be away."""
        try:
            self._topics.read()
        except NoResults:
            raise
        except StoreError:
            return
        if self._topics.ids != self._made_in:  # Its claim is gone, and offsets have begun anew.
            raise NoResults(f"topic {self._results} is another one than that of the claim")
        offset, run = self._topics.claims.get(self._name, (0, self._run))
        if run != self._run and offset > self._offset:
            raise Fenced(TAKEN_OVER.format(name=self._name, results=self._results))

    def _silence(self) -> float:
        """The seconds since the last status of another job.

        How old a status was when it was first read, the clocks of the hosts tell; one from the future counts
        as new. From then on the clock of this host counts alone: what is new to this look was told since the
        one before.
        """
        self._topics.read_to_end(TIMEOUT_SECONDS)
        said = {place: told for place, told in self._topics.statuses.items() if place[0] == self._name}
        now = time.monotonic()
        if self._said is None:
            last = max((told.stamp for told in said.values()), default=0.0)
            self._silent_since = now - max(0.0, time.time() - last)
        elif said != self._said:
            self._silent_since = now
        self._said = said
        return now - self._silent_since

    def close(self) -> None:
        """Close its connections."""
        self._topics.close()
