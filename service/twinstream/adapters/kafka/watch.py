"""Describes both topics and the control topic from time to time, on a thread of its own.

The hot path sees only records. It does not see that a topic was deleted and created again, has more
partitions or is compacted now: a consumer continues in the new topic at its offset in the old one.

To verify that records came from the expected topics, ask for a look (`TopicWatch.look`) after reading them:
ids never come back. A look also asks the leader of each partition where it ends: a consumer knows only where
it ended at the last fetch, and not that there was none for long. As long as both topics are unchanged, a look
takes 4.4 ms to a broker on the same host, and a whole one 6.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from functools import cached_property
from threading import Event, Thread
from time import monotonic
from typing import Any

import structlog
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from twinstream.adapters.kafka.client import LinkFaults, Properties, admin_client, cleanup_policy
from twinstream.core.events import Side
from twinstream.errors import NoTopic, SourceError
from twinstream.ports import Control, Positions, Topic, TopicsLook
from twinstream.spec.lint.topics import Topic as BareTopic

LOOK_SECONDS = 10.0
"""The time between whole looks, which also show how the control topic is cleaned."""
RETRY_SECONDS = 1.0
TIMEOUT_SECONDS = 3.0
"""Shorter than the silence after which a status is stale: at the start everything waits for it."""
DESCRIBE_SECONDS = 5.0
"""For a person who waits for the answer."""
_POLL_SECONDS = 0.05
_REFUSED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
_UNANSWERED = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._RESOLVE,
    KafkaError._FAIL,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
}
_ABSENT = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}

_ISOLATIONS = (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_SPECS: tuple[OffsetSpec, ...] = (
    OffsetSpec.earliest(),  # type: ignore[no-untyped-call]
    _LATEST,
)

TopicsSeen = Mapping[Side, Topic | None]

log = structlog.get_logger()


class TopicsAdmin:
    """Describes both topics, and how the control topic is cleaned. It connects with the first request.

    `control` is the control topic as described last; None if there is none, or Kafka does not say.
    """

    def __init__(
        self, topics: Mapping[Side, str], brokers: str, properties: Properties, control: str | None = None
    ) -> None:
        self._topics, self._control = topics, control
        self._brokers, self._properties = brokers, properties
        self.control: Control | None = None
        self._link = LinkFaults()

    @cached_property
    def _client(self) -> AdminClient:
        return admin_client(self._brokers, self._properties, self._link)

    def look(self) -> TopicsSeen:
        """Both topics as they are, None for a missing one. Raises SourceError."""
        described = self._described()
        self.control = self._found_control(described)
        return {side: self._topic(name, described[name]) for side, name in self._topics.items()}

    def both(self) -> Mapping[Side, Topic]:
        """Both topics as they are. Raises SourceError if one is missing, or Kafka does not answer."""
        found = {}
        for side, topic in self.look().items():
            if topic is None:
                raise NoTopic(f"topic {self._topics[side]}: there is no such topic")
            found[side] = topic
        return found

    def ends(self, topics: TopicsSeen, isolation: IsolationLevel) -> Positions:
        """The ends of these topics for a consumer that reads what is committed, or also what is not.

        Raises SourceError if the leader of a partition does not answer.
        """
        asked = {
            side: self._client.list_offsets(
                {TopicPartition(self._topics[side], partition): _LATEST for partition in topic.first},
                isolation_level=isolation,
                request_timeout=TIMEOUT_SECONDS,
            )
            for side, topic in topics.items()
            if topic is not None
        }
        try:
            return {
                side: {place.partition: end.result().offset for place, end in ends.items()}
                for side, ends in asked.items()
            }
        except KafkaException as error:
            raise self._silent(" or ".join(self._topics.values()), error) from None

    def is_as(self, look: TopicsSeen) -> bool:
        """Whether a look would see all as an earlier one: ids, partitions, cleaning. Raises SourceError."""
        described = self._described()
        control, before = self._control_now(described), self.control
        same = (
            control is None
            or before is None
            or control == (before.topic.partitions if before.topic else 0, before.id)
        )
        return same and all(
            topic is not None
            and (found := self._found(name, described[name])) is not None
            and str(found.topic_id) == topic.id
            and {partition.id for partition in found.partitions} == topic.first.keys()
            and self._policy(name) in {None, topic.cleanup_policy}
            for topic, name in ((look[side], name) for side, name in self._topics.items())
        )

    def _described(self) -> dict[str, Future[Any]]:
        self._client.poll(0)
        self._link.clear()
        names = TopicCollection([*self._topics.values(), *filter(None, [self._control])])
        return self._client.describe_topics(names, request_timeout=TIMEOUT_SECONDS)

    def offsets_at(self, side: Side, topic: Topic, timestamp_ms: int) -> dict[int, int]:
        """By partition, the first record from that time on; else the end. Raises SourceError."""
        name = self._topics[side]
        places = [TopicPartition(name, partition) for partition in topic.first]
        spec = OffsetSpec.for_timestamp(timestamp_ms)
        asked = self._client.list_offsets(dict.fromkeys(places, spec), request_timeout=TIMEOUT_SECONDS)
        try:
            found = {place.partition: future.result().offset for place, future in asked.items()}
        except KafkaException as error:
            raise self._silent(name, error) from None
        return {
            partition: topic.ends[partition] if offset < 0 else offset
            for partition, offset in sorted(found.items())
        }

    def _silent(self, name: str, error: KafkaException) -> SourceError:
        if error.args[0].code() in _REFUSED:
            return SourceError(f"kafka does not let this user describe topic {name}: extend its ACL")
        self._client.poll(0)
        told = self._link.reason(error)
        return SourceError(f"kafka at {self._brokers} does not answer for topic {name}: {told}")

    def _found(self, name: str, described: Future[Any]) -> Any:
        """A topic as Kafka describes it; None for a missing one. Raises SourceError."""
        try:
            return _found(described)
        except KafkaException as error:
            raise self._silent(name, error) from None

    def _found_control(self, described: Mapping[str, Future[Any]]) -> Control | None:
        found = self._control_now(described)
        if self._control is None or found is None:
            return None
        partitions, name = found
        return Control(BareTopic(partitions, self._policy(self._control)) if partitions else None, name)

    def _control_now(self, described: Mapping[str, Future[Any]]) -> tuple[int, str] | None:
        """The partitions of the control topic, 0 if it is missing, and its id; None if Kafka does not say."""
        if self._control is None:
            return None
        try:
            topic = self._found(self._control, described[self._control])
        except SourceError:
            return None  # Nothing that is compared depends on whether this topic may be described.
        return (0, "") if topic is None else (len(topic.partitions), str(topic.topic_id))

    def _topic(self, name: str, described: Future[Any]) -> Topic | None:
        topic = self._found(name, described)
        if topic is None:
            return None
        places = [TopicPartition(name, partition.id) for partition in topic.partitions]
        asked = [
            self._client.list_offsets(dict.fromkeys(places, spec), request_timeout=TIMEOUT_SECONDS)
            for spec in _SPECS
        ]
        policy = self._policy(name)
        try:
            first, last = (
                {place.partition: future.result() for place, future in each.items()} for each in asked
            )
        except KafkaException as error:
            raise self._silent(name, error) from None
        return Topic(
            str(topic.topic_id),
            {partition: found.offset for partition, found in sorted(first.items())},
            {partition: found.offset for partition, found in sorted(last.items())},
            policy,
        )

    def _policy(self, name: str) -> str | None:
        """How the topic is cleaned; None if Kafka does not tell, for which it takes a permission of its own.

        Raises SourceError if there is no answer: what the cleaner does meanwhile must not be vouched for.
        """
        try:
            return cleanup_policy(self._client, name, TIMEOUT_SECONDS)
        except KafkaException as error:
            if error.args[0].code() in _UNANSWERED:
                raise self._silent(name, error) from None
            return None


class TopicWatch:
    """Looks at the topics regularly and on request, on a thread of its own; `seen` is the latest result."""

    def __init__(self, admin: TopicsAdmin, every_seconds: float = LOOK_SECONDS) -> None:
        self._admin, self._every_seconds = admin, every_seconds
        self._wake = Event()
        self._stopped = False
        self._begun = 0
        self._thread = Thread(target=self._run, name="topics", daemon=True)
        self.seen = TopicsLook(0, {}, {}, {})
        self.trouble: str | None = None
        """Why the looks have failed for `every_seconds` or longer."""

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def look(self) -> int:
        """Request a look soon; returns the number of the next look that begins."""
        following = self._begun + 1
        self._wake.set()
        return following

    def _run(self) -> None:
        whole_at = monotonic() + self._every_seconds
        looked_at = monotonic()
        while True:
            self._wake.wait(max(0.0, whole_at - monotonic()))
            if self._stopped:
                return
            # In this order: from here on, callers get the number of a look that has not begun.
            self._wake.clear()
            self._begun += 1
            whole = monotonic() >= whole_at
            try:
                topics = self._topics(whole=whole)
                ends = [self._admin.ends(topics, isolation) for isolation in _ISOLATIONS]
                self.seen = TopicsLook(self._begun, topics, *ends)
            except SourceError as error:
                whole_at = monotonic() + RETRY_SECONDS
                if monotonic() - looked_at > self._every_seconds + TIMEOUT_SECONDS:
                    self.trouble = str(error)
                continue
            except Exception:  # Without this thread nobody would look any more, and nobody would know.
                log.exception("looking at the topics failed")
                whole_at = monotonic() + RETRY_SECONDS
                continue
            looked_at, self.trouble = monotonic(), None
            if whole:
                whole_at = monotonic() + self._every_seconds

    def _topics(self, *, whole: bool) -> TopicsSeen:
        before = self.seen.topics
        return before if before and not whole and self._admin.is_as(before) else self._admin.look()

    def stop(self) -> None:
        """Stop looking. A request on its way is left alone."""
        self._stopped = True
        self._wake.set()


def describe(brokers: str, names: Iterable[str], properties: Properties) -> dict[str, BareTopic | None]:
    """The topics with some names, None for one that is missing.

    Raises SourceError if Kafka does not answer in `DESCRIBE_SECONDS`, or refuses; at once if no host has the
    name of any broker. A closed port is tried again: a name may have several addresses.
    """
    topics: dict[str, BareTopic | None] = dict.fromkeys(names)
    link = LinkFaults()
    client = admin_client(brokers, properties, link)
    asked = client.describe_topics(TopicCollection([*topics]), request_timeout=DESCRIBE_SECONDS)
    while not (link.only_unknown_hosts or all(answer.done() for answer in asked.values())):
        client.poll(_POLL_SECONDS)
    if link.only_unknown_hosts:
        raise SourceError(f"kafka at {brokers} does not answer: {link.causes}")
    try:
        for name, answer in asked.items():
            if (found := _found(answer)) is not None:
                policy = cleanup_policy(client, name, DESCRIBE_SECONDS)
                topics[name] = BareTopic(len(found.partitions), policy)
    except KafkaException as error:
        client.poll(0)
        raise SourceError(f"kafka at {brokers} does not answer: {link.reason(error)}") from None
    return topics


def _found(described: Future[Any]) -> Any:
    """A topic as Kafka describes it, None for a missing one. Raises KafkaException."""
    try:
        return described.result()
    except KafkaException as error:
        if error.args[0].code() in _ABSENT:
            return None
        raise
