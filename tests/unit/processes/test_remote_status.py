"""A process without matchers shows what the owner says, never contends, and says why it hears nobody."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from loadtest.memory import ManualClock, MemoryShelf
from tests.support.hosts import START, Host, Hosts
from tests.support.statuses import START as AT
from tests.support.statuses import status
from tests.support.workers import SPEC, ask, board_of
from twinstream.api.routes.operations import (
    obstacles_to_answering,
    obstacles_to_matching,
    obstacles_to_serving,
)
from twinstream.api.state.entry import View
from twinstream.core.arrivals.sharding import WHOLE, Shard
from twinstream.core.events import Side
from twinstream.processes.relayed import OwnersReports
from twinstream.processes.remote_status import FOREIGN, UNHEARD, Watcher
from twinstream.processes.standby import WAITING_BYTES, Bulletin
from twinstream.spec.load import digest, loads
from twinstream.status.comparison import ComparisonStatus, ResetRequest


class Watch:
    """A watcher with its board, on the time of the hosts."""

    def __init__(self, hosts: Hosts, spec: str = SPEC, skew: float = 0.0) -> None:
        self.clock = ManualClock(START + skew)
        self.clock.advance(hosts.passed)
        self.board = board_of(loads(spec), self.clock)
        self._watcher = Watcher(digest(loads(spec)), hosts.shelf.owned_by("watcher"), WHOLE, self.clock)
        self._hosts = hosts

    def listen(self) -> str | None:
        """What it does in a second; why it hears nobody."""
        news = self._watcher.listen()
        if news.silence is not None:
            self.board.unheard("test", news.silence)
        for publication, made_at in news.publications:
            self.board.accept(publication, made_at=made_at)
        return news.silence

    def turns(self, *hosts: Host, seconds: int = 3) -> None:
        """Let these hosts and this one live for some seconds."""
        for _ in range(seconds):
            for host in hosts:
                host.turn()
            self.listen()
            self._hosts.advance(1.0)
            self.clock.advance(1.0)

    @property
    def view(self) -> View:
        return self.board.view("test")


@pytest.fixture
def hosts() -> Hosts:
    hosts = Hosts()
    hosts.write_both(30)
    return hosts


@pytest.fixture
def owner(hosts: Hosts) -> Host:
    return hosts.add()


@pytest.fixture
def watch(hosts: Hosts, owner: Host) -> Watch:
    """One that hears an owner who passes."""
    watch = Watch(hosts)
    watch.turns(owner, seconds=6)
    assert (owner.gate, watch.view.gate.answer) == ("pass", "pass")
    return watch


def test_it_shows_what_the_owner_shows_and_is_no_standby(owner: Host, watch: Watch) -> None:
    own, seen = owner.view().status, watch.view.status
    update = {"updated_at": own.updated_at}
    assert seen.model_copy(update=update) == own
    assert not seen.health.standby


@pytest.mark.parametrize("skew", [0.0, -86_400.0, 86_400.0])
def test_a_frozen_owner_passes_no_more_after_seconds_whatever_the_clock(
    hosts: Hosts, owner: Host, skew: float
) -> None:
    watch = Watch(hosts, skew=skew)
    watch.turns(owner, seconds=6)
    assert watch.view.gate.answer == "pass"
    watch.turns(seconds=6)
    assert (watch.view.gate.answer, watch.view.freshness.state) == ("undecided", "stale")


def test_what_a_run_had_verified_stays_so_and_ages_while_a_new_task_of_it_does_not_know(hosts: Hosts) -> None:
    watcher = Watcher("digest", hosts.shelf.owned_by("watcher"), WHOLE, ManualClock())
    known = status(verified_through=AT, verified_age_seconds=1.0)
    unknown = known.model_copy(update={"verified_through": None, "verified_age_seconds": None})
    another = unknown.model_copy(update={"started_at": AT + timedelta(days=1)})
    for made_at, said in (100.0, known), (103.0, unknown), (104.0, another):
        watcher.publish(said, made_at)
    said_again = [one for one, _ in watcher.listen().publications]
    told = [one.verified_age_seconds for one in said_again if isinstance(one, ComparisonStatus)]
    assert told == [1.0, 4.0, None]


def test_it_leaves_the_lease_alone(hosts: Hosts, owner: Host, watch: Watch) -> None:
    owner.worker.stop()
    watch.turns(seconds=12)
    assert hosts.storage.lease is None
    assert hosts.storage.owner == "host-0"


def test_where_nobody_is_heard_it_says_so_and_is_undecided(hosts: Hosts) -> None:
    watch = Watch(hosts)
    assert watch.listen() == UNHEARD
    assert watch.view.gate.answer == "undecided"
    assert "No matcher is heard that owns this comparison" in watch.view.gate.reason
    assert (watch.view.falls, watch.view.in_crash_loop) == (0, False)
    assert watch.view.gate.to_decide.startswith("The matcher of another process must be heard")


def test_an_owner_that_is_gone_counts_no_more_and_its_successor_does(
    hosts: Hosts, owner: Host, watch: Watch
) -> None:
    second = hosts.add()
    owner.worker.stop()
    second.turn()
    assert second.owns
    assert watch.listen() == UNHEARD
    assert (watch.view.gate.answer, watch.view.freshness.state) == ("undecided", "unheard")
    watch.turns(second, seconds=4)
    assert (watch.view.gate.answer, watch.view.freshness.state) == ("pass", "fresh")


def test_a_store_that_is_away_is_named(hosts: Hosts, owner: Host, watch: Watch) -> None:
    hosts.storage.down = "the store is away"
    assert watch.listen() == "the store is away"
    assert watch.view.gate.answer == "undecided"
    hosts.storage.down = None
    watch.turns(owner, seconds=4)
    assert watch.view.gate.answer == "pass"


def test_an_owner_with_another_file_is_not_shown_and_named(hosts: Hosts, owner: Host) -> None:
    watch = Watch(hosts, spec=SPEC + "overdue: {after: 61s}\n")
    watch.turns(owner)
    assert watch.listen() == FOREIGN
    assert (watch.view.gate.answer, watch.view.status.matched) == ("undecided", 0)


def test_an_owner_that_cannot_begin_is_heard_with_its_reason(hosts: Hosts, owner: Host) -> None:
    hosts.source.delete(Side.RIGHT)
    watch = Watch(hosts)
    watch.turns(owner)
    assert not owner.owns
    assert "there is no such topic" in watch.view.status.reason
    assert (watch.view.gate.answer, watch.view.freshness.state) == ("undecided", "fresh")


def test_divergences_and_what_waits_are_shown_and_go_with_the_owner(
    hosts: Hosts, owner: Host, watch: Watch
) -> None:
    hosts.write(Side.LEFT, 100)
    hosts.write(Side.LEFT, 103)
    hosts.write(Side.RIGHT, 103)
    hosts.write(Side.RIGHT, 500)
    watch.turns(owner, seconds=4)
    waiting = owner.board.unmatched("test")
    assert waiting
    assert watch.board.unmatched("test") == waiting
    assert watch.view.gate.answer == "fail"
    (found,) = owner.board.divergences("test").page(9).items
    assert watch.board.divergences("test").page(9).items == [found]
    hosts.storage.lease = "somebody"
    watch.listen()
    assert watch.board.unmatched("test") == []
    assert watch.board.divergences("test").page(9).items == []


def test_a_standby_shows_what_waits_too(hosts: Hosts, owner: Host) -> None:
    standby = hosts.add()
    hosts.write(Side.LEFT, 500)
    hosts.turns(owner, standby, seconds=6)
    assert [event.position.offset for event in standby.board.unmatched("test")] == [30]


def test_a_bulletin_has_boundedly_much_of_what_waits(hosts: Hosts, owner: Host) -> None:
    watch = Watch(hosts)
    for number in range(150):
        text = b'{"k": %d, "n": %d, "text": "%s"}' % (number + 100, number, b"x" * 2000)
        hosts.source.append(Side.LEFT, 0, text, int(START * 1000))
        hosts.source.append(Side.RIGHT, 0, b'{"k": %d, "n": 1}' % (number + 900), int(START * 1000))
    watch.turns(owner, seconds=6)
    assert hosts.storage.bulletin is not None
    sizes = {"reference": 0, "candidate": 0}
    for event in Bulletin.model_validate_json(hosts.storage.bulletin[1]).waiting:
        sizes[event.side] += len(event.model_dump_json())
    assert all(0 < size <= WAITING_BYTES for size in sizes.values())
    assert watch.view.status.unmatched.reference == 150


def test_a_reset_is_seen_with_its_record(hosts: Hosts, owner: Host, watch: Watch) -> None:
    ask(hosts.storage, ResetRequest(id="1", by="me", reason="a test", address="here", start="now"))
    assert owner.worker.begin_anew()
    watch.listen()
    assert watch.view.gate.answer == "undecided"
    owner.renew(hosts)
    hosts.write_both(9)
    watch.turns(owner, seconds=5)
    assert (watch.view.gate.answer, [one.id for one in watch.view.status.resets]) == ("pass", ["1"])


def test_what_is_found_behind_a_reset_is_listed_though_the_store_was_read_before_its_status(
    hosts: Hosts, owner: Host, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    pass_on = OwnersReports.pass_on

    def held_up(reports: OwnersReports, *told: Any) -> None:
        monkeypatch.setattr(OwnersReports, "pass_on", pass_on)
        ask(hosts.storage, ResetRequest(id="1", by="me", reason="a test", address="here"))
        assert owner.worker.begin_anew()
        owner.renew(hosts)
        hosts.write(Side.LEFT, 100)
        hosts.write_both(103)
        hosts.turns(owner, seconds=4)
        pass_on(reports, *told)

    monkeypatch.setattr(OwnersReports, "pass_on", held_up)
    watch.turns(owner)
    watch.turns(owner, seconds=5)
    assert watch.view.status.reset_count == 1
    listed = [board.divergences("test").page(9).items for board in (owner.board, watch.board)]
    assert len(listed[0]) == 1
    assert listed[0] == listed[1]


def test_a_process_is_ready_by_what_it_is_for(hosts: Hosts, owner: Host) -> None:
    standby = hosts.add()
    fresh = hosts.add()
    hosts.turns(owner, standby, seconds=4)
    for host, serving, matching in ((owner, True, True), (standby, False, True), (fresh, False, False)):
        assert (not obstacles_to_serving(host.view())) is serving
        assert (not obstacles_to_matching(host.view())) is matching
        assert obstacles_to_answering(host.view()) == []


def test_a_matcher_without_a_store_is_not_ready(hosts: Hosts, owner: Host) -> None:
    hosts.storage.down = "the store is away"
    owner.turn()
    assert obstacles_to_matching(owner.view()) == ["test: Redis cannot be used: the store is away"]


def test_matchers_with_another_number_of_shards_are_not_heard_and_the_number_is_named() -> None:
    shelf = MemoryShelf()
    shelf.in_effect = 2
    watcher = Watcher("digest", shelf.owned_by("watcher"), Shard(0, 3), ManualClock())
    silence = watcher.listen().silence
    assert silence is not None
    assert "run with --shards 2, and this process with --shards 3" in silence
    shelf.in_effect = 3
    assert watcher.listen().silence == UNHEARD
