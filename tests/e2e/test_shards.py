"""One comparison by several matcher processes, on real Kafka and Redis, ends as it does with one."""

from __future__ import annotations

import os
import re
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import NOTHING, MakePlace, Place
from tests.support.commands import twinstream
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.waiting import eventually

pytestmark = whole_product()

PARTITIONS = 4
ROUNDS = 3
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


def plant(write: Writer) -> None:
    """Rounds of equal events, with a lost one and one too many between them, on different keys."""
    for number in range(ROUNDS):
        write.both(range(number * 600, (number + 1) * 600))
        write.reference(number, -number - 1)
        write.candidate(number + 5, -number - 1)
    write.both(range(ROUNDS * 600, (ROUNDS + 1) * 600))


EVENTS = 2 * (ROUNDS + 1) * 600 + 2 * ROUNDS


def outcome(service: ServiceProcess) -> dict[str, Any]:
    """What must not depend on the number of matchers, once everything is read and looked at."""

    began = datetime.now(UTC)

    def settled() -> dict[str, Any] | None:
        failed = service.gate() == "fail"  # Asked first: what comes in between may be what makes it fail.
        status: dict[str, Any] = service.get("")
        done = sum(status["events"].values()) >= EVENTS and status["unmatched"] == NOTHING
        through = status["verified_through"]
        looked = done and through is not None and datetime.fromisoformat(through) > began
        return status if looked and failed else None

    status = eventually(settled, seconds=60, what=f"all is settled; log: {service.log()[-800:]}")
    members = ("verdict", "events", "matched", "accounts", "divergences", "verified_up_to", "hole_count")
    found = sorted((one["id"], one["kind"], str(one["positions"])) for one in service.divergences())
    return {**{member: status[member] for member in members}, "found": found}


def test_two_matchers_find_what_one_finds(place: Place) -> None:
    plant(place.write)
    with place.service("alone") as alone:
        expected = outcome(alone)
    with place.service("shared", "--shards", "2", redis=f"{place.redis[:-1]}2") as service:
        assert outcome(service) == expected
        assert len(service.matchers()) == 2
        positions = [partition["position"] for partition in service.get("")["progress"]["candidate"]]
        assert (len(positions), sum(positions)) == (4, EVENTS // 2)


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


def test_another_number_of_matchers_waits_for_a_reset(place: Place) -> None:
    with place.service("before") as alone:
        passes(place, alone, range(500))
    with shared(place) as service:
        _is_refused_state(service, "1, and this process")
        assert service.gate() == "undecided"
        done = service.reset(start=None)
        assert done.status_code == 200, done.text
        service.passes_with(500)
        assert service.get("")["reset_count"] == 1
    with place.service("after") as alone:
        _is_refused_state(alone, "2")


def _is_refused_state(service: ServiceProcess, shards: str) -> None:
    """The state in Redis is that of another number of shards, and the service says so."""
    reason = f"its state is that of --shards {shards}"
    eventually(lambda: reason in service.get("")["reason"], what=reason)


def test_what_cannot_be_divided_is_refused_at_the_start(tmp_path: Path) -> None:
    spec = spec_file(tmp_path, "shared", "one", "other", DIVIDED, "total")
    code, out, err = twinstream("serve", spec, "--shards", "2")
    assert (code, out) == (2, "")
    why = "events of all keys and partitions can depend on each other"
    assert err == f"twinstream: comparison 'shared' cannot be divided over 2 shards: {why}\n"
