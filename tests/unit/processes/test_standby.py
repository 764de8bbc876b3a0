"""A matcher that stands by shows what the owner says, and nothing from the past."""

from __future__ import annotations

import pytest

from loadtest.memory import MemoryRelay, MemorySource
from tests.support.hosts import START, Host, Hosts
from tests.support.workers import SPEC, answers, ask
from twinstream.api.routes.operations import obstacles_to_serving
from twinstream.core.events import Side
from twinstream.matcher.worker import STANDBY, TAKING_OVER
from twinstream.processes.remote_status import FOREIGN
from twinstream.processes.standby import RELAYED, REPORTS_TOLD, Bulletin
from twinstream.status.comparison import ComparisonStatus, DivergenceReport, ResetRequest, ShardStatus


@pytest.fixture
def hosts() -> Hosts:
    hosts = Hosts()
    hosts.write_both(30)
    return hosts


def pair(hosts: Hosts, **skewed: float) -> tuple[Host, Host]:
    """An owner that passes, and one that stands by and shows it."""
    owner, standby = hosts.add(), hosts.add(**skewed)
    hosts.turns(owner, standby, seconds=6)
    assert (owner.owns, standby.owns) == (True, False)
    assert (owner.gate, standby.gate) == ("pass", "pass")
    return owner, standby


def published(host: Host, kind: type) -> int:
    return sum(isinstance(one, kind) for one in host.publisher.published)


def test_a_standby_answers_as_the_owner_does_and_says_that_it_stands_by(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    own, relayed = owner.view(), standby.view()
    for member in ("verdict", "accounts", "matched", "verified_up_to", "divergences", "reason", "since"):
        assert getattr(own.status, member) == getattr(relayed.status, member)
    assert (relayed.status.health.status, relayed.status.health.standby) == ("ok", True)
    assert obstacles_to_serving(relayed) == [f"test: {RELAYED}"]
    assert obstacles_to_serving(own) == []


def test_what_was_told_before_it_looked_is_not_shown(hosts: Hosts) -> None:
    owner, _ = pair(hosts)
    second = hosts.add()
    for _ in range(3):
        hosts.turns(second)
        assert (second.gate, second.view().status.reason.count(STANDBY)) == ("undecided", 1)
    hosts.turns(owner, second)
    assert second.gate == "pass"


def test_a_frozen_owner_passes_no_more_after_seconds_though_its_lease_runs(hosts: Hosts) -> None:
    _, standby = pair(hosts)
    hosts.turns(standby, seconds=5)
    assert hosts.storage.lease == "host-0"
    view = standby.view()
    assert (view.gate.answer, view.freshness.state) == ("undecided", "stale")


def test_an_old_bulletin_that_arrives_again_and_again_makes_nothing_fresh(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    late = hosts.storage.bulletin
    hosts.turns(owner, standby, seconds=2)
    before = published(standby, ShardStatus)
    for _ in range(6):
        hosts.storage.bulletin = late
        hosts.turns(standby, seconds=1)
    assert (standby.gate, published(standby, ShardStatus) - before) == ("undecided", 0)


@pytest.mark.parametrize(("seconds", "gate"), [(4, "pass"), (6, "undecided")])
def test_a_status_that_comes_late_is_as_old_as_its_stamp_says(hosts: Hosts, seconds: int, gate: str) -> None:
    owner, standby = pair(hosts)
    read = hosts.storage.bulletin
    owner.turn()
    late, hosts.storage.bulletin = hosts.storage.bulletin, read
    hosts.turns(standby, seconds=seconds)
    hosts.storage.bulletin = late
    standby.turn()
    assert (standby.gate, standby.view().freshness.age_seconds) == (gate, seconds)
    hosts.advance(2)
    assert standby.gate == "undecided"


def test_a_status_from_before_the_clock_of_the_store_was_set_back_is_not_shown(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    hosts.turns(owner, seconds=1)
    hosts.skew = -60.0
    before = published(standby, ShardStatus)
    hosts.turns(standby, seconds=1)
    assert published(standby, ShardStatus) == before
    hosts.turns(owner, standby, seconds=1)
    assert (published(standby, ShardStatus), standby.gate) == (before + 1, "undecided"), "clocks are apart"
    hosts.skew = 0.0
    hosts.turns(owner, standby, seconds=3)
    assert standby.gate == "pass"


def test_an_owner_whose_lease_has_ended_counts_no_more_at_once(hosts: Hosts) -> None:
    _, standby = pair(hosts)
    hosts.storage.lease = "somebody"
    standby.turn()
    assert (standby.gate, standby.view().freshness.state) == ("undecided", "fresh")
    assert standby.view().status.verdict == "PENDING"


def test_after_a_takeover_a_third_one_waits_for_the_word_of_the_new_owner(hosts: Hosts) -> None:
    owner, second = pair(hosts)
    third = hosts.add()
    hosts.turns(owner, second, third, seconds=3)
    assert third.gate == "pass"
    owner.worker.stop()
    second.turn()
    assert second.owns
    third.turn()
    assert third.gate == "undecided"
    hosts.turns(second, third, seconds=4)
    assert (second.gate, third.gate) == ("pass", "pass")


def test_the_first_word_of_a_new_owner_may_have_stood_there_for_long_and_does_not_count(hosts: Hosts) -> None:
    owner, second = pair(hosts)
    third = hosts.add()
    hosts.turns(owner, second, third, seconds=3)
    owner.worker.stop()
    hosts.turns(second, seconds=4)
    assert (second.gate, third.gate) == ("pass", "pass"), "the last word of the old owner is 4 s old"
    third.turn()
    assert third.gate == "undecided"
    hosts.turns(second, third, seconds=1)
    assert third.gate == "pass"


def test_one_that_takes_over_says_nothing_of_the_old_owner_while_it_loads(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    owner.worker.stop()
    assert standby.worker.start()
    standby.hear()
    assert (standby.gate, TAKING_OVER in standby.view().status.reason) == ("undecided", True)
    standby.owns = True
    hosts.turns(standby, seconds=4)
    assert (standby.gate, standby.view().status.health.standby) == ("pass", False)


def test_a_store_that_is_away_is_no_source_of_a_pass(hosts: Hosts) -> None:
    _, standby = pair(hosts)
    hosts.storage.down = "the store is away"
    standby.turn()
    assert (standby.gate, standby.view().status.health.unreachable) == ("undecided", ["redis"])


def test_the_answer_of_another_comparison_file_is_not_shown(hosts: Hosts) -> None:
    owner, other = hosts.add(), hosts.add(spec=SPEC + "overdue: {after: 61s}\n")
    hosts.turns(owner, other, seconds=6)
    assert (owner.gate, other.gate) == ("pass", "undecided")
    assert published(other, ShardStatus) == 0
    assert other.view().status.waiting_for == FOREIGN


def test_the_answer_about_topics_of_another_kafka_is_not_shown(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    hosts.source = MemorySource()
    hosts.source.create_anew(Side.LEFT)
    other = hosts.add()
    hosts.turns(owner, standby, other, seconds=6)
    assert (owner.gate, standby.gate, other.gate) == ("pass", "pass", "undecided")
    assert other.view().status.waiting_for == FOREIGN


def test_nothing_is_shown_where_kafka_lacks_the_topics_or_falls_silent_later(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    elsewhere = MemorySource()
    elsewhere.create_anew(Side.LEFT)
    nowhere = MemorySource()
    nowhere.delete(Side.LEFT)
    others = []
    for hosts.source in (elsewhere, nowhere):
        others.append(hosts.add())
    hosts.turns(owner, standby, *others, seconds=6)
    elsewhere.down = "Kafka is away"
    for other in others:
        other.worker._source.down = elsewhere.down
    for _ in range(25):
        hosts.turns(owner, standby, *others, seconds=1)
        assert [other.gate for other in others] == ["undecided"] * 2


def test_topics_that_were_created_anew_are_those_of_the_owner_again_soon(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    hosts.source.create_anew(Side.LEFT)
    hosts.turns(owner, standby, seconds=15)
    assert standby.view().status.reason == owner.view().status.reason
    assert standby.view().status.waiting_for is None


@pytest.mark.parametrize("bulletin", [b"", b"{}", b"\xff", b'{"stamp": 1}'])
def test_what_is_not_understood_is_not_shown(hosts: Hosts, bulletin: bytes) -> None:
    _, standby = pair(hosts)
    hosts.storage.bulletin = ("host-0", bulletin)
    standby.turn()
    assert (standby.gate, standby.view().status.verdict) == ("undecided", "PENDING")


@pytest.mark.parametrize("skew", [-86_400.0, -200.0, 0.0, 200.0, 86_400.0])
def test_a_wrong_clock_neither_hinders_a_pass_nor_makes_an_old_prefix_young(
    hosts: Hosts, skew: float
) -> None:
    owner, standby = pair(hosts, skew=skew)
    hosts.write(Side.LEFT, 99, at_ms=int((START + hosts.passed - 280) * 1000))
    hosts.turns(owner, standby, seconds=5)
    assert (owner.gate, standby.gate) == ("pass", "pass")
    hosts.turns(owner, standby, seconds=20)
    assert (owner.gate, standby.gate) == ("undecided", "undecided")
    assert "verified only through" in standby.view().gate.reason


def test_one_that_stood_still_itself_does_not_take_what_it_finds_for_new(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    hosts.turns(owner)
    hosts.skew = -20.0  # The clock of the store is set back meanwhile, so that the stamp looks new.
    hosts.advance(20.0)
    standby.turn()
    assert standby.gate == "undecided"


def differing(hosts: Hosts) -> tuple[Host, Host]:
    """An owner that has found a lost event, and one that stands by."""
    owner, standby = pair(hosts)
    for side, number in ((Side.LEFT, 100), (Side.LEFT, 103), (Side.RIGHT, 103)):
        hosts.write(side, number)
    hosts.turns(owner, standby)
    return owner, standby


def test_differences_are_shown_provisionally_then_for_good_and_stay(hosts: Hosts) -> None:
    owner, standby = differing(hosts)
    assert standby.gate == "fail"
    assert reports(standby) == reports(owner)
    assert list(reports(standby).values()) == [True]
    hosts.write_both(90)
    hosts.turns(owner, standby)
    assert reports(standby) == reports(owner)
    assert list(reports(standby).values()) == [False]
    seen = published(standby, DivergenceReport)
    hosts.turns(owner, standby)
    assert published(standby, DivergenceReport) == seen, "what is known is not told again"


def reports(host: Host) -> dict[str, bool]:
    return {report.id: report.provisional for report in host.board.divergences("test").page(99).items}


def test_provisional_differences_of_an_owner_that_is_gone_are_taken_back(hosts: Hosts) -> None:
    _, standby = differing(hosts)
    assert list(reports(standby).values()) == [True]
    hosts.storage.lease = "somebody"
    standby.turn()
    assert reports(standby) == {}


def test_a_bulletin_has_bounded_many_reports(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    for key in range(40):
        for number in (1, 2):
            hosts.source.append(Side.LEFT, 0, b'{"k": %d, "n": %d}' % (key + 100, number), int(START * 1000))
        hosts.source.append(Side.RIGHT, 0, b'{"k": %d, "n": 2}' % (key + 100), int(START * 1000))
    hosts.turns(owner, standby)
    assert len(reports(owner)) == 40
    assert hosts.storage.bulletin is not None
    assert len(Bulletin.model_validate_json(hosts.storage.bulletin[1]).reports) == REPORTS_TOLD
    assert standby.view().status.divergences.total == 40


def test_an_owner_asks_nothing_of_a_store_that_is_in_trouble(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, _ = pair(hosts)
    hosts.storage.down = "the store is away"
    owner.turn()
    asked: list[int] = []
    monkeypatch.setattr(MemoryRelay, "time", lambda _: asked.append(1))
    owner.turn()
    assert asked == []
    assert isinstance(owner.publisher.published[-1], ComparisonStatus)


def test_a_reset_of_the_owner_is_one_of_the_standby_which_itself_can_reset_nothing(hosts: Hosts) -> None:
    owner, standby = pair(hosts)
    for number in (100, 103):
        hosts.write(Side.LEFT, number)
    hosts.write(Side.RIGHT, 103)
    hosts.write_both(90)
    hosts.turns(owner, standby)
    assert list(reports(standby).values()) == [False]
    ask(hosts.storage, ResetRequest(id="1", by="me", reason="a test", address="here", start="now"))
    assert not standby.worker.begin_anew()
    assert owner.worker.begin_anew()
    assert [one.id for one in answers(hosts.storage)] == ["1"]
    standby.turn()
    assert standby.view().status.verdict == "PENDING"
    owner.renew(hosts)
    hosts.write_both(9)
    hosts.turns(owner, standby, seconds=5)
    assert (owner.gate, standby.gate, reports(standby)) == ("pass", "pass", {})


def test_a_standby_whose_matcher_was_away_during_a_reset_shows_nothing_of_what_it_ended(hosts: Hosts) -> None:
    hosts.write(Side.LEFT, 100)
    hosts.write_both(103)
    first = hosts.add()
    hosts.turns(first, seconds=8)
    assert list(reports(first).values()) == [False]
    first.worker.stop()
    first.board.lost("test", "its matcher fell")
    second = hosts.add()
    hosts.turns(second)
    ask(hosts.storage, ResetRequest(id="1", by="me", reason="a test", address="here", start="now"))
    hosts.turns(second)
    assert second.worker.begin_anew()
    second.renew(hosts)
    hosts.write_both(9)
    hosts.turns(second, seconds=5)
    first.renew(hosts)
    hosts.turns(second, first, seconds=5)
    assert (first.owns, first.gate) == (False, "pass")
    assert not first.board.divergences("test").page(9).items
