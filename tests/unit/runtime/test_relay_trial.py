"""What rules on trial find is shown also by those who hear the owner of the comparison alone."""

from __future__ import annotations

import pytest

from tests.support.hosts import Host, Hosts
from tests.support.statuses import NAME, divergence, status
from tests.support.workers import SPEC
from twinstream.adapters.memory import ManualClock, MemoryPublisher, MemoryStorage, MemoryStore
from twinstream.core.events import Side
from twinstream.runtime import relay
from twinstream.runtime.relay import TRIAL_TOLD, Relay
from twinstream.status import DivergenceReport, OnTrial, ResetRequest, Resumed, ShardStatus, Withdrawn
from twinstream.trials import TrialStatus

STRICTER = SPEC.replace("{per_key: [k]}", "total")


def found(host: Host) -> dict[str, bool]:
    """The divergences of the trial that it shows: whether each is provisional."""
    items = host.board.trial_divergences("test").page(1000).items
    return {item.id: item.provisional for item in items}


@pytest.fixture
def hosts() -> tuple[Hosts, Host, Host]:
    """One that owns the comparison and has a trial that finds two keys swapped, and one that stands by."""
    hosts = Hosts()
    owner, standby = hosts.add(trial=STRICTER), hosts.add(trial=STRICTER)
    hosts.turns(owner)
    hosts.write(Side.LEFT, 1)
    hosts.write(Side.LEFT, 2)
    hosts.write(Side.RIGHT, 2)
    hosts.write(Side.RIGHT, 1)
    hosts.turns(owner, standby, seconds=4)
    return hosts, owner, standby


def test_a_standby_shows_what_the_trial_of_the_owner_finds(hosts: tuple[Hosts, Host, Host]) -> None:
    more, owner, standby = hosts
    assert found(standby) == found(owner)
    assert list(found(standby).values()) == [True], "its scope is open"
    more.write_both(60)
    more.turns(owner, standby, seconds=4)
    assert found(standby) == found(owner)
    assert list(found(standby).values()) == [False]
    assert standby.view().status.divergences.total == 0, "the comparison has none"


def test_what_may_change_is_taken_back_with_the_owner(hosts: tuple[Hosts, Host, Host]) -> None:
    more, owner, standby = hosts
    assert found(standby)
    owner.store.release()
    more.storage.lease = "a third one"
    standby.turn()
    assert found(standby) == {}


def test_it_goes_when_the_comparison_begins_anew(hosts: tuple[Hosts, Host, Host]) -> None:
    more, owner, standby = hosts
    more.write_both(60)
    more.turns(owner, standby, seconds=4)
    assert found(standby)
    assert owner.worker.begin_anew(ResetRequest(id="1", by="me", reason="a test", address="", start="now"))
    owner.renew(more)
    more.turns(owner, standby, seconds=4)
    assert (found(owner), found(standby)) == ({}, {})


class Line:
    """An owner and one who stands by, with a bulletin between them that the test writes."""

    def __init__(self) -> None:
        storage, clock = MemoryStorage(), ManualClock()
        owner, other = MemoryStore(storage, "owner"), MemoryStore(storage, "other")
        assert owner.acquire()
        self.heard = MemoryPublisher()
        self.owner = Relay("5f0c9a", owner, MemoryPublisher(), clock)
        self.other, self.clock = Relay("5f0c9a", other, self.heard, clock), clock

    def tell(self, *reports: DivergenceReport) -> list[DivergenceReport | Withdrawn | Resumed]:
        """What the other one says of the trial when the owner tells these."""
        self.other.pass_on()
        self.clock.advance(1.0)
        trial = TrialStatus(
            state="running", reason="Fine.", spec_digest="7a", order="total", changes=["order"]
        )
        said = ShardStatus(status=status(trial=trial))
        self.owner.tell(self.owner.asked(), said.status, {}, (), reports)
        self.heard.published.clear()
        self.other.pass_on()
        return [one.said for one in self.heard.published if isinstance(one, OnTrial)]


def test_only_what_is_new_is_told_and_what_is_final_stays() -> None:
    line, first, later = Line(), divergence("a"), divergence("b")
    assert line.tell(first) == [Resumed(comparison=NAME, divergences=()), first]
    assert line.tell(first, later) == [later]
    assert line.tell(later) == []


def test_what_is_provisional_goes_with_the_word_of_the_owner() -> None:
    line, open_one = Line(), divergence("a", provisional=True)
    line.tell(open_one)
    assert line.tell() == [Withdrawn(id="a", comparison=NAME)]


def test_the_newest_of_many_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [divergence(f"d-{number}") for number in range(TRIAL_TOLD + 5)]
    assert Line().tell(*many)[1:] == many[5:]
    monkeypatch.setattr(relay, "REPORTS_BYTES", 3 * len(many[0].model_dump_json()))
    assert len(Line().tell(*many)[1:]) < 5
    assert Line().tell(*many)[-1] == many[-1]
