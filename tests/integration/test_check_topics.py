"""`twinstream check --brokers` as a CI job runs it, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from deploy.embedded.kafka import Kafka
from tests.support.commands import twinstream
from tests.support.stack import MakeTopic
from twinstream.core.events import Side

SPEC = """
version: 1
name: t
reference: {{topic: {}}}
candidate: {{topic: {}}}
order: {{per_key: [k]}}
{}
"""
IN_ORDER = {"enable.idempotence": True}
"""A record that is sent again keeps its place."""
START_MS = 1_700_000_000_000

pytestmark = [pytest.mark.requires_kafka, pytest.mark.timeout(120)]


class Topics:
    """Two topics, and their comparison file in a folder."""

    def __init__(self, kafka: Kafka, make: MakeTopic, folder: Path) -> None:
        self.kafka, self.folder = kafka, folder
        self.names = [make(partitions=2), make(partitions=2)]
        self.describe()

    def describe(self, more: str = "") -> None:
        (self.folder / "spec.yaml").write_text(SPEC.format(*self.names, more))

    def write(self, side: Side, numbers: Sequence[int], delay_ms: int = 0, **config: Any) -> Producer:
        """Events a second apart, by their keys to two partitions; a transaction is left open."""
        producer = Producer({"bootstrap.servers": self.kafka.brokers, "log_level": 0, **IN_ORDER, **config})
        if "transactional.id" in config:
            producer.init_transactions()
            producer.begin_transaction()
        for n in numbers:
            value = json.dumps({"k": n % 3, "n": n}).encode()
            producer.produce(
                self.names[side], value, partition=n % 3 % 2, timestamp=START_MS + 1000 * n + delay_ms
            )
        assert producer.flush(30) == 0
        return producer

    def command(self, *arguments: str) -> tuple[int, str, str]:
        asked = ("check", "spec.yaml", "--brokers", self.kafka.brokers)
        return twinstream(*asked, *arguments, folder=self.folder)

    def check(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        code, out, err = self.command("--json", *arguments)
        assert err == "", err
        return code, json.loads(out)

    def refused(self, *arguments: str) -> tuple[int, str]:
        code, out, err = self.command(*arguments)
        assert (out, len(err.splitlines())) == ("", 1)
        return code, err


@pytest.fixture
def topics(kafka: Kafka, topic: MakeTopic, tmp_path: Path) -> Topics:
    return Topics(kafka, topic, tmp_path)


def test_whole_topics_are_compared_and_the_ranges_told(topics: Topics) -> None:
    assert (topics.check()[0], topics.check("--allow-empty")[0]) == (3, 0)
    topics.write(Side.LEFT, range(60))
    topics.write(Side.RIGHT, range(60))
    code, answer = topics.check()
    assert (code, answer["verdict"], answer["matched"]) == (0, "EQUIVALENT", 60)
    whole = {"0": {"from": 0, "to": 40, "read_from": 0, "read_to": 40},
             "1": {"from": 0, "to": 20, "read_from": 0, "read_to": 20}}  # fmt: skip
    assert answer["ranges"]["candidate"]["partitions"] == whole
    assert (answer["coverage"]["keys"], answer["coverage"]["kinds"]["event"]["varied"]) == (3, ["k", "n"])

    code, out, err = topics.command()
    assert (code, err) == (0, "")
    told = "compared: from earliest to latest; reference {} 0:0-40 1:0-20, candidate {} "
    assert told.format(*topics.names) in out


def test_a_range_of_times_finds_a_loss_and_forgives_what_was_written_later(topics: Topics) -> None:
    topics.write(Side.LEFT, range(60))
    topics.write(Side.RIGHT, [n for n in range(60) if n != 33], delay_ms=1500)
    begin, end = "2023-11-14T22:13:40Z", "2023-11-14T22:14:05Z"  # from event 20 up to event 44
    code, answer = topics.check("--from", begin, "--to", end, "--slack", "2s")
    assert (code, answer["divergences"]["by_kind"]["missing"]) == (1, 1)
    assert answer["examples"][0]["reference"] == {"k": 0, "n": 33}
    assert answer["ranges"]["reference"]["records"] == 25
    assert answer["ranges"]["reference"]["records_beside"] == 4
    code, answer = topics.check("--from", begin, "--to", "2023-11-14T22:13:52Z", "--slack", "2s")
    assert (code, answer["verdict"]) == (0, "EQUIVALENT")
    # Too little slack: now and then a partner lies beyond it, which must not become a difference unseen.
    code, answer = topics.check("--from", begin, "--to", "2023-11-14T22:13:52Z", "--slack", "0s")
    assert code in {1, 3}


def test_offsets_of_each_side_are_compared_which_also_the_start_of_the_file_may_name(topics: Topics) -> None:
    topics.write(Side.LEFT, range(30))
    topics.write(Side.RIGHT, range(15, 30))
    code, answer = topics.check("--from", "reference:0=10,1=5")
    assert (code, answer["matched"]) == (0, 15)
    unnamed = "twinstream: --from: partition 1 of the reference is not named\n"
    assert topics.refused("--from", "reference:0=10") == (2, unnamed)
    topics.describe("start: {at: offsets, reference: {0: 10, 1: 5}, candidate: {0: 0, 1: 0}}")
    code, answer = topics.check()
    assert (code, answer["matched"], answer["ranges"]["from"]) == (0, 15, "offsets")


def test_what_a_retry_wrote_again_is_told_by_headers_and_keys_are_read(topics: Topics) -> None:
    """The candidate has written its batch twice; the order is by the record's key."""
    spec = (topics.folder / "spec.yaml").read_text().replace("[k]", "[$key]")
    (topics.folder / "spec.yaml").write_text(f"{spec}duplicates: {{policy: replays}}\n")
    for side, attempts in ((Side.LEFT, "a"), (Side.RIGHT, "ab")):
        producer = Producer({"bootstrap.servers": topics.kafka.brokers, "log_level": 0, **IN_ORDER})
        for attempt in attempts:
            marks = {"query": "q", "batch": "0", "attempt": f"{attempt}/0.0"}
            headers = [(f"twinstream-{name}", value.encode()) for name, value in marks.items()]
            for n in range(4):
                producer.produce(topics.names[side], b"%d" % n, b"key", partition=0, headers=headers)
        assert producer.flush(30) == 0
    code, answer = topics.check()
    assert (code, answer["matched"], answer["accounts"]["candidate"]["replayed"]) == (0, 4, 4)


def test_markers_of_transactions_are_no_records_and_hold_up_nothing(topics: Topics) -> None:
    """The end of each partition, and half of the reference, is what a transaction leaves behind."""
    topics.write(Side.LEFT, range(10))
    topics.write(Side.LEFT, range(100, 110), **{"transactional.id": "aborted"}).abort_transaction(30)
    topics.write(Side.RIGHT, range(10), **{"transactional.id": "done"}).commit_transaction(30)
    code, answer = topics.check()
    assert (code, answer["matched"]) == (0, 10)
    assert answer["ranges"]["reference"]["records"] == 10


def test_what_cannot_be_compared_is_one_sentence(topics: Topics, topic: MakeTopic) -> None:
    topics.write(Side.LEFT, range(3))
    assert topics.check()[0] == 1
    assert "lies in the future" in topics.refused("--to", "2999-01-01T00:00:00Z")[1]
    topics.describe("start: {at: event_time, field: n, from: 3}")
    code, err = topics.refused()
    assert code == 2
    assert "`start: event_time` is found by `serve`, while events come: say where to begin with --from" in err
    topics.describe()
    topics.names[1] = topic(config={"cleanup.policy": "compact"})
    topics.describe()
    assert "has cleanup.policy compact" in topics.refused()[1]
    topics.names[1] = "nobody-has-made-it"
    topics.describe()
    assert topics.refused() == (2, "twinstream: topic nobody-has-made-it: there is no such topic\n")


def test_keys_lie_where_a_producer_with_javas_partitioner_puts_them_and_no_other(topics: Topics) -> None:
    topics.describe("checks: [{id: keyed, key_partition: [k]}]")
    for side, partitioner in ((Side.LEFT, "murmur2_random"), (Side.RIGHT, "consistent_random")):
        config = {"bootstrap.servers": topics.kafka.brokers, "partitioner": partitioner, "log_level": 0}
        producer = Producer({**config, **IN_ORDER})
        for n in range(60):
            value = json.dumps({"k": n, "n": n}).encode()
            producer.produce(topics.names[side], value, "x" * (n % 7) + str(n), timestamp=START_MS)
        assert producer.flush(30) == 0
    code, answer = topics.check()
    (check,) = answer["checks"]
    assert (code, answer["verdict"]) == (1, "EQUIVALENT")
    assert (check["reference"]["state"], check["reference"]["checked"]) == ("holds", 60)
    assert (check["candidate"]["state"], 0 < check["candidate"]["violations"] < 60) == ("violated", True)


def test_topics_in_update_mode_are_compared_as_tables(topics: Topics) -> None:
    """A record without a value deletes the key that its Kafka key names."""
    topics.describe("emits: {upsert: {key: [k], settled_by: input}}")
    rows: tuple[list[tuple[int, int | None]], ...] = (
        [(1, 1), (1, 2), (2, 7), (3, 1), (3, None)],
        [(1, 2), (2, 7), (3, None)],
    )
    for side in Side:
        producer = Producer({"bootstrap.servers": topics.kafka.brokers, "log_level": 0, **IN_ORDER})
        for key, value in rows[side]:
            record = None if value is None else json.dumps({"k": key, "n": value}).encode()
            producer.produce(topics.names[side], record, str(key).encode(), partition=key % 2)
        assert producer.flush(30) == 0
    code, answer = topics.check()
    assert (code, answer["matched"], answer["accounts"]["reference"]["superseded"]) == (0, 2, 3)
    assert "leave --from out" in topics.refused("--from", "2023-11-14T22:13:40Z")[1]
