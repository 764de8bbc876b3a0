"""A time of day that is wrong, or jumps, changes the times that are shown, and nothing that is decided."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.hosts import START, Host, Hosts
from twinstream.core.events import Side

JUMPS = [-86_400.0, -3600.0, 3600.0, 86_400.0]
STALENESS = 300


def true_ms(hosts: Hosts, seconds_ago: float = 0.0) -> int:
    """The true time, as a broker stamps it."""
    return int((START + hosts.passed - seconds_ago) * 1000)


def passing(skew: float = 0.0, store_skew: float | None = 0.0) -> tuple[Hosts, Host]:
    """A host that owns a comparison in which all match; its clock and the store's may be wrong."""
    hosts = Hosts()
    if store_skew is not None:
        hosts.storage.clock = lambda: START + hosts.passed + store_skew
    hosts.write_both(30)
    host = hosts.add(skew=skew)
    hosts.turns(host, seconds=4)
    return hosts, host


def decided(host: Host) -> dict[str, Any]:
    """What a comparison has decided."""
    status = host.view().status
    members = ("verdict", "matched", "accounts", "divergences", "verified_up_to", "hole_count", "suspicions")
    return {member: getattr(status, member) for member in members}


@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_jumps_decides_nothing_and_is_named_until_it_is_right_again(jump: float) -> None:
    (hosts, host), (calm_hosts, calm) = passing(), passing()
    assert host.gate == "pass"
    for jumps in (jump, -jump):
        host.clock.set(jumps)
        for each, of in ((hosts, host), (calm_hosts, calm)):
            each.write_both(30, at_ms=true_ms(each))
            each.turns(of)
        assert decided(host) == decided(calm)
        if jumps == jump:
            assert host.gate == "undecided"
            way = "ahead of" if jump > 0 else "behind"
            reason = f"The clock of this host is {abs(jump):,.0f} s {way} that of Redis"
            assert reason in host.view().gate.reason
    assert host.gate == "pass"


@pytest.mark.parametrize("jump", JUMPS)
def test_between_two_statuses_a_jump_is_not_noticed_by_the_gate(jump: float) -> None:
    hosts, host = passing()
    host.clock.set(jump)
    assert host.gate == "pass"
    hosts.advance(4)
    assert (host.gate, host.view().freshness.state) == ("pass", "fresh")
    hosts.advance(2)
    assert (host.gate, host.view().freshness.state) == ("undecided", "stale")


@pytest.mark.parametrize(
    ("skew", "store_skew"), [(-20.0, 0.0), (0.0, -20.0), (-600.0, -600.0), (-20.0, None)]
)
def test_an_event_that_waits_is_as_old_as_the_latest_clock_says(
    skew: float, store_skew: float | None
) -> None:
    hosts, host = passing(skew, store_skew)
    hosts.write(Side.LEFT, 99, at_ms=true_ms(hosts))
    hosts.turns(host, seconds=STALENESS - 5)
    assert host.gate == "pass"
    hosts.turns(host, seconds=6)
    assert host.gate == "undecided"
    assert "verified only through" in host.view().gate.reason


def test_the_time_of_records_is_known_after_a_restart() -> None:
    hosts, host = passing(-600.0, -600.0)
    hosts.write(Side.LEFT, 99, at_ms=true_ms(hosts))
    hosts.turns(host, seconds=100)
    host.worker.stop()
    hosts.advance(STALENESS - 110)
    host.renew(hosts)
    hosts.turns(host, seconds=5)
    assert host.gate == "pass"
    hosts.turns(host, seconds=10)
    assert host.gate == "undecided"
    assert "verified only through" in host.view().gate.reason


def test_a_clock_that_is_ahead_passes_nothing_that_waits() -> None:
    hosts, host = passing(600.0, 600.0)
    hosts.write(Side.LEFT, 99, at_ms=true_ms(hosts))
    hosts.turns(host)
    assert host.gate == "undecided"
    assert "verified only through" in host.view().gate.reason


@pytest.mark.parametrize("skew", JUMPS)
def test_a_host_whose_clock_is_wrong_takes_over_and_decides_the_same(skew: float) -> None:
    hosts, first = passing()
    second = hosts.add(skew=skew)
    hosts.turns(first, second, seconds=4)
    assert (first.gate, second.gate) == ("pass", "pass"), "what the owner says counts"
    before = decided(first)
    first.worker.stop()
    hosts.turns(second, seconds=4)
    assert second.owns
    assert decided(second) == before
    assert (second.gate, "that of Redis" in second.view().gate.reason) == ("undecided", True)


def test_a_matcher_that_was_paused_claims_nothing_of_what_came_meanwhile() -> None:
    hosts, host = passing()
    hosts.write(Side.LEFT, 99, at_ms=true_ms(hosts))
    hosts.advance(STALENESS)
    host.worker.beat()
    host.hear()
    assert host.gate == "undecided"
    assert "302 s ago" in host.view().gate.reason
