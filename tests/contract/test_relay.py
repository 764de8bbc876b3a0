"""The laws of a status relay: of the real one, also on the Redis of the simulation, and in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.contract.conftest import OpenShelf
from twinstream.adapters.redis import relay as redis_relay
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.core.arrivals.sharding import WHOLE, Shard
from twinstream.errors import StoreError
from twinstream.ports import Checkpoint, CheckpointStore, StatusRelay


class Party(NamedTuple):
    """A process: its store, and its relay."""

    store: CheckpointStore
    relay: StatusRelay


Join = Callable[[str], Party]
"""Lets a process with this token take part in one comparison."""


@pytest.fixture
def join(open_shelf: OpenShelf) -> Iterator[Join]:
    opened: list[Party] = []

    def joins(token: str) -> Party:
        shelf = open_shelf(token)
        opened.append(Party(shelf.store(WHOLE), shelf.relay(WHOLE)))
        return opened[-1]

    yield joins
    for store, relay in opened:
        store.close()
        relay.close()


@pytest.fixture
def owner(join: Join) -> Party:
    """The owner, whose token is `owner`."""
    owner = join("owner")
    assert owner.store.acquire()
    return owner


@pytest.fixture
def other(join: Join) -> Party:
    """Another process."""
    return join("other")


def bulletin(party: Party) -> bytes | None:
    heard = party.relay.heard()
    return None if heard is None else heard.bulletin


# -- the status --------------------------------------------------------------------------------------------


def test_an_owner_is_told_the_time_of_day(owner: Party) -> None:
    before, then = owner.relay.time(), owner.relay.time()
    assert before is not None
    assert then is not None
    assert abs(before - time.time()) < 60
    assert before <= then


def test_a_bulletin_is_read_with_the_time_and_the_token_of_its_owner(owner: Party, other: Party) -> None:
    assert other.relay.heard() is None
    stamp = owner.relay.time()
    owner.relay.tell(b'{"n": "\n\x00\xff"}')
    heard = other.relay.heard()
    assert heard is not None
    assert (heard.token, heard.bulletin) == ("owner", b'{"n": "\n\x00\xff"}')
    assert stamp is not None
    assert stamp <= heard.seconds <= stamp + 60
    owner.relay.tell(b"second")
    assert bulletin(other) == b"second"


def test_a_bulletin_counts_as_long_as_its_owner_holds_the_lease(owner: Party, other: Party) -> None:
    owner.relay.tell(b"before")
    other.relay.tell(b"of one that stands by")
    owner.store.release()
    for party in (owner, other):
        party.relay.tell(b"silent")
    assert bulletin(other) is None
    owner.store.renew(0)
    assert bulletin(other) == b"before"
    owner.relay.tell(b"again")
    assert bulletin(other) == b"again"


def test_a_bulletin_of_one_that_was_replaced_is_neither_taken_nor_handed_out(
    owner: Party, other: Party, join: Join
) -> None:
    second = join("second")
    owner.relay.tell(b"first")
    owner.store.release()
    second.store.acquire()
    assert bulletin(other) is None
    owner.relay.tell(b"late")
    assert bulletin(other) is None
    second.relay.tell(b"second")
    owner.relay.tell(b"later")
    assert bulletin(other) == b"second"


def test_what_is_told_leaves_what_was_saved_as_it_is(owner: Party, join: Join) -> None:
    owner.store.save(Checkpoint(1, None, b"head", b"body", {"d": b"{}"}))
    owner.relay.tell(b"bulletin")
    join("other").relay.heard()
    owner.store.save(Checkpoint(2, 1, b"then", b"more", {}))
    assert owner.store.load() == (2, b"then", (b"body", b"more"), {"d": b"{}"})


# -- resets ------------------------------------------------------------------------------------------------


def test_the_owner_takes_a_request_once_and_nobody_else_does(owner: Party, other: Party) -> None:
    assert owner.relay.take() is None
    asked = other.relay.ask(b"begin\nanew")
    assert asked.request == b"begin\nanew"
    assert other.relay.take() is None
    assert (owner.relay.take(), owner.relay.take()) == (asked, None)


def test_there_is_one_request_at_a_time_and_whoever_has_no_lease_takes_none(owner: Party) -> None:
    assert owner.relay.ask(b"one").request == b"one"
    assert owner.relay.ask(b"two").request == b"one"
    owner.store.release()
    assert owner.relay.take() is None


def test_it_tells_whether_another_process_has_read_bulletins(owner: Party, other: Party) -> None:
    owner.relay.tell(b"bulletin")
    assert not owner.relay.listened_to()
    other.relay.heard()
    assert owner.relay.listened_to()


def test_a_request_is_withdrawn_only_while_it_waits(owner: Party) -> None:
    one = owner.relay.ask(b"one").ticket
    assert not owner.relay.withdraw("another")
    assert owner.relay.withdraw(one)
    two = owner.relay.ask(b"two")
    assert not owner.relay.withdraw(one)
    assert owner.relay.take() == two
    assert not owner.relay.withdraw(two.ticket)


def test_a_request_lasts_for_as_long_as_its_outcome_is_looked_for(
    owner: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_relay, "REQUEST_MS", 1_000)
    asked = owner.relay.ask(b"one")
    for _ in range(3):
        time.sleep(0.4)
        assert owner.relay.answered("another") is None
        assert owner.relay.answered(asked.ticket) is None
    assert owner.relay.take() == asked


def test_an_outcome_is_found_by_its_ticket_and_is_not_that_of_the_same_request_made_again(
    owner: Party, other: Party
) -> None:
    first = other.relay.ask(b"one").ticket
    assert other.relay.answered(first) is None
    assert owner.relay.take() == (first, b"one")
    owner.relay.answer(first, b"done")
    again = other.relay.ask(b"one").ticket
    assert (other.relay.answered(first), other.relay.answered(again)) == (b"done", None)


def test_where_redis_is_away_others_are_told_and_the_owner_is_not_held_up() -> None:
    relay = RedisShelf("redis://:secret@127.0.0.1:1", "x", "token").relay(Shard())
    for call in (
        relay.heard,
        lambda: relay.ask(b"x"),
        lambda: relay.answered("x"),
        lambda: relay.withdraw("x"),
    ):
        with pytest.raises(StoreError, match=r"redis at 127\.0\.0\.1:1 cannot be used"):
            call()
    assert (relay.time(), relay.take()) == (None, None)
    relay.tell(b"x")
    relay.answer("x", b"done")
    relay.close()
