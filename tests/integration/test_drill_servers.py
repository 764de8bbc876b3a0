"""`twinstream drill` on servers that refuse it, on others than the live ones, and where nothing is well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka.admin import AclOperation, AdminClient

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support.commands import twinstream
from tests.support.drilled import rides
from tests.support.forking import with_constants
from tests.support.guarded_kafka import Guarded
from tests.support.service import spec_file
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually
from twinstream.adapters.kafka.drill import DrillTopics

pytestmark = [pytest.mark.requires_kafka, pytest.mark.requires_redis, pytest.mark.timeout(180)]
TOPICS = ("rides.v1", "rides.v2")
FAILING = """
import multiprocessing

def dependent(one, other):
    if multiprocessing.parent_process() is not None:
        raise ValueError("as a function may that is not the same everywhere")
    return one["k"] == other["k"]
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with Guarded(tmp_path_factory.mktemp("guarded")) as broker:
        yield broker


def with_rides(broker: Kafka, folder: Path, more: str = "", order: str = "{per_key: [k]}") -> Path:
    """The file of a comparison whose topics hold the same rides."""
    topics = [broker.create_topic(f"{name}.{folder.name}") for name in TOPICS]
    DrillTopics(broker.brokers, {}).write([(name, record) for name in topics for record in rides()])
    return spec_file(folder, "rides", *topics, more=more, order=order)


def drill(spec: Path, *options: str, **environment: str) -> tuple[int, Any, str]:
    """Exit code, answer and what was said."""
    code, out, err = twinstream("drill", spec, "--kind", "drop", "--json", *options, **environment)
    return code, orjson.loads(out) if out else None, err


def test_where_the_copies_are_not_well_beforehand_nothing_is_planted(
    kafka: Kafka, redis_server: RedisServer, tmp_path: Path
) -> None:
    (tmp_path / "relation_of_rides.py").write_text(FAILING)
    spec = with_rides(kafka, tmp_path, order='{callable: "relation_of_rides:dependent"}')
    servers = ["--brokers", kafka.brokers, "--redis", redis_server.url]
    impatient = with_constants("twinstream.drill.run", PASS_SECONDS=2)
    code, answer, err = drill(spec, *servers, PYTHONPATH=str(tmp_path), **impatient)
    assert (code, answer["result"], answer["steps"]) == (3, "undecided", []), err
    assert answer["reason"].startswith(
        "nothing was planted: the copies already differed or were unsure: Not decided"
    )
    assert answer["left_over"] == []
    assert DrillTopics(kafka.brokers, {}).found() == []


def test_the_copies_may_be_on_other_servers_than_the_live_topics(
    kafka: Kafka, guarded: Guarded, redis_server: RedisServer, tmp_path: Path
) -> None:
    spec = with_rides(kafka, tmp_path)
    shadow = tmp_path / "shadow.yaml"
    shadow.write_text(f"brokers: {guarded.brokers}\nredis: {redis_server.url}\n")
    servers = ["--brokers", kafka.brokers, "--redis", "redis://127.0.0.1:1"]
    watching = AdminClient({"bootstrap.servers": kafka.brokers})

    def topics() -> set[str]:
        return {name for name in watching.list_topics(timeout=10).topics if not name.startswith("__")}

    before = topics()
    code, answer, err = drill(spec, *servers, "--shadow-config", str(shadow))
    assert (code, answer["result"]) == (0, "alarm"), err
    assert topics() == before
    groups = watching.list_consumer_groups().result().valid
    assert [group.group_id for group in groups if "rides-drill-" in group.group_id] == []
    assert DrillTopics(guarded.brokers, {}).found() == []


def test_missing_rights_are_named_with_what_to_allow(
    guarded: Guarded, redis_server: RedisServer, tmp_path: Path
) -> None:
    spec = with_rides(guarded, tmp_path)
    servers = ["--brokers", guarded.brokers, "--redis", redis_server.url]
    for operation, said in (
        (AclOperation.WRITE, "the copies cannot be written: "),
        (AclOperation.CREATE, "topic twinstream.drill.rides."),
    ):
        guarded.deny(operation, "twinstream.drill.")
        code, answer, err = drill(spec, *servers)
        assert (code, answer) == (2, None)
        assert err.startswith(f"twinstream: kafka at {guarded.brokers}: {said}")
        assert err.endswith(
            "; let this user create, write, read and delete topics whose names begin with twinstream.drill., "
            "or name other brokers in --shadow-config\n"
        )
        left = DrillTopics(guarded.brokers, {})
        eventually(lambda left=left: left.found() == [], what="nothing is left over")  # type: ignore[misc]


def test_a_broker_that_does_not_speak_tls_and_a_certificate_that_is_not_there_are_named(
    kafka: Kafka, redis_server: RedisServer, tmp_path: Path
) -> None:
    spec = with_rides(kafka, tmp_path)
    config = tmp_path / "service.yaml"
    asked = ["--redis", redis_server.url, "--config", str(config)]
    config.write_text(f"brokers: {kafka.brokers}\nkafka: {{security.protocol: SSL}}\n")
    code, _, err = drill(spec, *asked)
    assert code == 4
    assert err.startswith(f"twinstream: kafka at {kafka.brokers} does not answer")
    trusting = "{security.protocol: SSL, ssl.ca.location: /nowhere.pem}"
    config.write_text(f"brokers: {kafka.brokers}\nkafka: {trusting}\n")
    code, _, err = drill(spec, *asked)
    assert code == 2
    assert err == "twinstream: kafka settings: ssl.ca.location: there is no file /nowhere.pem\n"
    assert err.count("\n") == 1


def test_a_redis_that_cannot_be_reached_and_topics_that_are_empty_or_missing_are_named(
    kafka: Kafka, topic: MakeTopic, tmp_path: Path
) -> None:
    names, writer = (topic(), topic()), DrillTopics(kafka.brokers, {})
    there = ["--brokers", kafka.brokers, "--redis", "redis://127.0.0.1:1"]
    spec, missing = spec_file(tmp_path, "rides", *names), spec_file(tmp_path, "missing", names[0], "nowhere")
    empty = f"twinstream: topic {names[0]} has no record to copy: drill when the pipelines have written\n"
    assert drill(spec, *there) == (2, None, empty)
    assert drill(missing, *there) == (2, None, "twinstream: topic nowhere: there is no such topic\n")
    writer.write([(name, record) for name in names for record in rides(60)])
    code, answer, err = drill(spec, *there)
    assert (code, answer) == (4, None)
    assert err.startswith("twinstream: redis at 127.0.0.1:1 cannot be used")
    wide = topic(partitions=50), topic(partitions=50)
    spread = [one._replace(partition=place % 50) for place, one in enumerate(rides(100))]
    writer.write([(name, record) for name in wide for record in spread])
    code, _, err = drill(spec_file(tmp_path, "wide", *wide, order="unordered"), *there, "--records", "40")
    assert (code, err.startswith("twinstream: redis at 127.0.0.1:1 cannot be used")) == (4, True), err
    assert writer.found() == []
