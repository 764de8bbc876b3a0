"""The laws of a source that also reads control records, for real Kafka and the shipped one in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from deploy.embedded.kafka import Kafka
from tests.support.stack import MakeTopic
from tests.support.topics import KafkaTopics
from tests.support.waiting import eventually
from twinstream.adapters.kafka.source import KafkaSource
from twinstream.adapters.memory import MemorySource
from twinstream.core.events import Side
from twinstream.ports import Control, ControlEntry, Source
from twinstream.spec.lint.topics import Topic

Say = Callable[[bytes | None], None]
Saying = tuple[Source, Say]
"""A source with a control topic, and who writes to that."""


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.requires_kafka)])
def saying(request: pytest.FixtureRequest) -> Saying:
    if request.param == "memory":
        memory = MemorySource()
        return memory, memory.say
    on_kafka: OnKafka = request.getfixturevalue("on_kafka")
    control = on_kafka.topic()
    return on_kafka.source(control), on_kafka.say(control)


class OnKafka:
    """Sources of two new topics each, and of a control topic, which are closed after the test."""

    def __init__(self, kafka: Kafka, topic: MakeTopic) -> None:
        self.kafka, self.topic, self.opened = kafka, topic, list[KafkaSource]()

    def source(self, control: str | None, **more: Any) -> KafkaSource:
        topics = {side: self.topic() for side in Side}
        self.opened.append(KafkaSource(self.kafka.brokers, "contract", topics, {}, control=control, **more))
        return self.opened[-1]

    def say(self, control: str) -> Say:
        """Writes to a control topic."""
        hand = KafkaTopics(self.kafka.brokers, {Side.LEFT: control})
        return lambda record: hand.append(Side.LEFT, 0, record)


@pytest.fixture
def on_kafka(kafka: Kafka, topic: MakeTopic) -> Iterator[OnKafka]:
    yield (made := OnKafka(kafka, topic))
    for source in made.opened:
        source.close()


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
def test_a_source_without_a_control_topic_says_nothing(on_kafka: OnKafka) -> None:
    source = on_kafka.source(None)
    source.follow(None)
    assert list(source.said()) == []
    source.topics()
    assert source.control() is None


@pytest.mark.requires_kafka
def test_a_control_topic_that_comes_later_is_read(on_kafka: OnKafka) -> None:
    control = f"{on_kafka.topic()}.control"
    source = on_kafka.source(control)
    source.follow(None)
    assert list(source.said()) == []
    assert not source.heard_all()
    on_kafka.kafka.create_topic(control, partitions=1)
    on_kafka.say(control)(b"0")
    assert _heard(source, 1) == [ControlEntry(0, b"0")]


@pytest.mark.requires_kafka
def test_how_the_control_topic_is_shows_with_every_look_at_the_topics(on_kafka: OnKafka) -> None:
    control = f"{on_kafka.topic()}.control"
    source = on_kafka.source(control, look_seconds=600)
    assert source.control() is None
    source.assign({side: described.first for side, described in source.topics().items()})
    assert source.control() == Control(None)
    source.follow(None)
    topics = KafkaTopics(on_kafka.kafka.brokers, {Side.LEFT: control})

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
    on_kafka.say(control)(b"0")
    assert _heard(source, 1) == [ControlEntry(0, b"0")]
    topics.set_cleanup_policy(Side.LEFT, "compact")
    source.topics()
    assert source.control() == Control(Topic(1, "compact"))


def test_in_memory_the_control_topic_is_what_it_is_said_to_be() -> None:
    source = MemorySource()
    assert source.control() == Control(Topic(1, "delete"))
    source.control_topic = None
    assert source.control() == Control(None)


@pytest.mark.requires_kafka
def test_control_records_that_are_gone_are_passed_over(on_kafka: OnKafka) -> None:
    control = on_kafka.topic()
    topics = KafkaTopics(on_kafka.kafka.brokers, {Side.LEFT: control})
    for number in range(4):
        topics.append(Side.LEFT, 0, b"%d" % number)
    topics.retain(Side.LEFT, 0, 3)
    source = on_kafka.source(control)
    source.follow(1)
    assert _heard(source, 1) == [ControlEntry(3, b"3")]
