"""The laws of a source that also reads control records, for real Kafka and the shipped one in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loadtest.memory import MemorySource
from tests.contract.conftest import Make, OpenSource
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually, gathered
from twinstream.core.events import Side
from twinstream.ports import Control, ControlEntry, Source
from twinstream.spec.lint.topics import Topic

Saying = tuple[Source, Callable[[bytes | None], None]]
"""A source with a control topic, and who writes to that."""


@pytest.fixture
def saying(open_source: OpenSource) -> Saying:
    source, _, say = open_source()
    return source, say


def _heard(source: Source, count: int) -> list[ControlEntry]:
    return gathered(source.said, lambda said: len(said) >= count, what=f"{count} control records")


def test_control_records_come_from_the_first_one_on(saying: Saying) -> None:
    source, say = saying
    say(b"0")
    source.follow(None)
    say(None)
    say(b"2")
    assert _heard(source, 3) == [ControlEntry(0, b"0"), ControlEntry(1, None), ControlEntry(2, b"2")]
    assert list(source.said()) == []


def test_control_records_come_from_where_reading_goes_on_and_once_more_where_it_is_told_again(
    saying: Saying,
) -> None:
    source, say = saying
    for record in (b"0", b"1", b"2"):
        say(record)
    source.follow(2)
    assert _heard(source, 1) == [ControlEntry(2, b"2")]
    source.follow(1)
    say(b"3")
    assert _heard(source, 3) == [ControlEntry(1, b"1"), ControlEntry(2, b"2"), ControlEntry(3, b"3")]


def test_all_is_heard_once_the_end_is_reached(saying: Saying) -> None:
    source, say = saying
    for record in (b"0", b"1"):
        say(record)
    assert (list(source.said()), source.heard_all()) == ([], False), "it does not follow yet"
    source.follow(None)

    def all_heard(said: list[ControlEntry]) -> bool:
        assert len(said) == 2 or not source.heard_all()
        return source.heard_all()

    said = gathered(source.said, all_heard, what="the end of the control topic")
    assert [one.record for one in said] == [b"0", b"1"]


@pytest.mark.requires_kafka
def test_a_source_without_a_control_topic_says_nothing(on_kafka: Make) -> None:
    source = on_kafka().source()
    source.follow(None)
    assert list(source.said()) == []
    source.topics()
    assert source.control() is None


@pytest.mark.requires_kafka
def test_a_control_topic_that_comes_later_is_read(on_kafka: Make, topic: MakeTopic) -> None:
    made = on_kafka(control=f"{topic()}.control")
    source = made.source()
    source.follow(None)
    assert list(source.said()) == []
    assert not source.heard_all()
    made.of_control.create_anew(Side.LEFT)
    made.say(b"0")
    assert _heard(source, 1) == [ControlEntry(0, b"0")]


@pytest.mark.requires_kafka
def test_how_the_control_topic_is_shows_with_every_look_at_the_topics(
    on_kafka: Make, topic: MakeTopic
) -> None:
    made = on_kafka(control=f"{topic()}.control")
    source, topics = made.source(look_seconds=600), made.of_control
    assert source.control() is None
    source.assign({side: described.first for side, described in source.topics().items()})
    assert source.control() == Control(None)
    source.follow(None)

    def shows(wanted: Topic | None) -> str:
        def looked() -> Control | None:
            source.look()
            control = source.control()
            return control if control is not None and control.topic == wanted else None

        found = eventually(looked, what=f"{wanted} is seen")
        assert found is not None
        return found.id

    topics.create_anew(Side.LEFT)
    first = shows(Topic(1, "delete"))
    topics.add_partition(Side.LEFT)
    assert shows(Topic(2, "delete")) == first
    topics.delete(Side.LEFT)
    assert shows(None) == ""
    topics.create_anew(Side.LEFT)
    assert shows(Topic(1, "delete")) not in ("", first)
    made.say(b"0")
    assert _heard(source, 1) == [ControlEntry(0, b"0")]
    topics.set_cleanup_policy(Side.LEFT, "compact")
    source.topics()
    assert (control := source.control()) is not None
    assert control.topic == Topic(1, "compact")


def test_in_memory_the_control_topic_is_what_it_is_said_to_be() -> None:
    source = MemorySource()
    assert source.control() == Control(Topic(1, "delete"), "control 1")
    source.create_control_anew()
    assert source.control() == Control(Topic(1, "delete"), "control 2")
    source.control_topic = None
    assert source.control() == Control(None)


@pytest.mark.requires_kafka
def test_control_records_that_are_gone_are_passed_over(on_kafka: Make, topic: MakeTopic) -> None:
    made = on_kafka(control=topic())
    for number in range(4):
        made.say(b"%d" % number)
    made.of_control.retain(Side.LEFT, 0, 3)
    source = made.source()
    source.follow(1)
    assert _heard(source, 1) == [ControlEntry(3, b"3")]
