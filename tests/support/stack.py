"""Real servers for tests: one broker and one store a session, and others for tests that kill."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
import redis

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support.redis_cluster import RedisCluster

T = TypeVar("T", bound=Any)

Kafka.java_options += ("-XX:TieredStopAtLevel=1",)
"""A broker that lives for minutes never repays the second compiler, which takes half of its start."""


class MakeTopic(Protocol):
    """Creates a topic with a fresh name on the session's broker and returns the name."""

    def __call__(self, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str: ...


class Closing(Protocol):
    """Takes something that is to be closed after the test, and hands it back."""

    def __call__(self, opened: T) -> T: ...


@pytest.fixture
def closing() -> Iterator[Closing]:
    with ExitStack() as stack:

        def take(opened: T) -> T:
            stack.callback(opened.close)
            return opened

        yield take


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """The broker that all tests share. Do not stop it: take `own_kafka` for that."""
    with Kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The store that all tests share. Do not stop it: take `own_redis` for that."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def topic(kafka: Kafka) -> MakeTopic:
    """A maker of topics on the shared broker, each with a name that no other test has."""

    def make(*, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        return kafka.create_topic(f"t-{uuid.uuid4().hex[:12]}", partitions=partitions, config=config)

    return make


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The address of the shared store, emptied for this test."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    return redis_server.url


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    """A cluster of three nodes that all tests share."""
    with RedisCluster(tmp_path_factory.mktemp("redis-cluster")) as cluster:
        yield cluster


@pytest.fixture
def redis_cluster_url(redis_cluster: RedisCluster) -> str:
    """The address of one node of it."""
    return redis_cluster.nodes[0].url


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Kafka]:
    """A broker for this test alone, to kill, pause and restart."""
    with Kafka(tmp_path / "kafka") as broker:
        yield broker


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A store for this test alone, to kill, pause and restart."""
    with RedisServer(tmp_path / "redis") as server:
        yield server
