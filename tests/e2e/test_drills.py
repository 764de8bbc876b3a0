"""Faults of all kinds around the running service: each has to end as if it had not been.

Each drill has a difference in its topics, and every answer of the gate is recorded from the start. In the end
verdict, accounts, divergences and offsets have to be those of a service that read the same topics without the
fault, and none of the answers may have been wrong. docs/promises.md has a line for each.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
import redis

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support.drills import Drill
from tests.support.marks import whole_product
from tests.support.proxy import ProxiedKafka, Proxy
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually

pytestmark = whole_product(pytest.mark.nightly, seconds=400)


class Ground(NamedTuple):
    """Where a drill is held: the shared Kafka, with two new topics, and a folder."""

    folder: Path
    topics: tuple[str, str]
    brokers: str

    def drill(self, redis: str, more: str = "") -> contextlib.AbstractContextManager[Drill]:
        """A service that passes, with its state in this Redis."""
        return Drill(self.folder, self.topics, self.brokers, redis, more=more).running()


@pytest.fixture
def ground(kafka: Kafka, topic: MakeTopic, tmp_path: Path) -> Ground:
    return Ground(tmp_path, (topic(partitions=3), topic(partitions=3)), kafka.brokers)


@pytest.fixture
def line(own_redis: RedisServer) -> Iterator[Proxy]:
    """The line to the Redis of the drill."""
    with Proxy(own_redis.port) as proxy:
        yield proxy


@pytest.fixture
def drill(ground: Ground, own_redis: RedisServer) -> Iterator[Drill]:
    """A service that passes, on a Redis of its own."""
    with ground.drill(own_redis.url) as running:
        yield running


@pytest.fixture
def on_line(ground: Ground, line: Proxy) -> Iterator[Drill]:
    """A service that passes, on the Redis at the other end of the line."""
    with ground.drill(f"redis://127.0.0.1:{line.port}/0") as running:
        yield running


@pytest.fixture
def client(own_redis: RedisServer) -> Iterator[redis.Redis]:
    """The hand of an operator on the Redis of the drill."""
    with redis.Redis.from_url(own_redis.url) as connection:
        yield connection


def test_a_matcher_that_was_paused_and_replaced_does_no_harm_when_it_wakes(
    drill: Drill, redis_server: RedisServer
) -> None:
    second = drill.another()
    second.start()
    drill.watch.add(second)
    drill.says(_stands_by, "it stands by", second)
    drill.answers("pass", second)
    (paused,) = drill.service.matchers()
    os.kill(paused, signal.SIGSTOP)
    drill.answers("undecided")
    drill.answers("undecided", second)
    drill.plant()
    drill.answers("fail", second)
    os.kill(paused, signal.SIGCONT)
    drill.write_on()
    drill.says(_stands_by, "it stands by")
    assert "another process has taken this comparison over" in drill.service.log()
    drill.ends_as_undisturbed(redis_server, service=second)
    assert drill.watch.answers(0)[-1] == "fail", "the one that was replaced says what the owner says"


def _stands_by(status: dict[str, Any]) -> bool:
    return bool(status["health"]["standby"])


Keys = dict[bytes, tuple[bytes, int]]
"""What a Redis held at some time: dumps by key, each with the milliseconds that were left to it."""


def _keys(client: redis.Redis) -> Keys:
    """All that a Redis holds now."""
    names = list(client.scan_iter())
    with client.pipeline(transaction=True) as pipeline:
        for name in names:
            pipeline.dump(name)
            pipeline.pttl(name)
        answers = pipeline.execute()
    held = zip(names, answers[::2], answers[1::2], strict=True)
    return {name: (dump, max(left_ms, 0)) for name, dump, left_ms in held if dump is not None}


def _put_back(client: redis.Redis, keys: Keys) -> None:
    """Have a Redis hold this and nothing else, in one step."""
    with client.pipeline(transaction=True) as pipeline:
        pipeline.flushall()
        for name, (dump, left_ms) in keys.items():
            pipeline.restore(name, left_ms, dump)
        pipeline.execute()


def _key(drill: Drill, part: str) -> str:
    return f"twinstream:{{{drill.name}}}:{part}"


def _sequence(drill: Drill, client: redis.Redis) -> int:
    """The number of the checkpoint that is in effect; 0 where none is."""
    return int(client.hget(_key(drill, "checkpoint"), "sequence") or 0)


@pytest.mark.parametrize("held", ["older", "nothing"])
def test_a_redis_that_came_back_with_less_is_written_anew_by_the_living_owner(
    drill: Drill, client: redis.Redis, redis_server: RedisServer, held: str
) -> None:
    less = _keys(client) if held == "older" else {}
    drill.plant()
    drill.answers("fail")
    newest = _sequence(drill, client)
    _put_back(client, less)
    eventually(lambda: _sequence(drill, client) > newest, seconds=60, what="all is saved again")
    drill.write_on()
    drill.outcome(drill.service, "DIVERGED")
    assert drill.watch.answers()[-1] == "fail", "the owner remembers"
    eventually(lambda: _settled(drill, client), seconds=60, what="the last checkpoint is written")
    drill.service.kill()
    drill.service.start()
    drill.ends_as_undisturbed(redis_server)


def _settled(drill: Drill, client: redis.Redis) -> bool:
    """Whether no checkpoint has come for a moment in which one was due."""
    before = _sequence(drill, client)
    try:
        eventually(lambda: _sequence(drill, client) != before, seconds=2.5, what="another checkpoint")
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("held", ["older", "nothing"])
def test_a_redis_that_came_back_with_less_while_nobody_owned_it_has_the_rest_compared_again(
    drill: Drill, client: redis.Redis, redis_server: RedisServer, held: str
) -> None:
    less = _keys(client) if held == "older" else {}
    drill.plant()
    drill.answers("fail")
    drill.service.stop()
    _put_back(client, less)
    drill.write_on()
    drill.service.start()
    drill.ends_as_undisturbed(redis_server)


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
    drill: Drill, client: redis.Redis, redis_server: RedisServer, name: str
) -> None:
    trouble = TROUBLES[name]
    client.ping()
    for command in trouble.begin:
        client.execute_command(*shlex.split(command))
    drill.write_on()
    drill.degraded(trouble.sentence)
    _plant_and_hold(drill)
    client.execute_command(*shlex.split(trouble.end))
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
    line: Proxy, on_line: Drill, redis_server: RedisServer
) -> None:
    _shaken(line, on_line, "does not answer in time", redis_server)


def test_a_slow_a_silent_and_a_cut_line_to_kafka_cost_nothing(
    own_redis: RedisServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    with Proxy() as line, ProxiedKafka(tmp_path / "kafka", line) as broker:
        topics = broker.create_topic("reference", partitions=3), broker.create_topic("candidate")
        through = f"127.0.0.1:{line.port}"
        with Drill(tmp_path, topics, through, own_redis.url, calm_brokers=broker.brokers).running() as drill:
            _shaken(line, drill, "no Kafka broker", redis_server)


POISONS = (
    b'{"k": 1',
    None,
    b'{"k": 1, "n": NaN}',
    b'{"k": 1, "k": 2, "n": 3}',
    b"[" * 5_000 + b"]" * 5_000,
    b'{"k": 1, "n": "\xff\xfe"}',
    b"",
    b'{"n": 1}',
    b"\x00\x01\x02",
    b'{"k": 1, "n": "\\ud800"}',
)
BUDGET = 250


def test_ten_thousand_records_that_are_no_events_are_counted_and_all_others_are_compared(
    kafka: Kafka, own_redis: RedisServer, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    topics = topic(), topic()
    more = f"undecodable: {{budget: {BUDGET}}}\n"
    with Drill(tmp_path, topics, kafka.brokers, own_redis.url, more=more).running() as drill:
        first = drill.pairs
        (matcher,) = drill.service.matchers()
        before_kb = _resident_kb(matcher)
        for number in range(10_000):
            drill.write.raw_candidate(POISONS[number % len(POISONS)])
            if number % 1_000 == 0:
                drill.write.flush()
        drill.write.flush()
        drill.plant()
        drill.says(lambda status: status["accounts"]["candidate"]["undecodable"] == 10_000, "all are counted")
        drill.ends_as_undisturbed(redis_server, verdict="INCONCLUSIVE")
        status = drill.service.get("")
        (hole,) = status["holes"]
        assert hole["reason"].startswith(f"more records than undecodable.budget ({BUDGET}) are no events")
        assert hole["position"] == {"topic": topics[1], "partition": 0, "offset": first + BUDGET}
        assert status["matched"] == drill.pairs
        assert len(status["undecodable"]) == 20
        assert len(orjson.dumps(status)) < 100_000
        assert drill.service.matchers() == [matcher], "it did not fall"
        assert _resident_kb(matcher) - before_kb < 64_000
        assert drill.service.gate() == "undecided"
        assert drill.watch.answers()[-1] == "undecided"
        assert "fail" not in drill.watch.answers(), "what differs behind a hole decides nothing"


def _resident_kb(process: int) -> int:
    """The memory that a process has now."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0])
