"""A comparison moved to a Spark job and back ends as `check` says, on real Redis, Kafka and Spark."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tests.integration.spark.conftest import Pipelines, compared
from tests.integration.spark.test_matcher import SHARDS, Compared, come_to
from tests.support.commands import COMMAND
from tests.support.service import ServiceProcess
from tests.support.spark import SOCKETS
from tests.support.waiting import eventually
from twinstream.adapters.redis.store import RedisStore
from twinstream.checkpoints import format as checkpoint
from twinstream.cli.commands.move import moved
from twinstream.errors import CheckpointError, SettingsError
from twinstream.settings import load as settings_of
from twinstream.spark.matcher.claim import Claim, make_topics
from twinstream.spark.matcher.location import Location, owned
from twinstream.spec.load import loads

pytestmark = [SOCKETS, pytest.mark.requires_kafka, pytest.mark.requires_spark, pytest.mark.timeout(900)]


PATIENCE = 300.0
"""Seconds for a step: two programs and a Spark job take turns on two cores."""


class Journey:
    """A comparison that moves; `seed` decides its faults."""

    def __init__(self, both: Compared, redis_url: str, shards: int = SHARDS) -> None:
        self.both, self.shards = both, shards
        self.brokers = both.pipelines.kafka.brokers
        self.redis_url = redis_url
        self.seed = random.SystemRandom().randrange(1 << 30)
        print(f"seed {self.seed}")
        self.faults = random.Random(self.seed)
        self.file = both.pipelines.folder / "sink.yaml"
        self.file.write_text(both.text)
        make_topics(self.brokers, both.results, {})
        self.settings = settings_of({"brokers": self.brokers, "redis": redis_url}, None)
        self.checkpoint = str(both.pipelines.folder / "checkpoint")

    def write(self, thousand: int) -> None:
        self.both.write(range((thousand - 1) * 1_000, thousand * 1_000), self.faults)

    @contextmanager
    def service(self) -> Iterator[ServiceProcess]:
        with ServiceProcess(self.file, self.brokers, self.redis_url) as service:
            yield service

    def serve(self, events: int) -> tuple[dict[str, Any], set[tuple[str, str]]]:
        """The status of the service once it has settled so many events, and the divergences; then it ends."""
        with self.service() as service:
            status = eventually(
                lambda: _settled(service.asked(""), events), seconds=PATIENCE, what="the service settles all"
            )
            return status, {(one["id"], one["kind"]) for one in service.divergences()}

    def run_job(self, events: int) -> None:
        """Run the job until it has settled so many events."""
        with self.both.results_so_far() as topics, self.both.job(self.shards) as query:
            come_to(topics, self.both.text, events, query, PATIENCE, self.shards)

    def move(self, to: str) -> str:
        """Move it, in this process and on its session."""
        spec, results = loads(self.both.text), self.both.results
        return moved(spec, to, self.checkpoint, self.shards, results, self.settings)

    def kill_move(self, *options: str) -> None:
        """Kill a move at a moment of chance, by then it has taken the lease."""
        command = [str(COMMAND), "move", str(self.file), "--checkpoint", self.checkpoint]
        servers = ["--brokers", self.brokers, "--redis", self.redis_url]
        with subprocess.Popen([*command, *servers, *options]) as process:
            with Redis.from_url(self.redis_url) as client:
                eventually(
                    lambda: client.exists("twinstream:{sink}:lease") or process.poll() is not None,
                    seconds=PATIENCE,
                    what="the move takes the lease",
                )
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.faults.random() * 15)
            process.kill()

    def owners(self) -> set[str]:
        """Who may go on with the comparison."""
        location = Location(self.both.pipelines.spark, self.checkpoint)
        spec, found = loads(self.both.text), set()
        with suppress(CheckpointError):
            if owned(location) is not None or location.begun():
                found.add("job")
        store = RedisStore(self.redis_url, spec.name)
        head = checkpoint.decode(store.head())
        store.close()
        return found if "moved" in head else {*found, "service"}

    def end(self, status: dict[str, Any], found: set[tuple[str, str]]) -> None:
        """Check the end against `check`."""
        both = self.both
        whole = compared(both.pipelines, both.reference, both.candidate, both.more)
        assert status["verdict"] == whole["verdict"] == "DIVERGED"
        assert status["matched"] == whole["matched"]
        assert status["divergences"]["by_kind"] == whole["divergences"]["by_kind"]
        for side, account in whole["accounts"].items():
            assert {name: status["accounts"][side][name] for name in account} == account
        assert found == {(one["id"], one["kind"]) for one in whole["examples"]}
        with Redis.from_url(self.redis_url) as client:
            secret = Location(both.pipelines.spark, self.checkpoint).mask_secret()
            assert client.get("twinstream:{sink}:mask") == secret
        has_secret = Path(self.checkpoint) / "twinstream/beginning"
        assert not has_secret.stat().st_mode & 0o077, "only its user may read it"


def _settled(status: dict[str, Any], events: int) -> dict[str, Any] | None:
    if not status or status["events"]["reference"] != events or any(status["unmatched"].values()):
        return None
    final = status["closed_divergences"]["total"] == status["divergences"]["total"]
    return status if final and not status["difference_awaits"] else None


@pytest.fixture
def both(pipelines: Pipelines) -> Compared:
    reference, candidate = pipelines.topic(partitions=3), pipelines.topic(partitions=2)
    return Compared(pipelines, reference, candidate, f"{reference}.results")


@pytest.fixture
def journey(both: Compared, redis_url: str) -> Journey:
    return Journey(both, redis_url)


@pytest.fixture
def hashed(both: Compared, redis_url: str) -> Journey:
    """One of which only hashes are kept, keyed by a secret that has to come along."""
    both.more = f"{both.more}\nkeep: hashes"
    return Journey(both, redis_url, shards=1)


@pytest.mark.nightly
def test_a_comparison_moved_to_spark_and_back_ends_as_check_says(journey: Journey) -> None:
    journey.write(1)
    journey.serve(1_000)
    assert "start its job" in journey.move("spark")
    with journey.service() as service:
        waiting = "a Spark job goes on with it, since it was moved to"
        eventually(lambda: waiting in (service.asked("").get("waiting_for") or ""), what="it leaves it alone")
    journey.run_job(1_000)  # It speaks, though no record has come.
    journey.write(2)
    journey.write(3)
    journey.run_job(3_000)
    journey.write(4)
    assert "`twinstream serve` goes on" in journey.move("service")
    with journey.both.job() as job:
        assert "has moved to the service, which goes on with it" in job.failure()
    status, found = journey.serve(4_000)
    journey.end(status, found)


@pytest.mark.nightly
def test_a_move_by_other_results_topics_is_refused_and_a_job_ends_that_does_not_see_its_claim(
    journey: Journey,
) -> None:
    spec, other = loads(journey.both.text), f"{journey.both.results}.other"
    journey.write(1)
    with journey.both.results_so_far() as topics, journey.both.job(shards=1) as job:
        come_to(topics, journey.both.text, 1_000, job, PATIENCE, 1)
        with pytest.raises(SettingsError, match=f"no job of comparison 'sink' has written to topic {other}"):
            moved(spec, "service", journey.checkpoint, 1, other, journey.settings)
        make_topics(journey.brokers, other, {})
        with closing(Claim(journey.brokers, other, {}, spec.name, "of an earlier job")) as claim:
            claim.make(print)
        assert job.exception() is None
        moved(spec, "service", journey.checkpoint, 1, other, journey.settings)
        assert "has moved to the service, which goes on with it" in job.failure()


@pytest.mark.nightly
def test_moves_that_are_killed_leave_one_owner_and_end_when_they_are_made_again(hashed: Journey) -> None:
    journey = hashed
    journey.write(1)
    journey.serve(1_000)
    journey.write(2)
    journey.kill_move("--to", "spark", "--shards", f"{journey.shards}")
    assert journey.owners() in [{"service"}, {"job"}, set()]
    journey.move("spark")
    assert journey.owners() == {"job"}
    journey.run_job(2_000)
    journey.write(3)
    journey.kill_move("--to", "service", "--results", journey.both.results)
    assert journey.owners() in [{"service"}, {"job"}, set()]
    journey.move("service")
    assert journey.owners() == {"service"}
    status, found = journey.serve(3_000)
    journey.end(status, found)
