"""Faults of all kinds around the running service: each has to end as if it had not been.

Each drill has a difference in its topics, and every answer of the gate is recorded from the start. In the end
verdict, accounts, divergences and offsets have to be those of a service that read the same topics without the
fault, and none of the answers may have been wrong. docs/promises.md has a line for each.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import redis

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support.drills import Drill
from tests.support.marks import whole_product
from tests.support.proxy import ProxiedKafka, Proxy
from tests.support.stack import MakeTopic

pytestmark = whole_product(pytest.mark.nightly, seconds=400)


class Ground(NamedTuple):
    """Where a drill is held: the shared Kafka, with two new topics, and a folder."""

    folder: Path
    topics: tuple[str, str]
    brokers: str

    def drill(self, redis: str) -> contextlib.AbstractContextManager[Drill]:
        """A service that passes, with its state in this Redis."""
        return Drill(self.folder, self.topics, self.brokers, redis).running()


@pytest.fixture
def ground(kafka: Kafka, topic: MakeTopic, tmp_path: Path) -> Ground:
    return Ground(tmp_path, (topic(partitions=3), topic(partitions=3)), kafka.brokers)


@pytest.fixture
def drill(ground: Ground, own_redis: RedisServer) -> Iterator[Drill]:
    """A service that passes, on a Redis of its own."""
    with ground.drill(own_redis.url) as running:
        yield running


class Trouble(NamedTuple):
    """What an operator can tell a Redis, how to undo it, and what the service calls it."""

    begin: tuple[str, ...]
    end: str
    sentence: str


TROUBLES = {
    "full": Trouble(("CONFIG SET maxmemory 100kb",), "CONFIG SET maxmemory 0", "is full and takes no writes"),
    "password": Trouble(
        # Who is in would stay in.
        ("CONFIG SET requirepass secret", "CLIENT KILL TYPE normal SKIPME yes"),
        "CONFIG SET requirepass ''",
        "wants a password",
    ),
    "too few replicas": Trouble(
        ("CONFIG SET min-replicas-to-write 1",), "CONFIG SET min-replicas-to-write 0", "NOREPLICAS"
    ),
    "replica": Trouble(("REPLICAOF 127.0.0.1 1",), "REPLICAOF NO ONE", "is a replica that takes no writes"),
}


def _plant_and_hold(drill: Drill) -> None:
    """A difference that cannot be saved is found, and waits."""
    drill.plant()
    drill.says(lambda status: "announced once it is saved" in status["reason"], "a difference is held")


@pytest.mark.parametrize("name", TROUBLES)
def test_a_redis_that_takes_no_writes_is_named_and_nothing_is_lost(
    drill: Drill, own_redis: RedisServer, redis_server: RedisServer, name: str
) -> None:
    trouble = TROUBLES[name]
    with redis.Redis.from_url(own_redis.url) as operator:
        operator.ping()
        for command in trouble.begin:
            operator.execute_command(*shlex.split(command))
        drill.write_on()
        drill.degraded(trouble.sentence)
        _plant_and_hold(drill)
        operator.execute_command(*shlex.split(trouble.end))
    drill.answers("fail")
    drill.write_on()
    drill.ends_as_undisturbed(redis_server)
    assert drill.watch.answers() == ["undecided", "pass", "undecided", "fail"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 6 MB, which a process of a name space of its own holds: that takes no right."""
    folder = tmp_path / "disk"
    folder.mkdir()
    hold = f"mount -t tmpfs -o size=6m tmpfs {shlex.quote(str(folder))} && echo held && exec cat"
    holder = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hold],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != b"held\n":
            pytest.fail(
                "this drill needs a disk that it can fill, and the kernel gives it no name space for one: "
                f"allow user name spaces (sysctl user.max_user_namespaces): {holder.stderr.read().decode()}"
            )
        yield Path(f"/proc/{holder.pid}/root{folder}")


def test_a_redis_whose_disk_is_full_is_named_and_nothing_is_lost(
    ground: Ground, redis_server: RedisServer, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    with (
        RedisServer(small_disk / "redis", config={"auto-aof-rewrite-percentage": "0"}) as server,
        ground.drill(server.url) as drill,
    ):
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        drill.write_on()
        drill.degraded("takes no writes, since it cannot save to its disk")
        _plant_and_hold(drill)
        ballast.unlink()
        drill.answers("fail")
        drill.ends_as_undisturbed(redis_server)


def _shaken(line: Proxy, drill: Drill, silent: str, calm: RedisServer) -> None:
    """A line is slow, is silent, which is named, and is cut: and the drill ends as one on another line."""
    line.delay(0.1)
    drill.write_on()
    drill.passes()
    line.stall()
    drill.write_on()
    drill.degraded(silent)
    line.flow()
    drill.passes()
    line.cut()
    drill.plant()
    drill.answers("fail")
    drill.ends_as_undisturbed(calm)


def test_a_slow_a_silent_and_a_cut_line_to_redis_cost_nothing(
    ground: Ground, own_redis: RedisServer, redis_server: RedisServer
) -> None:
    with Proxy(own_redis.port) as line, ground.drill(f"redis://127.0.0.1:{line.port}/0") as drill:
        _shaken(line, drill, "does not answer in time", redis_server)


def test_a_slow_a_silent_and_a_cut_line_to_kafka_cost_nothing(
    own_redis: RedisServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    with Proxy() as line, ProxiedKafka(tmp_path / "kafka", line) as broker:
        topics = broker.create_topic("reference", partitions=3), broker.create_topic("candidate")
        through = f"127.0.0.1:{line.port}"
        with Drill(tmp_path, topics, through, own_redis.url, calm_brokers=broker.brokers).running() as drill:
            _shaken(line, drill, "no Kafka broker", redis_server)
