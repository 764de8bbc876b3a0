"""What `twinstream drill` refuses, and what it says then."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.embedded.kafka import Kafka
from tests.support.commands import twinstream
from tests.support.drilled import rides
from tests.support.service import spec_file
from tests.support.stack import MakeTopic
from twinstream.adapters.kafka.drill import DrillTopics

DROP = ["--kind", "drop"]


def run(*arguments: str | Path) -> tuple[int, str]:
    """The exit code, and what is said on standard error; nothing is on standard output."""
    code, out, err = twinstream("drill", *arguments)
    assert out == ""
    return code, err


@pytest.mark.requires_kafka
def test_a_redis_that_cannot_be_reached_and_topics_that_are_empty_or_missing_are_named(
    kafka: Kafka, topic: MakeTopic, tmp_path: Path
) -> None:
    names = topic(), topic()
    spec = spec_file(tmp_path, "rides", *names)
    there = [*DROP, "--brokers", kafka.brokers, "--redis", "redis://127.0.0.1:1"]
    empty = f"twinstream: topic {names[0]} has no record to copy: drill when the pipelines have written\n"
    assert run(spec, *there) == (2, empty)
    missing = spec_file(tmp_path, "missing", names[0], "nowhere")
    assert run(missing, *there) == (2, "twinstream: topic nowhere: there is no such topic\n")
    writer = DrillTopics(kafka.brokers, {})
    writer.write([(name, record) for name in names for record in rides(60)])
    code, _, err = twinstream("drill", spec, *there)
    assert code == 4
    assert err.startswith("Error: redis at 127.0.0.1:1 cannot be used")
    assert writer.found() == []
