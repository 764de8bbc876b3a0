"""The laws of a source, for real Kafka and the shipped one in memory."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.contract.conftest import Make, OpenSource
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually, gathered
from twinstream.adapters.kafka.records import KafkaEnds
from twinstream.adapters.kafka.results import ResultsTopics
from twinstream.adapters.kafka.source import KafkaSource, reading, whole_record
from twinstream.core.events import Place, Side
from twinstream.errors import SettingsError, SourceError
from twinstream.ports import Batch, Gap, Passed, Recalling, Source
from twinstream.spark.matcher.claim import make_topics
from twinstream.spec.decode.formats.envelope import Whole
from twinstream.spec.decode.formats.envelope import opened as opened_envelope

Write = Callable[[Side, int, bytes | None, int], None]
"""Writes a record to the end of a partition of a side, with a timestamp in milliseconds."""
Opened = tuple[Recalling, Write]
PARTITIONS = 2
HEADERS = [("a", b"1"), ("b", None)]


@pytest.fixture
def opened(open_source: OpenSource) -> Opened:
    source, topics, _ = open_source(PARTITIONS)
    return source, topics.append


@pytest.mark.requires_kafka
def test_a_whole_record_has_its_key_headers_time_and_partition(on_kafka: Make) -> None:
    made = on_kafka(PARTITIONS)
    made.write(b"{}", key=b"key", partition=1, timestamp=77, headers=HEADERS)
    made.write(None, partition=1, timestamp=78)
    source = made.source(read=whole_record)
    _begin(source)
    records = [record for batch in _read(source, Side.LEFT, 2) for record in batch.records]
    assert [opened_envelope(record) for record in records if record is not None] == [
        Whole(1, 77, b"key", [["a", b"1"], ["b", None]], b"{}"),
        Whole(1, 78, None, [], None),
    ]


@pytest.mark.requires_kafka
@pytest.mark.parametrize("asked", [True, False])
def test_headers_come_where_they_are_asked_for(on_kafka: Make, asked: bool) -> None:
    made = on_kafka()
    made.write(b"{}", headers=HEADERS)
    made.write(b"{}")
    source = made.source(headers=asked)
    _begin(source)
    batches = _read(source, Side.LEFT, 2)
    if asked:
        assert [list(headers) for batch in batches for headers in batch.headers or ()] == [HEADERS, []]
    else:
        assert [batch.headers for batch in batches] == [None] * len(batches)


@pytest.mark.requires_kafka
@pytest.mark.parametrize("asked", [True, False])
def test_keys_come_where_they_are_asked_for(on_kafka: Make, asked: bool) -> None:
    made = on_kafka()
    made.write(b"{}", key=b"k")
    made.write(b"{}")
    source = made.source(keys=asked)
    _begin(source)
    batches = _read(source, Side.LEFT, 2)
    keys = [key for batch in batches for key in batch.keys or ()]
    assert keys == ([b"k", None] if asked else [])


@pytest.mark.requires_kafka
@pytest.mark.parametrize("aborted", [False, True], ids=["committed", "aborted"])
def test_markers_of_transactions_and_aborted_records_at_the_end_of_a_partition_are_passed(
    on_kafka: Make, aborted: bool
) -> None:
    made = on_kafka(**{"transactional.id": uuid.uuid4().hex})
    made.producer.init_transactions(30)
    for fails in (False, aborted):
        made.producer.begin_transaction()
        made.write(b"0", b"1", b"2")
        made.producer.abort_transaction(30) if fails else made.producer.commit_transaction(30)
    source = made.source()
    _begin(source)
    found = gathered(
        lambda: source.poll(Side.LEFT, 0.1),
        lambda items: any(isinstance(item, Passed) and item.position == 8 for item in items),
        what="the end",
    )
    records = [item.offsets[-1] for item in found if isinstance(item, Batch)]
    assert (records[-1], source.ends()[Side.LEFT]) == (2 if aborted else 6, {0: 8})
    assert list(source.poll(Side.LEFT, 0.2)) == [], "they are passed once"


@pytest.mark.requires_kafka
def test_a_look_tells_the_ends_before_and_behind_the_records_of_an_open_transaction(on_kafka: Make) -> None:
    made = on_kafka(**{"transactional.id": uuid.uuid4().hex})
    made.producer.init_transactions(30)
    made.producer.begin_transaction()
    made.write(b"0", b"1")
    made.producer.commit_transaction(30)
    made.producer.begin_transaction()
    made.write(b"2", b"3")
    source = made.source()
    _begin(source)
    number = source.look()
    eventually(lambda: source.seen().number >= number, what="a look is made")
    seen = source.seen()
    assert (seen.ends[Side.LEFT], seen.written[Side.LEFT]) == ({0: 3}, {0: 5})
    made.producer.abort_transaction(30)


@pytest.mark.requires_kafka
def test_where_a_partition_ends_that_another_reads_is_told_without_markers_of_transactions(
    on_kafka: Make,
) -> None:
    made = on_kafka(partitions=2, **{"transactional.id": uuid.uuid4().hex})
    made.producer.init_transactions(30)
    for partition, fails in ((0, False), (0, True), (1, True)):
        made.producer.begin_transaction()
        made.write(b"0", b"1", partition=partition)
        made.producer.abort_transaction(30) if fails else made.producer.commit_transaction(30)
    topic, ends = made.topics[Side.LEFT], KafkaEnds(reading(made.brokers, "t", {}))
    assert [ends.end(topic, 0, position) for position in (0, 1, 2, 6)] == [(6, 6), (6, 6), (2, 6), (6, 6)]
    assert ends.ended(topic, {0: 1, 1: 0}) == {1: 3}
    assert ends.ended(topic, {0: 2, 1: 3}) == {0: 6, 1: 3}
    made.producer.begin_transaction()
    made.write(b"0", partition=0)
    assert [ends.end(topic, 0, position) for position in (0, 2, 6)] == [(7, 7), (2, 6), (6, 6)]
    assert ends.ended(topic, {0: 2, 1: 3}) == {0: 6, 1: 3}, "the record of the open one is behind these"


@pytest.mark.requires_kafka
def test_a_partition_begins_with_its_first_committed_record(on_kafka: Make) -> None:
    made = on_kafka(partitions=4, **{"transactional.id": uuid.uuid4().hex})
    made.producer.init_transactions(30)
    for time, fails in ((1000, True), (2000, False), (3000, False)):
        made.producer.begin_transaction()
        made.write(b"0", b"1", partition=0, timestamp=time)
        made.write(b"0", partition=1 if fails else 2, timestamp=time)
        made.producer.abort_transaction(30) if fails else made.producer.commit_transaction(30)
    source = made.source()
    _begin(source)
    begins = {Side.LEFT: {0: 2000, 2: 2000}, Side.RIGHT: {}}

    def found() -> Mapping[Side, Mapping[int, int]]:
        with suppress(SourceError):  # The end of a transaction takes a moment.
            return source.begins_ms()
        return {}

    eventually(lambda: found() == begins, what="the aborted records are no beginning")
    made.producer.begin_transaction()
    made.write(b"0", partition=2, timestamp=4000)
    assert source.begins_ms() == begins
    made.write(b"0", partition=1, timestamp=4000)
    with pytest.raises(SourceError, match=r"partition 1 of .* begins with an open transaction: wait for its"):
        source.begins_ms()
    made.producer.commit_transaction(30)
    begins[Side.LEFT][1] = 4000
    eventually(lambda: found() == begins, what="the committed record is the beginning")


def _begin(source: Source) -> None:
    """Read both topics from their first records on. New partitions may have no leader for a moment."""

    def answered() -> bool:
        try:
            source.assign({side: topic.first for side, topic in source.topics().items()})
        except SourceError:
            return False
        return True

    eventually(answered, what="Kafka answers for new topics")


def _read(source: Source, side: Side, count: int) -> list[Batch]:
    return gathered(
        lambda: (item for item in source.poll(side, 0.1) if isinstance(item, Batch)),
        lambda batches: sum(len(batch.records) for batch in batches) >= count,
        what=f"{count} records of {side.name}",
    )


def test_records_come_in_the_order_of_their_partition_with_offset_and_time(opened: Opened) -> None:
    source, write = opened
    assert [topic.first for topic in source.topics().values()] == [{0: 0, 1: 0}] * 2
    _begin(source)
    assert list(source.poll(Side.LEFT, 0.0)) == [], "nothing new is no error"
    written = [b"0", b"1", None, b"3", b"4"]
    for number, record in enumerate(written):
        write(Side.LEFT, 1, record, 1000 + number)
    batches = _read(source, Side.LEFT, 5)
    assert {(batch.side, batch.partition) for batch in batches} == {(Side.LEFT, 1)}
    assert [record for batch in batches for record in batch.records] == written
    assert [offset for batch in batches for offset in batch.offsets] == [0, 1, 2, 3, 4]
    assert [at for batch in batches for at in batch.timestamps_ms] == [1000, 1001, 1002, 1003, 1004]
    assert (source.ends()[Side.LEFT][1], source.trouble()) == (5, None)


@pytest.mark.requires_kafka
def test_times_outside_of_the_calendar_come_as_they_are(on_kafka: Make) -> None:
    made, times_ms = on_kafka(), [-5000, 1_790_000_000_000_000, 7]
    for at_ms in times_ms:
        made.write(b"{}", timestamp=at_ms)
    source = made.source()
    _begin(source)
    batches = _read(source, Side.LEFT, 3)
    assert [at_ms for batch in batches for at_ms in batch.timestamps_ms] == times_ms


def test_a_batch_holds_one_partition_of_one_side(opened: Opened) -> None:
    source, write = opened
    _begin(source)
    for number in range(6):
        write(Side.RIGHT, number % 2, b"%d" % number, 1)
    for batch in _read(source, Side.RIGHT, 6):
        assert batch.side is Side.RIGHT
        assert {int(record or b"0") % 2 for record in batch.records} == {batch.partition}


def test_reading_goes_on_where_it_is_told_to(opened: Opened) -> None:
    source, write = opened
    for number in range(4):
        write(Side.LEFT, 0, b"%d" % number, 1)
    source.assign({Side.LEFT: {0: 2, 1: 0}, Side.RIGHT: {0: 0, 1: 0}})
    batches = _read(source, Side.LEFT, 2)
    assert [record for batch in batches for record in batch.records] == [b"2", b"3"]


@pytest.mark.requires_kafka
def test_a_topic_that_does_not_exist_is_named(on_kafka: Make) -> None:
    made = on_kafka()
    made.topics[Side.RIGHT] = "no-such-topic"
    with pytest.raises(SourceError, match="topic no-such-topic"):
        made.source().topics()


def test_a_wrong_librdkafka_property_is_named() -> None:
    topics = {Side.LEFT: "a", Side.RIGHT: "b"}
    wrong = {"securty.protocol": "ssl"}
    for make in (
        lambda: KafkaSource("127.0.0.1:1", "contract", topics, wrong),
        lambda: ResultsTopics("127.0.0.1:1", "results", wrong),
        lambda: make_topics("127.0.0.1:1", "results", wrong),
    ):
        with pytest.raises(SettingsError, match="kafka settings: No such configuration property"):
            make()


@pytest.mark.requires_kafka
def test_records_that_retention_took_are_a_gap_with_both_offsets(on_kafka: Make) -> None:
    made = on_kafka()
    made.write(*[b"x"] * 10)
    made.hand.retain(Side.LEFT, 0, 6)
    source = made.source()
    source.assign({Side.LEFT: {0: 2}, Side.RIGHT: {0: 0}})
    gap, *batches = gathered(
        lambda: source.poll(Side.LEFT, 0.1),
        lambda found: any(isinstance(item, Batch) for item in found),
        what="records behind the gap",
    )
    assert gap == Gap(Side.LEFT, 0, 2, 6)
    assert [list(item.offsets) for item in batches if isinstance(item, Batch)] == [[6, 7, 8, 9]]


@pytest.mark.requires_kafka
@pytest.mark.parametrize("fetched_ahead", ["much", "little"])
def test_of_records_deleted_while_they_are_read_each_comes_or_is_in_a_gap_in_order(
    on_kafka: Make, fetched_ahead: str
) -> None:
    made = on_kafka(**{"batch.num.messages": 100})
    made.write(*(b"%d" % number for number in range(8000)))
    little = {"queued.min.messages": 100, "fetch.message.max.bytes": 2000}
    source = made.source(little if fetched_ahead == "little" else {})
    source.assign({Side.LEFT: {0: 0}, Side.RIGHT: {0: 0}})

    def read_up_to(offset: int) -> list[Batch | Gap]:
        return gathered(
            lambda: source.poll(Side.LEFT, 0.1),
            lambda found: found and _ends(found[-1])[1] >= offset,
            what=f"all up to {offset}",
        )

    found = read_up_to(1)
    made.hand.retain(Side.LEFT, 0, 7000)
    found += read_up_to(8000)
    ends = [0, *(end for _, end in map(_ends, found))]
    assert [start for start, _ in map(_ends, found)] == ends[:-1]
    gaps = [item for item in found if isinstance(item, Gap)]
    assert [gap.available for gap in gaps] == [7000] * len(gaps)
    assert gaps or fetched_ahead == "much"


def _ends(item: Batch | Gap) -> tuple[int, int]:
    """The first offset of what was read, and the one behind the last."""
    if isinstance(item, Gap):
        return item.wanted, item.available
    assert list(item.offsets) == list(range(item.offsets[0], item.offsets[-1] + 1))
    return item.offsets[0], item.offsets[-1] + 1


def test_records_are_read_again_at_their_places_and_those_that_are_gone_are_named(opened: Opened) -> None:
    source, write = opened
    for number in range(4):
        write(Side.LEFT, 1, b"%d" % number, 0)
    write(Side.RIGHT, 0, b"other", 0)
    write(Side.RIGHT, 0, None, 0)
    _begin(source)
    _read(source, Side.LEFT, 4)
    wanted = [(Side.LEFT, 1, 3), (Side.LEFT, 1, 0), *((Side.RIGHT, 0, offset) for offset in (0, 1, 7))]
    found: dict[Place, bytes | None] = {}

    def all_read() -> bool:
        found.update(source.recall([place for place in wanted if place not in found], 1.0))
        return found.keys() == set(wanted)

    eventually(all_read, what="all of them are read")
    assert [found[place] for place in wanted] == [b"3", b"0", b"other", None, None]
    write(Side.LEFT, 1, b"next", 0)
    assert _read(source, Side.LEFT, 1)[0].offsets == range(4, 5), "where it reads on is not touched"


def test_a_paused_partition_is_left_alone_and_read_on_from_where_it_was(opened: Opened) -> None:
    source, write = opened
    for number in range(4):
        write(Side.LEFT, number % 2, b"%d" % number, 1)
    _begin(source)
    source.pause(Side.LEFT, [1])
    first = _read(source, Side.LEFT, 2)
    assert {batch.partition for batch in first} == {0}
    assert not source.poll(Side.LEFT, 0.2)
    source.pause(Side.LEFT, [0])
    write(Side.LEFT, 0, b"4", 1)
    (second,) = _read(source, Side.LEFT, 2)
    assert (second.partition, list(second.records)) == (1, [b"1", b"3"])
    source.pause(Side.LEFT, [])
    assert [list(batch.records) for batch in _read(source, Side.LEFT, 1)] == [[b"4"]]
    source.pause(Side.LEFT, [0, 1])
    write(Side.RIGHT, 0, b"0", 1)
    assert _read(source, Side.RIGHT, 1), "the other side goes on"


@pytest.mark.requires_kafka
def test_pauses_lose_no_record_and_bring_none_twice(on_kafka: Make) -> None:
    partitions, count = 5, 40_000
    made = on_kafka(partitions)
    for partition in range(partitions):
        made.write(*(b"%d" % number for number in range(count // partitions)), partition=partition)
    source = made.source({"max.partition.fetch.bytes": 20_000})
    _begin(source)
    draw = random.Random(1)
    offsets: dict[int, list[int]] = {partition: [] for partition in range(partitions)}

    def all_read() -> bool:
        for _ in range(20):
            source.pause(Side.LEFT, draw.sample(range(partitions), draw.randint(0, partitions - 1)))
            for batch in source.poll(Side.LEFT, 0.01):
                assert isinstance(batch, Batch)
                offsets[batch.partition].extend(batch.offsets)
        return sum(map(len, offsets.values())) >= count

    eventually(all_read, seconds=60, what="all is read")
    assert all(read == list(range(count // partitions)) for read in offsets.values())


@pytest.mark.requires_kafka
def test_both_topics_are_known_before_any_of_them_is_assigned(
    on_kafka: Make, topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Noting(Consumer):
        def list_topics(self, *args: Any) -> Any:
            asked.append(f"{args[0]} is asked for")
            return super().list_topics(*args)

        def assign(self, places: list[TopicPartition]) -> None:
            asked.append(f"{places[0].topic} is assigned")
            super().assign(places)

    monkeypatch.setattr("twinstream.adapters.kafka.source.Consumer", Noting)
    made = on_kafka(PARTITIONS, topic())
    source = made.source()
    _begin(source)
    source.follow(None)
    names = made.topics.values()
    assert asked[:4] == [f"{name} is {done}" for done in ("asked for", "assigned") for name in names]
    assert [line.split(" ", 1)[1] for line in asked[4:]] == ["is asked for", "is assigned"]
