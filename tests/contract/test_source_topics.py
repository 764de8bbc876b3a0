"""What a source says of the topics themselves, for real Kafka and the shipped one in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from loadtest.memory import MemorySource
from tests.contract.conftest import Opened, OpenSource
from tests.support.guarded_kafka import Guarded
from tests.support.topics import KafkaTopics
from tests.support.waiting import eventually, gathered
from twinstream.adapters.kafka import source as source_module
from twinstream.adapters.kafka.source import KafkaSource
from twinstream.core.events import Side
from twinstream.errors import SourceError
from twinstream.ports import Batch, Gap, Mark, Topic


@pytest.fixture
def opened(open_source: OpenSource) -> Opened:
    return open_source(look_seconds=0.1)


def _begun(opened: Opened) -> None:
    opened.source.assign({side: topic.first for side, topic in opened.source.topics().items()})


def _looked(opened: Opened) -> None:
    """A look that is asked for now comes."""
    number = opened.source.look()
    assert opened.source.seen().number <= number
    eventually(lambda: opened.source.seen().number >= number, what="the look")


def _seen(opened: Opened) -> Topic:
    """The candidate's topic as the source sees it by itself."""
    topic = eventually(lambda: opened.source.seen().topics.get(Side.RIGHT), what="the topic is seen")
    assert topic is not None
    return topic


def test_a_topic_is_described_by_its_offsets_its_first_time_and_how_it_is_cleaned(opened: Opened) -> None:
    for number in range(5):
        opened.topics.append(Side.LEFT, 0, b"x", 1000 + number)
    opened.topics.retain(Side.LEFT, 0, 2)
    topics = opened.source.topics()
    assert topics[Side.LEFT][1:] == ({0: 2}, {0: 5}, "delete")
    assert topics[Side.RIGHT][1:] == ({0: 0}, {0: 0}, "delete")
    assert opened.source.begins_ms() == {Side.LEFT: {0: 1002}, Side.RIGHT: {}}


def test_a_look_that_is_asked_for_comes_soon_and_without_a_change_has_the_same_topics(opened: Opened) -> None:
    described = opened.source.topics()[Side.RIGHT]
    assert opened.source.seen()[:2] == (0, {}), "it looks once the topics are read"
    _begun(opened)
    assert _seen(opened) == described
    before = opened.source.seen().topics
    for _ in range(3):
        _looked(opened)
        assert opened.source.seen().topics == before


def test_a_look_that_is_asked_for_sees_that_a_topic_was_created_anew_and_that_it_is_gone(
    opened: Opened,
) -> None:
    _begun(opened)
    before = _seen(opened).id
    opened.topics.create_anew(Side.RIGHT)
    _looked(opened)
    assert _seen(opened).id == opened.source.topics()[Side.RIGHT].id != before
    opened.topics.delete(Side.RIGHT)
    _looked(opened)
    assert opened.source.seen().topics[Side.RIGHT] is None
    with pytest.raises(SourceError, match="there is no such topic"):
        opened.source.topics()


def test_a_partition_that_was_added_is_seen_and_can_be_read_from_then_on(opened: Opened) -> None:
    _begun(opened)
    opened.topics.add_partition(Side.RIGHT)
    opened.topics.append(Side.RIGHT, 1, b"new", 7)
    eventually(lambda: _seen(opened).first.keys() == {0, 1}, what="it has two partitions")
    opened.source.extend(Side.RIGHT, 1, 0)
    opened.topics.append(Side.RIGHT, 0, b"old", 7)
    found = gathered(
        lambda: opened.source.poll(Side.RIGHT, 0.1), lambda found: len(found) == 2, what="both are read"
    )
    read = {(item.partition, *item.records) for item in found if isinstance(item, Batch)}
    assert read == {(0, b"old"), (1, b"new")}


def test_a_look_that_is_asked_for_sees_that_a_topic_is_compacted_now(open_source: OpenSource) -> None:
    opened = open_source(look_seconds=3600)
    _begun(opened)
    _looked(opened)
    opened.topics.set_cleanup_policy(Side.RIGHT, "compact")

    def compacted() -> bool:
        _looked(opened)
        return _seen(opened).cleanup_policy == "compact"

    eventually(compacted, what="it is compacted")


def test_a_topic_created_anew_and_shorter_is_a_gap_with_both_offsets(opened: Opened) -> None:
    for _ in range(5):
        opened.topics.append(Side.RIGHT, 0, b"x", 1)
    opened.source.assign({side: {0: 5 if side is Side.RIGHT else 0} for side in Side})
    opened.topics.create_anew(Side.RIGHT)
    opened.topics.append(Side.RIGHT, 0, b"new", 1)
    found = gathered(
        lambda: opened.source.poll(Side.RIGHT, 0.1),
        lambda found: any(isinstance(item, Batch) for item in found),
        what="records of the new topic",
    )
    assert found[0] == Gap(Side.RIGHT, 0, 5, 0)


def test_the_end_of_a_topic_created_anew_is_its_own_though_the_longer_one_was_read_to_its_end(
    opened: Opened,
) -> None:
    for _ in range(5):
        opened.topics.append(Side.RIGHT, 0, b"x", 1)
    _begun(opened)
    eventually(
        lambda: not opened.source.poll(Side.RIGHT, 0.5) and opened.source.ends()[Side.RIGHT] == {0: 5},
        what="all is read",
    )
    opened.topics.create_anew(Side.RIGHT)
    opened.topics.append(Side.RIGHT, 0, b"new", 1)
    gathered(lambda: opened.source.poll(Side.RIGHT, 0.1), bool, what="the gap")
    _looked(opened)
    assert opened.source.seen().ends[Side.RIGHT] == {0: 1}


def test_what_the_group_is_given_it_remembers_by_partition(opened: Opened) -> None:
    _begun(opened)
    assert opened.source.remembered() == {side: {} for side in Side}
    opened.source.remember({Side.LEFT: {0: Mark(7, "a note")}, Side.RIGHT: {0: Mark(3, "another")}})
    wanted = {Side.LEFT: {0: Mark(7, "a note")}, Side.RIGHT: {0: Mark(3, "another")}}

    def remembered() -> bool:
        opened.source.poll(Side.LEFT, 0.1)
        return opened.source.remembered() == wanted

    eventually(remembered, what="both are remembered")


def test_reading_may_be_bounded_by_time(opened: Opened) -> None:
    for number in range(5):
        opened.topics.append(Side.LEFT, 0, b"x", 1000 + number)
    assert opened.source.bound() is None
    if isinstance(opened.source, MemorySource):
        opened.source.read_from_ms = 1003
    else:
        opened.source._read_from = 1003  # type: ignore[attr-defined]
    assert opened.source.bound() == {Side.LEFT: {0: 3}, Side.RIGHT: {0: 0}}


@pytest.mark.requires_kafka
def test_a_topic_that_may_not_be_read_for_a_while_is_named_and_then_read_without_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "REFUSED_RETRY_SECONDS", 0.2)
    with Guarded(tmp_path) as broker:
        topics = {side: broker.create_topic(f"rides.{side.name}") for side in Side}
        hand = KafkaTopics(broker.brokers, topics)
        source = KafkaSource(broker.brokers, "rides", topics, {}, look_seconds=0.2)
        source.assign({side: {0: 0} for side in Side})
        read: list[bytes | None] = []

        def trouble() -> str | None:
            for item in source.poll(Side.RIGHT, 0.1):
                assert isinstance(item, Batch)
                read.extend(item.records)
            return source.trouble()

        hand.append(Side.RIGHT, 0, b"before", 1)
        eventually(lambda: trouble() is None and read == [b"before"], what="it is read")
        refused = f"kafka does not let this user read topic {topics[Side.RIGHT]}: extend its ACL"
        broker.deny(AclOperation.READ, topics[Side.RIGHT])
        hand.append(Side.RIGHT, 0, b"meanwhile", 1)
        eventually(lambda: trouble() == refused, what="the refusal is told")
        broker.allow(AclOperation.READ, topics[Side.RIGHT])
        eventually(lambda: trouble() is None, what="it may be read again")
        eventually(lambda: trouble() is None and read == [b"before", b"meanwhile"], what="nothing was lost")
        broker.deny(AclOperation.READ, topics[Side.RIGHT])
        eventually(lambda: trouble() == refused, what="the refusal of an idle topic is told")
        broker.allow(AclOperation.READ, topics[Side.RIGHT])
        eventually(lambda: trouble() is None, what="an idle topic may be read again")
        broker.deny(AclOperation.DESCRIBE, topics[Side.LEFT])
        described = f"kafka does not let this user describe topic {topics[Side.LEFT]}: extend its ACL"
        eventually(lambda: trouble() == described, what="looks fail")
        source.close()
