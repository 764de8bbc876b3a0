"""No value that may not be seen leaves the running service, on whatever way out.

Sentinels stand where personal data would: in values, keys of the order, names of members, records that are no
events. Each way out is read and searched; one that may be seen is found there, so the search can fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import pytest
import redis
from confluent_kafka import Producer

from deploy.embedded.kafka import Kafka
from tests.support.commands import twinstream
from tests.support.marks import whole_product
from tests.support.service import WEB, ServiceProcess
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually
from twinstream.checkpoints import format as checkpoint

pytestmark = whole_product()

HIDDEN = "zqhidden"
HIDDEN_NUMBER = 918273645546
SEEN = "zqseen"
SPEC = """
version: 1
name: {name}
reference: {{topic: {topics[0]}}}
candidate: {{topic: {topics[1]}}}
kinds: {{day: {{where: {{type: day}}}}, ride: {{}}}}
order: {order}
identity: [ride]
keep: {keep}
show: [label]
maps: [tips, tips.*]
undecodable: {{budget: 1000}}
evidence: {{matched: 1, seconds: 0}}
"""
BY_USER = "{per_key: [user, $key]}"
RULES = {
    "by-user": (BY_USER, "records"),
    "by-hash": (BY_USER, "hashes"),
    "by-function": ('{callable: "leaking:related"}', "records"),
}
"""The order, and what is kept of events."""
LEAKING = """
def related(one, other):
    if "boom" in one.values() and "boom" in other.values():
        raise ValueError(f"{one} and {other}")
    return one.get("user") == other.get("user")
"""


def ride(number: int, **changes: Any) -> bytes:
    """An event in which all but `label` is hidden; `number` makes it another one."""
    value = {
        "type": "ride",
        "user": f"{HIDDEN}-{number % 7}",
        "ride": f"{HIDDEN}-ride-{number}",
        "ts": number,
        "fare": HIDDEN_NUMBER + number % 7,
        "tips": {f"{HIDDEN}@example.com": {f"{HIDDEN}": True}},
        "stops": [f"{HIDDEN}-a", f"{HIDDEN}-b"],
        "label": f"{SEEN}-{number}",
    }
    return orjson.dumps({**value, **changes})


DAY = orjson.dumps({"type": "day", "user": HIDDEN, "ride": f"{HIDDEN}-day", "label": "night", "ts": 0})
BROKEN = [
    f"{HIDDEN} is no JSON".encode(),
    f'{{"type": "{HIDDEN}", "ts": 1}}'.encode(),
    f'{{"user": "{HIDDEN}", "type": "ride", "ts": "{HIDDEN}"}}'.encode(),
    f'{{"{HIDDEN}": 1, "{HIDDEN}": 2}}'.encode(),
    b'{"user": 1e99%d}' % (HIDDEN_NUMBER * 10**9),
    f'"{HIDDEN}\\ud800"'.encode(),
    f'{{"user": "{HIDDEN}"'.encode() + b"\xff}",
]


class Outputs(NamedTuple):
    """Two instances of the service on one comparison, and what they store."""

    service: ServiceProcess
    standby: ServiceProcess
    store: redis.Redis


@pytest.fixture(params=RULES)
def running(
    request: pytest.FixtureRequest, kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> Iterator[Outputs]:
    """Services that have met differences of all kinds, records that are no events, an event that waits."""
    topics = topic(), topic()
    (tmp_path / "leaking.py").write_text(LEAKING)
    name = f"data-{request.param}"
    order, keep = RULES[request.param]
    write(kafka.brokers, topics, failing=request.param == "by-function")
    with (
        redis.Redis.from_url(redis_url) as store,
        pytest.MonkeyPatch.context() as patch,
        ExitStack() as stack,
    ):
        patch.setenv("PYTHONPATH", str(tmp_path))
        services = []
        for folder in (tmp_path / "owner", tmp_path / "standby"):
            folder.mkdir()
            file = folder / f"{name}.yaml"
            file.write_text(SPEC.format(name=name, topics=topics, order=order, keep=keep))
            services.append(stack.enter_context(ServiceProcess(file, kafka.brokers, redis_url)))
        yield Outputs(services[0], services[1], store)


def write(brokers: str, topics: tuple[str, str], *, failing: bool) -> None:
    """Write what differs in every way; or before it what the function of the order fails at."""
    producer = Producer({"bootstrap.servers": brokers})
    same = [ride(number) for number in range(20)]
    other = ride(20, fare=HIDDEN_NUMBER - 1, tips={f"{HIDDEN}-2": {}})
    behind = [*(ride(number) for number in range(100, 240)), DAY.replace(b"-day", b"-day-2")]
    left = [*same, ride(20), ride(21), ride(28), ride(22), DAY, *BROKEN, *behind, ride(40)]
    right = [*same, other, ride(28), ride(21), same[3], DAY, *behind]
    for records, topic in zip((left, right), topics, strict=True):
        if failing:
            producer.produce(topic, ride(60, note="boom", ride=f"{HIDDEN}-{topic}"))
        for record in records:
            producer.produce(topic, record, key=HIDDEN.encode(), headers={"user": HIDDEN})
    assert producer.flush(30) == 0


def settled(running: Outputs) -> bool:
    """Whether what there is to find is found and, where it is final, saved."""
    if "function" in running.service.spec.stem:
        return any("failed with ValueError" in hole["reason"] for hole in running.service.get("")["holes"])
    return any(not found["provisional"] for found in running.service.divergences())


def said(running: Outputs) -> Iterator[tuple[str, str]]:
    """All that leaves the service, by where it does."""
    name = running.service.spec.stem
    base = f"/v1/comparisons/{name}"
    ids = [found["id"] for found in running.service.divergences()[:3]]
    for service in (running.service, running.standby):
        parts = ["", "/progress", "/history", "/timeline", "/unmatched", "/divergences", "/gate"]
        parts += ["/gate/strict", "/gate/rollback", *(f"/divergences/{key}" for key in ids)]
        for path in ("/v1/comparisons", "/metrics", "/readyz", "/", *(base + part for part in parts)):
            yield path, WEB.get(service.address + path).text
        address, ndjson = f"{service.address}{base}/divergences", {"accept": "application/x-ndjson"}
        yield "export", WEB.get(address, headers=ndjson).text
        yield "events", _events(service)
        yield "log", service.log()
    commands = ["status", f"status {name}", "status --json", f"gate {name}", f"divergences {name}"]
    commands += [
        f"divergences {name} --json",
        *(f"explain {key}{how}" for key in ids for how in ("", " --json")),
    ]
    for command in commands:
        _, out, err = twinstream(*command.split(), "--service", running.service.address)
        yield command, out + err
    yield from _stored(running.store)


def _events(service: ServiceProcess) -> str:
    """What a stream of events brings within two seconds."""
    got = ""
    with (
        suppress(httpx.ReadTimeout),
        httpx.stream("GET", f"{service.address}/v1/events", timeout=2, trust_env=False) as stream,
    ):
        for text in stream.iter_text():
            got += text
            if got.count("event: status") > 2:
                break
    return got


def _stored(store: Any) -> Iterator[tuple[str, str]]:
    """What Redis holds but for the events that matching needs."""
    for key in store.scan_iter():
        name, kind = key.decode(), store.type(key)
        if ":chunk:" in name:
            continue
        if kind == b"hash":
            fields = store.hgetall(key)
            if b"head" in fields:
                yield f"{name} head", str(checkpoint.decode(fields.pop(b"head")))
            yield name, str(fields)
        else:
            yield name, str(store.smembers(key) if kind == b"set" else store.get(key))


def _bodies(store: Any, comparison: str) -> dict[str, str]:
    """What Redis holds of the events of a comparison that wait."""
    keys = list(store.scan_iter(f"twinstream:{{{comparison}}}:chunk:*"))
    return {
        key.decode(): str(checkpoint.decode(body)) for key in keys if (body := store.get(key)) is not None
    }


def leaks(outputs: dict[str, str]) -> dict[str, str]:
    """Where something hidden stands, with what is around it."""
    found = {}
    for place, text in outputs.items():
        for sentinel in (HIDDEN, str(HIDDEN_NUMBER)[:9], "6eXFoaWRkZW4"):
            at = text.lower().find(sentinel.lower())
            if at >= 0:
                found[place] = text[max(0, at - 80) : at + 60]
    return found


def test_nothing_hidden_is_in_anything_that_leaves_the_service(running: Outputs) -> None:
    eventually(lambda: settled(running), seconds=60, what=f"all is found; {running.service.log()}")
    eventually(
        lambda: running.standby.get("")["events"]["reference"], seconds=30, what="the other one relays"
    )
    outputs = dict(said(running))
    assert leaks(outputs) == {}
    name = running.service.spec.stem
    assert len(running.store.get(f"twinstream:{{{name}}}:mask") or b"") == 32
    if "function" in name:
        return
    assert bool(leaks(_bodies(running.store, name))) == ("hash" not in name)
    shown = outputs[f"/v1/comparisons/{name}/divergences"]
    assert SEEN in shown
    assert "‹text, " in shown
    assert SEEN in outputs[f"divergences {name}"]
    if "hash" in name:
        changed = [found for found in running.service.divergences() if found["kind"] == "changed"]
        assert changed[0]["fields"]["fare"]["reference"].startswith("‹number, #")
        assert running.service.get("")["unmatched"]["reference"] > 0
    saved = [text for place, text in outputs.items() if ":reports:" in place]
    assert any(SEEN in text for text in saved)
    assert running.service.get("")["accounts"]["reference"]["undecodable"] > 3
