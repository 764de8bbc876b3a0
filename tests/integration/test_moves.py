"""A move to Spark is noted in Kafka's consumer group, as long as Kafka can be reached."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from deploy.embedded.kafka import Kafka
from tests.support.stack import Closing, MakeTopic
from tests.support.waiting import eventually
from twinstream.adapters.kafka.source import KafkaSource
from twinstream.cli.commands.move import note
from twinstream.core.events import Side
from twinstream.core.verdict import Verdict
from twinstream.ports import Mark
from twinstream.settings import load as settings_of
from twinstream.spec.load import loads
from twinstream.starting.offset_backup import Backup, moved_to

SPEC = "version: 1\nname: {0}\nreference: {{topic: {0}}}\ncandidate: {{topic: {1}}}\norder: total\n"
NOTE = Backup(
    version=1,
    digest="d",
    run=datetime.now(UTC),
    sequence=3,
    verdict=Verdict.EQUIVALENT,
    holes=0,
    resets=0,
    begins=None,
)

pytestmark = pytest.mark.requires_kafka


def test_a_move_is_noted_beside_the_offsets_of_the_comparison(
    kafka: Kafka, topic: MakeTopic, closing: Closing
) -> None:
    topics = {side: topic() for side in Side}
    spec = loads(SPEC.format(*topics.values()))
    source = closing(KafkaSource(kafka.brokers, spec.name, topics, {}))
    marks = {side: {0: Mark(7, NOTE.model_dump_json())} for side in Side}
    source.remember(marks)
    eventually(lambda: source.remembered() == marks, what="the offsets are committed")
    note(spec, "file:/there", settings_of({"brokers": kafka.brokers}, None))
    found = source.remembered()
    assert moved_to(found) == "file:/there"
    assert {mark.offset for of_side in found.values() for mark in of_side.values()} == {7}


def test_a_move_that_cannot_be_noted_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    note(loads(SPEC.format("one", "two")), "file:/there", settings_of({"brokers": "127.0.0.1:1"}, None))
    told = capsys.readouterr().err
    assert "127.0.0.1:1 does not answer" in told
    assert told.endswith("; so only Redis knows of the move until a service finds it there\n")
