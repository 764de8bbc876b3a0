"""A job's claim waits as long as another job writes, and no longer than promised when that has ended."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable
from itertools import pairwise
from threading import Event, Thread

import orjson
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from deploy.embedded.kafka import Kafka
from tests.support.marks import one_a_change
from tests.support.stack import Closing, MakeTopic
from tests.support.waiting import eventually
from twinstream.errors import NoResults, SettingsError
from twinstream.spark.matcher import claim
from twinstream.spark.matcher.claim import Claim, make_topics

pytestmark = pytest.mark.requires_kafka

SILENT_SECONDS = 2.5
WAITS = ["another job writes about comparison 'orders': this one begins when that has ended"]


class OtherJob:
    """A job that tells its status, by a clock that may be ahead of that of this host."""

    def __init__(self, kafka: Kafka, results: str, ahead_seconds: float = 0.0) -> None:
        self._producer = Producer({"bootstrap.servers": kafka.brokers})
        self._results, self._ahead = results, ahead_seconds
        self.told: list[float] = []

    def tell(self) -> None:
        status = {
            "run": "other",
            "shard": 0,
            "of": 1,
            "began": "",
            "head": b64encode(b"head").decode(),
            "bulletin": {"stamp": time.time() + self._ahead},
        }
        self._producer.produce(self._results, orjson.dumps(status), b"orders/0")
        assert self._producer.flush(30) == 0
        self.told.append(time.monotonic())


@pytest.fixture
def results(kafka: Kafka, topic: MakeTopic, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(claim, "SILENT_SECONDS", SILENT_SECONDS)
    name = topic()
    make_topics(kafka.brokers, name, {})
    return name


@pytest.fixture
def make(kafka: Kafka, results: str, closing: Closing) -> Callable[[], list[str]]:
    """Makes a claim, and returns what it has said."""

    def made() -> list[str]:
        said: list[str] = []
        closing(Claim(kafka.brokers, results, {}, "orders", "this")).make(said.append)
        return said

    return made


def test_a_results_topic_of_several_partitions_is_refused(kafka: Kafka, topic: MakeTopic) -> None:
    name = topic(partitions=3)
    refusal = f"the results topic {name} has 3 partitions, and only one would be read: delete it"
    with pytest.raises(SettingsError, match=refusal):
        make_topics(kafka.brokers, name, {})


@pytest.mark.parametrize("ahead_seconds", one_a_change([3600.0, 0.0]))
def test_a_claim_waits_as_long_as_another_job_writes(
    kafka: Kafka, results: str, make: Callable[[], list[str]], ahead_seconds: float
) -> None:
    job, ending = OtherJob(kafka, results, ahead_seconds), Event()
    job.tell()

    def lives() -> None:
        while not ending.wait(1.0):
            job.tell()

    writing = Thread(target=lives)
    writing.start()
    end = Thread(target=lambda: (time.sleep(2 * SILENT_SECONDS), ending.set()))
    end.start()
    said = make()
    claimed = time.monotonic()
    end.join(0.0)
    ended = ending.is_set()
    ending.set()
    writing.join()
    assert (ended, said) == (True, WAITS)
    assert max(b - a for a, b in pairwise(job.told)) < SILENT_SECONDS, "the job lived all the time"
    assert claimed - job.told[-1] > SILENT_SECONDS - 0.2


def test_a_status_from_the_future_does_not_keep_a_claim_waiting(
    kafka: Kafka, results: str, make: Callable[[], list[str]]
) -> None:
    OtherJob(kafka, results, ahead_seconds=3600.0).tell()
    began = time.monotonic()
    assert make() == WAITS
    assert SILENT_SECONDS <= time.monotonic() - began < SILENT_SECONDS + 30


def test_a_claim_does_not_wait_where_nobody_has_written_for_long(
    kafka: Kafka, results: str, make: Callable[[], list[str]]
) -> None:
    assert make() == []
    OtherJob(kafka, results, ahead_seconds=-60.0).tell()
    assert make() == []


def test_a_claim_in_topics_that_were_made_anew_counts_no_more(
    kafka: Kafka, results: str, closing: Closing
) -> None:
    earlier = closing(Claim(kafka.brokers, results, {}, "orders", "earlier"))
    OtherJob(kafka, results, ahead_seconds=-60.0).tell()
    earlier.make(print)
    earlier.check()
    admin = AdminClient({"bootstrap.servers": kafka.brokers})
    for deleted in admin.delete_topics([results, f"{results}.divergences"]).values():
        deleted.result()
    eventually(lambda: make_topics(kafka.brokers, results, {}), what="the names are free again")
    later = closing(Claim(kafka.brokers, results, {}, "orders", "later"))
    later.make(print)

    def lost() -> bool:
        try:
            earlier.check()
        except NoResults:
            return True
        return False

    eventually(lost, what="the first job finds that its claim is gone", seconds=30)
    later.check()


def test_a_claim_knows_whether_a_job_has_written_about_the_comparison(
    kafka: Kafka, results: str, closing: Closing
) -> None:
    def known(name: str, topic: str = results) -> bool:
        return closing(Claim(kafka.brokers, topic, {}, name, "next")).known()

    assert not known("orders")
    assert not known("orders", f"{results}-of-nobody")
    OtherJob(kafka, results, ahead_seconds=-60.0).tell()
    assert known("orders"), "it has told a status"
    closing(Claim(kafka.brokers, results, {}, "claimed", "this")).make(print)
    assert known("claimed")
    assert not known("others")
