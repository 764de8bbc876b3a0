"""The running service on real Kafka and Redis, while things around it break."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support.cases import NOTHING, Case, Serve, serving
from tests.support.marks import whole_product
from tests.support.poisonous import POISON
from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.stack import MakeTopic
from tests.support.topics import forget
from tests.support.waiting import eventually

pytestmark = whole_product()


@pytest.fixture
def shared(serve: Serve) -> Iterator[Case]:
    """A service on the shared servers, which passes with a hundred pairs and leaves no process behind."""
    case = serve(partitions=3)
    case.passes(range(100))
    yield case
    case.service.end()
    is_gone(case.service)


def is_gone(service: ServiceProcess) -> None:
    eventually(lambda: not service.family(), seconds=30, what="all its processes are gone")


def standing_by(service: ServiceProcess) -> bool:
    """Whether another one owns the comparison."""
    return bool(service.get("")["health"]["standby"])


@pytest.fixture
def own(own_kafka: Kafka, redis_url: str, tmp_path: Path) -> Iterator[Case]:
    """A service that passes with a hundred pairs, on a broker of its own."""
    topics = own_kafka.create_topic("reference"), own_kafka.create_topic("candidate")
    with serving(tmp_path, own_kafka.brokers, redis_url, topics) as case:
        case.passes(range(100))
        yield case


def test_equal_topics_pass_and_a_lost_event_fails_with_its_record(shared: Case) -> None:
    service, write = shared
    write.reference(3, -1)
    write.both(range(100, 1000))
    service.answers("fail")
    (divergence,) = service.divergences()
    assert (divergence["kind"], divergence["reference"]) == ("missing", {"k": 3, "n": -1})
    receipt = service.get("/receipt")
    assert (receipt["verdict"], receipt["gate"]["answer"]) == ("DIVERGED", "fail")
    assert {"order", "decode"} <= {one["key"] for one in receipt["exclusions"]}
    assert (receipt["coverage"]["keys"], receipt["coverage"]["kinds"]["event"]["varied"]) == (10, ["k", "n"])


def test_a_killed_matcher_is_replaced_within_seconds_and_goes_on(shared: Case) -> None:
    (matcher,) = shared.service.matchers()
    os.kill(matcher, signal.SIGKILL)
    shared.service.answers("undecided")
    shared.passes(range(100, 1000))
    assert shared.service.matchers() != [matcher]


def test_a_service_that_stands_by_shows_what_the_owner_shows_and_takes_over(shared: Case) -> None:
    service, write = shared
    with service.another() as second:
        second.passes_with(100)
        write.reference(3, -1)
        write.both(range(100, 1000))
        second.answers("fail")
        eventually(lambda: _said(service) == _said(second), what="both say the same")
        (divergence,) = second.divergences()
        assert (divergence["kind"], divergence["reference"]) == ("missing", {"k": 3, "n": -1})
        assert (standing_by(second), second.ready()) == (True, False)
        service.stop()
        eventually(second.ready, seconds=60, what="it has taken over")
        write.both(range(1000, 1100))
        second.shows(matched=1100, verdict="DIVERGED")


def _said(service: ServiceProcess) -> tuple[Any, ...]:
    status = service.get("")
    members = ("verdict", "since", "reason", "accounts", "verified_up_to", "divergences", "started_at")
    return (*(status[member] for member in members), service.divergences(), service.gate())


def test_an_owner_that_is_frozen_passes_no_more_at_the_one_that_stands_by_which_takes_over(
    shared: Case,
) -> None:
    service, write = shared
    with service.another() as second:
        second.passes_with(100)
        (frozen,) = service.matchers()
        os.kill(frozen, signal.SIGSTOP)
        try:
            second.answers("undecided", seconds=9)  # before its lease has ended
            assert not second.ready()
            write.both(range(100, 200))
            second.passes_with(200)
            assert (standing_by(second), second.ready()) == (False, True)
        finally:
            os.kill(frozen, signal.SIGCONT)
        eventually(lambda: standing_by(service), what="the first one stands by")
        service.passes_with(200)


def test_a_service_that_is_killed_is_replaced_by_the_one_that_stands_by_before_its_lease_ends(
    shared: Case, redis_url: str
) -> None:
    service, write = shared
    with service.another() as second:
        eventually(lambda: standing_by(second), what="it stands by")
        with redis.Redis.from_url(redis_url) as client:
            service.kill()
            is_gone(service)
            lease = f"twinstream:{{{service.spec.stem}}}:lease"
            assert client.pexpire(lease, 3_600_000), "whose end shall not be what lets the second in"
        write.both(range(100, 200))
        second.passes_with(200)


def test_a_broker_that_is_away_or_hangs_degrades_the_service_which_recovers_alone(
    own: Case, own_kafka: Kafka
) -> None:
    own_kafka.kill()
    own.service.answers("undecided", seconds=30)
    assert "no Kafka broker" in own.service.get("")["health"]["reasons"][0]
    assert not own.service.ready()
    own_kafka.restart()
    own.passes(range(100, 200))
    own_kafka.pause()
    own.service.answers("undecided", seconds=30)
    own_kafka.resume()
    own.passes(range(200, 300))


def test_a_store_away_degrades_the_service_which_recovers_alone(
    kafka: Kafka, own_redis: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    with serving(tmp_path, kafka.brokers, own_redis.url, (topic(), topic())) as case:
        case.passes(range(100))
        own_redis.kill()
        case.write.both(range(100, 200))
        case.service.answers("undecided", seconds=30)
        reason = case.service.get("")["health"]["reasons"][0]
        assert "redis at 127.0.0.1" in reason
        assert "since" in reason
        own_redis.restart()
        case.service.passes_with(200)


def test_with_another_secret_nothing_is_compared_and_the_reason_is_named(
    serve: Serve, tmp_path: Path
) -> None:
    case = serve(more="keep: hashes\n")
    case.passes(range(100))
    case.service.stop()
    key = tmp_path / "key"
    key.write_text("another secret of the tests\n")
    key.chmod(0o600)
    named = "made with another secret"
    with case.service.another("--mask-key-file", str(key)) as other:
        eventually(lambda: named in str(other.get("")["health"]["reasons"]), what="the reason is named")
        assert other.gate() == "undecided"


def _plant(write: Writer, rounds: int) -> None:
    """Rounds of a thousand equal events, with a fault between any two, on different keys."""
    for number in range(rounds):
        write.both(range(number * 1000, (number + 1) * 1000))
        (write.candidate if number % 2 else write.reference)(number % 10, -number - 1)
        write.flush()
    write.both(range(rounds * 1000, (rounds + 1) * 1000))


def _outcome(service: ServiceProcess, events: int) -> dict[str, Any]:
    """What must not depend on crashes, once everything is read and closed."""

    def settled() -> dict[str, Any] | None:
        # In this order: with what is reported for good comes a status that was surveyed then, or later.
        reported = [each for each in service.divergences() if not each["provisional"]]
        status: dict[str, Any] = service.get("")
        all_read = sum(status["events"].values()) >= events and status["unmatched"] == NOTHING
        return status if all_read and len(reported) == status["divergences"]["total"] else None

    what = f"{events} events, all settled; log: {service.log()[-500:]}"
    status = eventually(settled, seconds=60, what=what)
    members = ("verdict", "events", "matched", "accounts", "divergences", "verified_up_to")
    found = sorted((one["id"], one["kind"], str(one["positions"])) for one in service.divergences())
    return {**{member: status[member] for member in members}, "found": found}


@pytest.mark.nightly
def test_a_service_killed_at_random_moments_ends_as_one_that_was_not(
    kafka: Kafka, redis_server: RedisServer, topic: MakeTopic, tmp_path: Path
) -> None:
    seed = int(os.environ.get("TWINSTREAM_SEED", time.time_ns() % 1_000_000))
    print(f"seed: TWINSTREAM_SEED={seed}")
    chance = random.Random(seed)
    topics = topic(partitions=3), topic(partitions=3)
    rounds = 6
    spec = spec_file(tmp_path, f"killed-{seed}", *topics)
    write = Writer(kafka.brokers, *topics)
    events = 3 * (2 * (rounds + 1) * 1000 + rounds)
    with ServiceProcess(spec, kafka.brokers, f"{redis_server.url[:-1]}1") as service:
        for _ in range(3):
            _plant(write, rounds)
            time.sleep(chance.uniform(0.0, 3.0))
            service.kill()
            eventually(lambda: not service.family(), seconds=5, what="its processes are gone")
            service.start()
        shaken = _outcome(service, events)
    forget(kafka.brokers, f"twinstream.killed-{seed}")
    with ServiceProcess(spec, kafka.brokers, f"{redis_server.url[:-1]}2") as calm:
        undisturbed = _outcome(calm, events)
    assert shaken == undisturbed
    assert shaken["verdict"] == "DIVERGED"


def test_a_batch_that_kills_the_matcher_is_left_out_as_a_hole_and_what_is_behind_it_is_compared(
    serve: Serve,
) -> None:
    service, write = serve(order='{callable: "tests.support.poisonous:related"}')
    write.reference(0, 1000)
    write.flush()
    eventually(lambda: service.get("")["unmatched"]["reference"] == 1, what="one event waits")
    for number in range(200, 260):
        write.candidate(1, number)
    write.candidate(2, POISON)
    write.flush()
    eventually(lambda: service.get("")["holes"], seconds=90, what="the batch of the poison is left out")
    write.candidate(0, 1000)
    write.flush()
    status = service.shows(matched=1, seconds=30)
    assert (status["verdict"], service.gate()) == ("INCONCLUSIVE", "undecided")
    (hole,) = status["holes"]
    first = hole["position"]["offset"]
    offsets = "offset 60 of" if first == 60 else f"offsets {first}–60 of"
    place = f"{hole['position']['topic']} partition 0 (candidate)"
    assert hole["reason"].startswith(f"the matcher fell 3 times while it took {offsets} {place}")
    assert any("fell" in reason for reason in status["health"]["reasons"]), "a crash loop is named"
    accounts, candidate = status["accounts"]["candidate"], status["unmatched"]["candidate"]
    assert (accounts["consumed"], candidate) == (first + 1, first), "what is left out is not consumed"
    assert status["unmatched"]["reference"] == 0
