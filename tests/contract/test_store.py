"""The laws of a checkpoint store, for the real one and the shipped one in memory."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
import redis

from twinstream.adapters.memory import MemoryStorage, MemoryStore
from twinstream.adapters.redis import RedisStore
from twinstream.errors import Fenced, StoreError
from twinstream.ports import Store

Open = Callable[[str], Store]
"""Opens the store of one comparison for the owner with this token."""


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.requires_redis)])
def open_store(request: pytest.FixtureRequest) -> Iterator[Open]:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    storage = MemoryStorage()
    opened: list[Store] = []

    def from_memory(token: str) -> Store:
        return MemoryStore(storage, token)

    def from_redis(token: str) -> Store:
        opened.append(RedisStore(request.getfixturevalue("redis_url"), name, token))
        return opened[-1]

    yield from_memory if request.param == "memory" else from_redis
    for store in opened:
        store.close()


def test_a_new_store_holds_nothing(open_store: Open) -> None:
    store = open_store("a")
    assert store.acquire()
    assert store.load().checkpoint is None
    assert store.load().divergences == {}


def test_what_was_saved_is_loaded_by_the_next_owner(open_store: Open) -> None:
    first = open_store("a")
    first.acquire()
    first.save(1, b"one\x00\xff", {"d1": b"{}"})
    first.save(2, b"two", {"d2": b"[]"})
    first.release()
    second = open_store("b")
    assert second.acquire()
    assert second.load() == (b"two", {"d1": b"{}", "d2": b"[]"})


def test_only_one_owner_at_a_time_has_the_lease(open_store: Open) -> None:
    first, second = open_store("a"), open_store("b")
    assert first.acquire()
    assert not second.acquire()
    assert first.acquire(), "the owner may ask again"
    first.release()
    assert second.acquire()
    assert not first.acquire()


def test_releasing_what_another_owns_changes_nothing(open_store: Open) -> None:
    first, second = open_store("a"), open_store("b")
    first.acquire()
    second.release()
    assert not second.acquire()


def test_an_owner_that_was_replaced_cannot_write_any_more(open_store: Open) -> None:
    first, second = open_store("a"), open_store("b")
    first.acquire()
    first.save(1, b"first", {})
    first.release()
    second.acquire()
    with pytest.raises(Fenced, match="another process has taken this comparison over"):
        first.save(2, b"late", {"d": b"late"})
    assert second.load() == (b"first", {})


def test_saving_a_sequence_again_changes_nothing(open_store: Open) -> None:
    store = open_store("a")
    store.acquire()
    store.save(7, b"once", {})
    store.save(7, b"twice", {"d": b"twice"})
    assert store.load() == (b"once", {})


def test_an_owner_may_go_on_when_nobody_took_over_though_its_lease_ended(open_store: Open) -> None:
    store = open_store("a")
    store.acquire()
    store.release()
    store.save(1, b"still mine", {})
    assert store.load().checkpoint == b"still mine"


def test_renewing_keeps_the_lease_and_tells_whether_the_checkpoint_is_there(open_store: Open) -> None:
    first, second = open_store("a"), open_store("b")
    first.acquire()
    assert not first.renew(1), "nothing was saved yet"
    first.save(1, b"one", {})
    assert first.renew(1)
    assert not second.acquire()
    first.release()
    second.acquire()
    with pytest.raises(Fenced):
        first.renew(1)


def test_clearing_forgets_what_was_saved_and_keeps_the_lease(open_store: Open) -> None:
    first, second = open_store("a"), open_store("b")
    first.acquire()
    first.save(1, b"one", {"d": b"{}"})
    first.clear()
    assert first.load() == (None, {})
    assert not second.acquire()
    first.release()
    second.acquire()
    with pytest.raises(Fenced):
        first.clear()


@pytest.mark.requires_redis
def test_a_lost_store_is_written_anew_by_its_living_owner(redis_url: str) -> None:
    store = RedisStore(redis_url, "emptied", "a")
    store.acquire()
    store.save(5, b"before", {})
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    store.save(6, b"after", {})
    assert store.load().checkpoint == b"after"
    store.close()


@pytest.mark.requires_redis
def test_a_store_that_may_drop_checkpoints_is_refused(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            with pytest.raises(StoreError, match=r"maxmemory-policy allkeys-lru.*set it to noeviction"):
                RedisStore(redis_url, "policy").acquire()
        finally:
            client.config_set("maxmemory-policy", "noeviction")


def test_a_store_that_cannot_be_reached_says_where() -> None:
    store = RedisStore("redis://:secret@127.0.0.1:1/0", "away")
    with pytest.raises(StoreError, match=r"redis at 127\.0\.0\.1:1 cannot be used") as raised:
        store.acquire()
    assert "secret" not in str(raised.value)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(StoreError, match="redis address 'nonsense'"):
        RedisStore("nonsense", "x")
