"""The laws of a source that also reads control records, for real Kafka and the shipped one in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.embedded.kafka import Kafka
from tests.support.stack import MakeTopic
from tests.support.topics import KafkaTopics
from tests.support.waiting import eventually
from twinstream.adapters.kafka.source import KafkaSource
from twinstream.adapters.memory import MemorySource
from twinstream.core.events import Side
from twinstream.ports import Control, ControlEntry, Source
from twinstream.spec.lint.topics import Topic

Saying = tuple[Source, Callable[[bytes | None], None]]
"""A source with a control topic, and who writes to that."""


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.requires_kafka)])
def saying(request: pytest.FixtureRequest) -> Iterator[Saying]:
    if request.param == "memory":
        memory = MemorySource()
        yield memory, memory.say
        return
    kafka: Kafka = request.getfixturevalue("kafka")
    make: MakeTopic = request.getfixturevalue("topic")
    control = make()
    source = _source(kafka, make, control)
    yield source, lambda record: _say(kafka, control, record)
    source.close()


def _source(kafka: Kafka, make: MakeTopic, control: str | None) -> KafkaSource:
    return KafkaSource(kafka.brokers, "contract", {side: make() for side in Side}, {}, control=control)


def _say(kafka: Kafka, control: str, record: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": kafka.brokers})
    producer.produce(control, record)
    producer.flush()


def _heard(source: Source, count: int) -> list[ControlEntry]:
    said: list[ControlEntry] = []

    def enough() -> bool:
        said.extend(source.said())
        return len(said) >= count

    eventually(enough, what=f"{count} control records")
    return said


def test_control_records_come_from_the_first_one_on(saying: Saying) -> None:
    source, say = saying
    say(b"0")
    source.follow(None)
    say(None)
    say(b"2")
    assert _heard(source, 3) == [ControlEntry(0, b"0"), ControlEntry(1, None), ControlEntry(2, b"2")]
    assert list(source.said()) == []


def test_control_records_come_from_where_reading_goes_on(saying: Saying) -> None:
    source, say = saying
    for record in (b"0", b"1", b"2"):
        say(record)
    source.follow(2)
    assert _heard(source, 1) == [ControlEntry(2, b"2")]


def test_followed_again_control_records_come_from_there_once_more(saying: Saying) -> None:
    source, say = saying
    for record in (b"0", b"1", b"2"):
        say(record)
    source.follow(None)
    assert len(_heard(source, 3)) == 3
    source.follow(1)
    say(b"3")
    assert _heard(source, 3) == [ControlEntry(1, b"1"), ControlEntry(2, b"2"), ControlEntry(3, b"3")]


def test_all_is_heard_once_the_end_is_reached(saying: Saying) -> None:
    source, say = saying
    for record in (b"0", b"1"):
        say(record)
    assert not source.heard_all()
    source.follow(None)
    said: list[ControlEntry] = []

    def all_heard() -> bool:
        assert not (source.heard_all() and len(said) < 2)
        said.extend(source.said())
        return source.heard_all()

    eventually(all_heard, what="the end of the control topic")
    assert [one.record for one in said] == [b"0", b"1"]


def test_before_a_source_follows_nothing_is_said(saying: Saying) -> None:
    source, say = saying
    say(b"0")
    assert list(source.said()) == []


@pytest.mark.requires_kafka
def test_a_source_without_a_control_topic_says_nothing(kafka: Kafka, topic: MakeTopic) -> None:
    source = _source(kafka, topic, None)
    source.follow(None)
    assert list(source.said()) == []
    source.topics()
    assert source.control() is None
    source.close()


@pytest.mark.requires_kafka
def test_a_control_topic_that_comes_later_is_read(kafka: Kafka, topic: MakeTopic) -> None:
    control = f"{topic()}.control"
    source = _source(kafka, topic, control)
    source.follow(None)
    assert list(source.said()) == []
    assert not source.heard_all()
    kafka.create_topic(control, partitions=1)
    _say(kafka, control, b"0")
    assert _heard(source, 1) == [ControlEntry(0, b"0")]
    source.close()


@pytest.mark.requires_kafka
def test_how_the_control_topic_is_shows_with_every_look_at_the_topics(kafka: Kafka, topic: MakeTopic) -> None:
    names = {side: topic() for side in Side}
    control = f"{names[Side.LEFT]}.control"
    source = KafkaSource(kafka.brokers, "contract", names, {}, control=control, look_seconds=600)
    assert source.control() is None
    source.assign({side: described.first for side, described in source.topics().items()})
    assert source.control() == Control(None)
    source.follow(None)
    topics = KafkaTopics(kafka.brokers, {Side.LEFT: control})

    def shows(wanted: Control) -> None:
        def looked() -> bool:
            source.look()
            return source.control() == wanted

        eventually(looked, what=f"{wanted} is seen")

    topics.create_anew(Side.LEFT)
    shows(Control(Topic(1, "delete")))
    topics.add_partition(Side.LEFT)
    shows(Control(Topic(2, "delete")))
    topics.delete(Side.LEFT)
    shows(Control(None))
    topics.create_anew(Side.LEFT)
    shows(Control(Topic(1, "delete")))
    _say(kafka, control, b"0")
    assert _heard(source, 1) == [ControlEntry(0, b"0")]
    topics.set_cleanup_policy(Side.LEFT, "compact")
    source.topics()
    assert source.control() == Control(Topic(1, "compact"))
    source.close()


def test_in_memory_the_control_topic_is_what_it_is_said_to_be() -> None:
    source = MemorySource()
    assert source.control() == Control(Topic(1, "delete"))
    source.control_topic = None
    assert source.control() == Control(None)


@pytest.mark.requires_kafka
def test_control_records_that_are_gone_are_passed_over(kafka: Kafka, topic: MakeTopic) -> None:
    control = topic()
    for number in range(4):
        _say(kafka, control, b"%d" % number)
    admin = AdminClient({"bootstrap.servers": kafka.brokers})
    for deleted in admin.delete_records([TopicPartition(control, 0, 3)]).values():
        deleted.result(timeout=10)
    source = _source(kafka, topic, control)
    source.follow(1)
    assert _heard(source, 1) == [ControlEntry(3, b"3")]
    source.close()
