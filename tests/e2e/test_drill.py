"""`twinstream drill` beside a live comparison, on real servers, Prometheus and Alertmanager among them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import pytest
import redis
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support.commands import COMMAND, twinstream
from tests.support.marks import one_a_change, whole_product
from tests.support.processes import marked, new_mark
from tests.support.prometheus import Prometheus, alertmanager
from tests.support.service import ServiceProcess, spec_file
from tests.support.waiting import eventually

pytestmark = whole_product()
NAME = "watched"
EVENTS = 400
SIDES = ("reference", "candidate")
RULES = "identity: [n]\noverdue: {clock: arrival, after: 60s}\n"
UNTOUCHED = (
    "verdict", "reason", "events", "matched", "accounts", "divergences", "verified_up_to", "spec_digest",
    "holes", "suspicions", "resets",
)  # fmt: skip
NEVER = "overdue: {clock: event_time, field: n, after: 60s}\n"
"""Rules under which a lost event among independent ones is never told: no event is a minute old."""
WAYS = {
    "drop": "missing",
    "duplicate": "duplicate",
    "reorder": "reordered",
    "field": "changed",
}


SIGNALS = ("read", "found", "verdict", "gate", "metric", "counted")
"""What a difference has to show."""


class Live(NamedTuple):
    """A live comparison, which all tests of this file share."""

    service: ServiceProcess
    kafka: Kafka
    redis: str
    topics: tuple[str, str]

    @property
    def servers(self) -> list[str]:
        return ["--brokers", self.kafka.brokers, "--redis", self.redis]

    def command(self, *options: str, spec: Path | None = None) -> list[str]:
        return ["drill", str(spec or self.service.spec), *self.servers, *options]

    def drill(self, *options: str, spec: Path | None = None) -> tuple[int, Any]:
        """Exit code and answer of a drill."""
        code, out, err = twinstream(*self.command("--json", *options, spec=spec))
        assert out, err
        return code, orjson.loads(out)

    def traces(self) -> list[str]:
        """What drills have left: topics, consumer groups, keys."""
        admin = AdminClient({"bootstrap.servers": self.kafka.brokers})
        groups = [group.group_id for group in admin.list_consumer_groups().result().valid]
        with redis.Redis.from_url(self.redis) as client:
            keys = [key.decode() for key in client.keys("*")]
        every = [*admin.list_topics(timeout=10).topics, *groups, *keys]
        return [name for name in every if "twinstream.drill." in name or f"{NAME}-drill-" in name]

    def state(self) -> dict[str, Any]:
        """All that a drill must leave as it is."""
        status = self.service.get("")
        with redis.Redis.from_url(self.redis) as client:
            keys = {key for key in client.keys("*") if not key.endswith((b":lease", b":bulletin"))}
        gate = self.service.get("/gate")
        read = [(side, one["position"], one["end"]) for side in SIDES for one in status["progress"][side]]
        keys = {key for key in keys if b":chunk:" not in key and b":reports:" not in key}
        untouched = {name: status[name] for name in UNTOUCHED}
        return {**untouched, "gate": gate["answer"], "progress": read, "keys": keys}


def write(brokers: str, *topics: str) -> None:
    """The same events into each topic: a key `k`, a number `n` and a value `v`.

    A burst: by their times the first topic has it within a millisecond, the next within eight.
    """
    producer, now_ms = Producer({"bootstrap.servers": brokers}), int(time.time() * 1000)
    for number in range(EVENTS):
        key = number % 10
        for later, topic in enumerate(topics):
            event = orjson.dumps({"k": key, "n": number, "v": number * 1.5})
            headers: list[tuple[str, str | bytes | None]] = [("trace", b"1")]
            at_ms = now_ms + later * number // 50
            producer.produce(topic, event, str(key).encode(), timestamp=at_ms, headers=headers)
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def live(kafka: Kafka, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    reference, candidate = (kafka.create_topic(f"live-{side}", partitions=2) for side in ("a", "b"))
    spec = spec_file(tmp_path_factory.mktemp("live"), NAME, reference, candidate, RULES)
    write(kafka.brokers, reference, candidate)
    with ServiceProcess(spec, kafka.brokers, redis_server.url) as service:
        service.passes_with(EVENTS)
        yield Live(service, kafka, redis_server.url, (reference, candidate))


def names(answer: dict[str, Any]) -> list[str]:
    return [step["name"] for step in answer["steps"]]


def text_of(answer: dict[str, Any], name: str) -> str:
    return next(step["text"] for step in answer["steps"] if step["name"] == name)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", WAYS)
def test_a_difference_comes_through_to_the_metrics_and_the_live_comparison_stays_as_it_is(
    live: Live, kind: str
) -> None:
    before = live.state()
    code, answer = live.drill("--kind", kind)
    assert (code, answer["result"]) == (0, "alarm"), answer
    assert sorted(names(answer)) == sorted(SIGNALS)
    comes_through(answer, WAYS[kind])
    assert live.state() == before
    assert live.traces() == []


def comes_through(answer: dict[str, Any], kind: str) -> None:
    """A difference of this kind is found in copies that were well before, and counted."""
    texts = {step["name"]: step["text"] for step in answer["steps"]}
    assert f'{{kind="{kind}"}} is 1' in texts["counted"]
    # The drill may have seen the first half of a difference, before the other half was read.
    found, provisional = texts["found"], texts["found"].endswith(", provisional")
    assert "at partition " in found
    assert provisional or found.startswith(kind)
    assert (texts["verdict"], texts["gate"]) == ("DIVERGED", "fail")
    assert answer["before"]["gate"] in {"pass", "undecided"}, "it did not fail before"
    assert answer["copied"] == {"reference": EVENTS, "candidate": EVENTS, "both": True, "reason": None}


def test_a_silent_candidate_is_called_silent_and_not_different(live: Live) -> None:
    before = live.state()
    code, answer = live.drill("--kind", "stall")
    assert (code, answer["result"]) == (0, "alarm"), answer
    assert sorted(names(answer)) == sorted(["read", "health", "gate", "metric"])
    assert live.state() == before
    assert live.traces() == []


def test_an_alarm_that_does_not_come_in_time_is_missed(live: Live, tmp_path: Path) -> None:
    spec = spec_file(tmp_path, NAME, *live.topics, NEVER, order="unordered")
    code, answer = live.drill("--kind", "drop", "--timeout", "2s", spec=spec)
    assert (code, answer["result"]) == (1, "no alarm"), answer
    assert answer["missing"][-3:] == ["verdict", "gate", "metric"]
    assert answer["reason"].startswith("within 2 s there was no ")
    assert live.traces() == []


def sends(server: Prometheus) -> bool:
    """Whether Prometheus has an Alertmanager."""
    answer = httpx.get(f"{server.url}/api/v1/alertmanagers", trust_env=False).json()
    return bool(answer["data"]["activeAlertmanagers"])


class Alarmed(NamedTuple):
    """A Prometheus that scrapes the live comparison and sends alerts to an Alertmanager."""

    server: Prometheus
    manager: str
    file: Path

    @property
    def asked(self) -> list[str]:
        return ["--prometheus", self.server.url, "--scrape-file", str(self.file)]


@pytest.fixture(scope="module")
def alarmed(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alarmed]:
    folder = tmp_path_factory.mktemp("alarmed")
    with (
        alertmanager(folder) as manager,
        Prometheus(folder / "prometheus", live.service.address, manager) as server,
    ):
        (folder / "prometheus" / "drill").mkdir()
        eventually(lambda: server.rules() and server.query("up"), seconds=30, what="Prometheus scrapes")
        eventually(lambda: sends(server), seconds=30, what="Prometheus has found Alertmanager")
        yield Alarmed(server, manager, folder / "prometheus" / "drill" / "watched.json")


def test_a_difference_fires_an_alert_which_is_held_back_from_those_on_call_and_the_live_comparison_stays(
    live: Live, alarmed: Alarmed
) -> None:
    before = live.state()
    code, _, err = twinstream(*live.command("--kind", "drop", *alarmed.asked))
    assert code == 2
    assert "so this drill may wake somebody: give --alertmanager" in err
    code, answer = live.drill("--kind", "drop", *alarmed.asked, "--alertmanager", alarmed.manager)
    assert (code, answer["result"]) == (0, "alarm"), answer
    assert sorted(names(answer)) == sorted([*SIGNALS, "live", "scraped", "alert", "routed"])
    comes_through(answer, WAYS["drop"])
    routed = text_of(answer, "routed")
    assert routed == f"Alertmanager has it for on-call, held back by silence {answer['silence']}"
    assert not alarmed.file.exists()
    live_alerts = f'ALERTS{{comparison="{NAME}"}}'
    assert alarmed.server.query(live_alerts) == []
    assert live.state() == before
    assert live.traces() == []


@pytest.mark.nightly
def test_whoever_is_on_call_is_paged_where_that_is_asked_for(live: Live, alarmed: Alarmed) -> None:
    code, answer = live.drill("--kind", "drop", *alarmed.asked, "--alertmanager", alarmed.manager, "--page")
    assert (code, answer["result"]) == (0, "alarm"), answer
    assert "silence" not in answer
    assert text_of(answer, "routed") == "Alertmanager has it for on-call"
    silences = httpx.get(f"{alarmed.manager}/api/v2/silences", trust_env=False).json()
    matched = [matcher["value"] for one in silences for matcher in one["matchers"]]
    assert answer["drill"] not in matched
    code, answer = live.drill("--kind", "drop", *alarmed.asked, "--page")
    assert (code, answer["steps"][-1]["name"]) == (0, "alert")
    assert "the route of the alert: give --alertmanager" in answer["not_exercised"]


class Begun(NamedTuple):
    """A drill that waits in vain, and what all its processes carry."""

    process: subprocess.Popen[str]
    mark: dict[str, str]


@pytest.fixture
def begun(live: Live, tmp_path: Path) -> Iterator[Begun]:
    """A drill of which the difference is about to be written, and for which no alarm comes."""
    spec, mark = spec_file(tmp_path, NAME, *live.topics, NEVER, order="unordered"), new_mark()
    process = subprocess.Popen(
        [COMMAND, *live.command("--kind", "drop", spec=spec)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **mark},
        start_new_session=True,
    )
    assert process.stdout is not None
    words = (line.split()[0] for line in process.stdout)
    assert "before" in words, "it came as far as that"
    yield Begun(process, mark)
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", one_a_change([signal.SIGINT, signal.SIGTERM]))
def test_a_drill_that_is_stopped_cleans_up(live: Live, begun: Begun, number: signal.Signals) -> None:
    assert live.traces() != []
    if number == signal.SIGINT:  # Ctrl-C in a terminal reaches all processes.
        os.killpg(begun.process.pid, number)
    else:
        begun.process.send_signal(number)
    assert begun.process.wait(timeout=60) == 130
    eventually(lambda: not marked(begun.mark), what="all its processes have ended")
    assert live.traces() == []


def test_what_a_killed_drill_has_left_is_named_and_swept(live: Live, begun: Begun) -> None:
    begun.process.kill()
    eventually(lambda: not marked(begun.mark), seconds=40, what="its service has ended with it")
    (topic, _) = sorted(name for name in live.traces() if name.startswith("twinstream.drill."))
    comparison = f"{NAME}-drill-{topic.split('.')[3]}"
    assert swept(live) == f"running    {comparison}", "it may still be held, for all that is known"
    with redis.Redis.from_url(live.redis) as client:
        client.delete(f"twinstream:{{{comparison}}}:drill")
        client.set("twinstream:{early-drill-00000001}:mask", "killed before it had a consumer group")
        client.set("twinstream:{power-drill-sales}:head", "of a comparison that is no drill")
        assert swept(live) == f"removed    early-drill-00000001\nremoved    {comparison}"
        assert client.delete("twinstream:{power-drill-sales}:head") == 1
    assert live.traces() == []
    assert swept(live) == "nothing    no drill has left anything behind"


def swept(live: Live) -> str:
    """What `twinstream drill --sweep` says."""
    code, out, err = twinstream("drill", "--sweep", *live.servers)
    assert code == 0, err
    return out.strip()
