"""One comparison by several matcher processes, on real Kafka and Redis, ends as it does with one."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.support.cases import MakePlace, Place
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess
from tests.support.waiting import eventually

pytestmark = whole_product()

PARTITIONS = 4
DIVIDED = "co_partitioned: true\n"


@pytest.fixture
def place(place_of: MakePlace) -> Place:
    return place_of(PARTITIONS, DIVIDED)


def shared(place: Place, name: str = "first") -> ServiceProcess:
    """A service with two matchers."""
    return place.service(name, "--shards", "2")


def passes(place: Place, service: ServiceProcess, numbers: range) -> None:
    """With these pairs, and all before them, the gate passes."""
    place.write.both(numbers)
    service.passes_with(numbers.stop)


def test_a_killed_shard_makes_the_gate_undecided_and_ends_as_if_it_had_lived(place: Place) -> None:
    with shared(place) as service:
        passes(place, service, range(1000))
        matchers = service.matchers()
        os.kill(matchers[0], signal.SIGKILL)
        service.answers("undecided")
        reasons = " ".join(service.get("")["health"]["reasons"])
        assert "Shard 0 of 2: " in reasons or "Shard 1 of 2: " in reasons
        service.answers("pass")
        assert service.get("")["matched"] == 1000
        passes(place, service, range(1000, 2000))
        assert set(service.matchers()) & set(matchers) == {matchers[1]}


@pytest.mark.nightly
def test_a_paused_shard_is_taken_over_by_the_other_service_and_does_no_harm_when_it_wakes(
    place: Place,
) -> None:
    with shared(place) as service:
        passes(place, service, range(1000))
        with shared(place, "second") as second:
            eventually(lambda: second.get("")["health"]["standby"], what="it stands by")
            second.answers("pass")  # as the owner of both does
            assert not second.ready()
            paused = service.matchers()[0]
            os.kill(paused, signal.SIGSTOP)
            try:
                eventually(lambda: _owns_one_of_two(second), seconds=40, what="it owns one of two")
                place.write.both(range(1000, 1500))
                assert service.gate() == "undecided"
                second.passes_with(1500)  # it shows both, one of which it owns
            finally:
                os.kill(paused, signal.SIGCONT)
            service.passes_with(1500)
            assert [service.ready(), second.ready()] == [False, False]
            assert service.get("")["accounts"] == second.get("")["accounts"]
            service.kill()
            eventually(second.ready, seconds=60, what="it owns both")
            second.passes_with(1500)
            assert second.get("")["hole_count"] == 0


def _owns_one_of_two(service: ServiceProcess) -> bool:
    stands_by = re.compile(r"shard [01] of 2: another process owns this comparison")
    return [bool(stands_by.match(one)) for one in service.get("")["health"]["reasons"]] == [True]
