"""A comparison that several matchers share begins anew on real Kafka and Redis: all of it, or nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.cases import NOTHING, MakePlace, Place
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess
from tests.support.waiting import eventually

pytestmark = whole_product()

PARTITIONS = 4


@pytest.fixture
def place(place_of: MakePlace) -> Place:
    """Where services of two matchers may run, with a difference in both topics."""
    place = place_of(PARTITIONS, "co_partitioned: true\n")
    place.write.both(range(500))
    place.write.reference(3, -1)
    place.write.both(range(500, 1000))
    return place


def two_matchers(place: Place, name: str, *options: str) -> ServiceProcess:
    return place.service(name, "--shards", "2", *options)


def has_diverged(service: ServiceProcess, matched: int = 1000) -> None:
    """The difference is found, and nothing waits for a partner."""
    service.answers("fail")
    service.shows(matched=matched, unmatched=NOTHING)


def have_begun(service: ServiceProcess) -> None:
    """All shards have begun anew: with `now` each begins where it rests."""
    service.shows(reset_count=1, waiting_for=None)


def is_anew(service: ServiceProcess, matched: int) -> None:
    """All of it has begun anew, once, and matched so many, with no difference."""
    service.passes_with(matched)
    status = service.get("")
    assert (status["divergences"]["total"], status["hole_count"], status["reset_count"]) == (0, 0, 1)
    (record,) = status["resets"]
    before = record["before"]
    assert (record["by"], before["verdict"], before["matched"]) == ("ann", "DIVERGED", 1000)
    assert service.divergences() == []


@pytest.mark.nightly
def test_two_matchers_begin_anew_together_and_none_of_them_falls(place: Place) -> None:
    with two_matchers(place, "alone") as service:
        has_diverged(service)
        matchers = service.matchers()
        response = service.reset()
        assert response.status_code == 200, response.text
        assert service.gate() == "undecided"
        have_begun(service)
        place.write.both(range(1000, 1200))
        is_anew(service, 200)
        assert (service.matchers(), "matcher lost" in service.log()) == (matchers, False)
        service.stop()
        service.start()
        place.write.both(range(1200, 1300))
        is_anew(service, 300)


@pytest.fixture
def apart(place: Place) -> Iterator[tuple[ServiceProcess, list[ServiceProcess]]]:
    """The API alone, and matchers on two hosts."""
    api = two_matchers(place, "api", "--role", "api")
    hosts = [two_matchers(place, f"host-{number}", "--role", "matcher") for number in range(2)]
    with ExitStack() as stack:
        for process in (api, *hosts):
            stack.enter_context(process)
        yield api, hosts


def test_it_is_asked_for_at_the_api_and_done_by_matchers_on_two_hosts(
    place: Place, apart: tuple[ServiceProcess, list[ServiceProcess]]
) -> None:
    api, hosts = apart
    has_diverged(api)
    os.kill(hosts[0].matchers()[0], signal.SIGKILL)
    eventually(lambda: api.reset().status_code == 200, seconds=60, what="the owner of shard 0 answers")
    assert api.gate() == "undecided", "what was said of the old comparison counts no more"
    have_begun(api)
    place.write.both(range(1000, 1200))
    is_anew(api, 200)
    eventually(lambda: api.reset({"at": "earliest"}).status_code == 200, seconds=30, what="it may be reset")
    has_diverged(api, 1200)
    assert api.get("")["reset_count"] == 2
