"""The laws of a checkpoint store: of the real one, also on the Redis of the simulation, and in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.contract.conftest import OpenShelf
from twinstream.adapters.redis.store import RedisStore
from twinstream.core.arrivals.sharding import WHOLE
from twinstream.errors import Fenced, Outdated, StoreError
from twinstream.ports import Checkpoint, Stored
from twinstream.ports import CheckpointStore as Store

Open = Callable[[str], Store]
"""Opens the store of one comparison for the owner with this token."""

NOTHING = Stored(None, b"", (), {})


def base(sequence: int, body: bytes = b"base", **divergences: bytes) -> Checkpoint:
    return Checkpoint(sequence, None, b"head %d" % sequence, body, divergences)


def delta(sequence: int, after: int, body: bytes = b"delta", **divergences: bytes) -> Checkpoint:
    return Checkpoint(sequence, after, b"head %d" % sequence, body, divergences)


@pytest.fixture
def open_store(open_shelf: OpenShelf) -> Iterator[Open]:
    opened: list[Store] = []

    def opens(token: str) -> Store:
        opened.append(open_shelf(token).store(WHOLE))
        return opened[-1]

    yield opens
    for store in opened:
        store.close()


@pytest.fixture
def owner(open_store: Open) -> Store:
    """The store of an owner."""
    owner = open_store("a")
    assert owner.acquire()
    return owner


@pytest.fixture
def second(open_store: Open) -> Store:
    """The store of one that stands by."""
    return open_store("b")


def test_what_was_saved_is_loaded_by_the_next_owner(owner: Store, second: Store) -> None:
    assert owner.load() == NOTHING
    owner.save(base(1, b"one\x00\xff", d1=b"{}"))
    owner.save(base(2, b"two", d2=b"[]"))
    owner.release()
    assert second.acquire()
    assert second.load() == (2, b"head 2", (b"two",), {"d1": b"{}", "d2": b"[]"})


def test_deltas_stand_behind_their_base_in_order_and_the_newest_head_counts(owner: Store) -> None:
    owner.save(base(1, b"base", d1=b"old", d2=b"{}"))
    owner.save(delta(2, 1, b"", d1=b"new"))
    owner.save(delta(4, 2, b"second", d3=b"3"))
    assert owner.load() == (
        4, b"head 4", (b"base", b"", b"second"), {"d1": b"new", "d2": b"{}", "d3": b"3"},
    )  # fmt: skip


def test_a_new_base_replaces_base_and_deltas_and_keeps_the_divergences(owner: Store) -> None:
    owner.save(base(1, d1=b"1"))
    owner.save(delta(2, 1, d2=b"2"))
    owner.save(base(3, b"anew", d3=b"3"))
    assert owner.load() == (3, b"head 3", (b"anew",), {"d1": b"1", "d2": b"2", "d3": b"3"})


def test_a_base_that_begins_anew_leaves_nothing_of_what_was_before(owner: Store) -> None:
    owner.save(base(1, d1=b"1"))
    owner.save(delta(2, 1, d2=b"2"))
    owner.save(base(3, b"anew")._replace(anew=True))
    assert owner.load() == (3, b"head 3", (b"anew",), {})
    owner.save(base(4, b"then", d3=b"3"))
    assert owner.load() == (4, b"head 4", (b"then",), {"d3": b"3"})


@pytest.mark.parametrize("after", [1, 3])
def test_a_delta_on_what_the_store_does_not_hold_is_refused_and_changes_nothing(
    owner: Store, after: int
) -> None:
    owner.save(base(1))
    owner.save(delta(2, 1))
    before = owner.load()
    with pytest.raises(Outdated):
        owner.save(delta(4, after, d=b"lost"))
    assert owner.load() == before
    owner.save(base(5, b"whole"))
    assert owner.load() == (5, b"head 5", (b"whole",), {})


def test_a_delta_on_an_empty_store_is_refused(owner: Store) -> None:
    with pytest.raises(Outdated):
        owner.save(delta(2, 1))
    assert owner.load() == NOTHING


def test_only_one_owner_at_a_time_has_the_lease_and_gives_it_back(owner: Store, second: Store) -> None:
    assert not second.acquire()
    second.release()
    assert not second.acquire()
    assert owner.acquire(), "the owner may ask again"
    owner.release()
    assert second.acquire()
    assert not owner.acquire()


@pytest.mark.parametrize("late", [base(2, d=b"late"), delta(2, 1, d=b"late")], ids=["base", "delta"])
def test_an_owner_that_was_replaced_cannot_write_any_more(
    owner: Store, second: Store, late: Checkpoint
) -> None:
    owner.save(base(1))
    owner.release()
    second.acquire()
    with pytest.raises(Fenced, match="another process has taken this comparison over"):
        owner.save(late)
    assert second.load() == (1, b"head 1", (b"base",), {})


def test_saving_a_sequence_again_changes_nothing(owner: Store) -> None:
    owner.save(base(7, b"once"))
    owner.save(base(7, b"twice", d=b"twice"))
    owner.save(delta(8, 7))
    owner.save(delta(8, 7, b"twice", d=b"twice"))
    assert owner.load() == (8, b"head 8", (b"once", b"delta"), {})


def test_a_save_that_arrives_late_does_not_take_effect_over_a_newer_one(owner: Store) -> None:
    owner.save(base(1))
    owner.save(delta(2, 1, d=b"{}"))
    with pytest.raises(Outdated):
        owner.save(base(1))
    assert owner.load() == (2, b"head 2", (b"base", b"delta"), {"d": b"{}"})


def test_a_new_owner_may_replace_what_another_saved_under_a_higher_number(
    owner: Store, second: Store
) -> None:
    owner.save(base(9))
    owner.release()
    second.acquire()
    second.save(base(3, b"anew"))
    assert second.load().bodies == (b"anew",)


def test_an_owner_may_go_on_when_nobody_took_over_though_its_lease_ended(owner: Store) -> None:
    owner.release()
    owner.save(base(1, b"still mine"))
    assert owner.load().bodies == (b"still mine",)


def test_renewing_keeps_the_lease_and_tells_whether_the_checkpoint_is_there(
    owner: Store, second: Store
) -> None:
    assert not owner.renew(1), "nothing was saved yet"
    owner.save(base(1))
    assert owner.renew(1)
    assert not second.acquire()
    owner.release()
    second.acquire()
    with pytest.raises(Fenced):
        owner.renew(1)


def test_clearing_forgets_what_was_saved_and_keeps_the_lease(owner: Store, second: Store) -> None:
    owner.save(base(1, d=b"{}"))
    owner.clear()
    assert owner.load() == NOTHING
    assert not second.acquire()
    owner.release()
    second.acquire()
    with pytest.raises(Fenced):
        owner.clear()


def test_memory_grows_with_what_is_held(owner: Store, open_store: Open) -> None:
    empty = owner.memory_bytes()
    owner.save(base(1, bytes(100_000)))
    assert 100_000 <= open_store("a").memory_bytes() - empty < 300_000


def test_a_store_that_cannot_be_reached_says_where() -> None:
    store = RedisStore("redis://:secret@127.0.0.1:1/0", "away")
    with pytest.raises(StoreError, match=r"redis at 127\.0\.0\.1:1 cannot be used") as raised:
        store.acquire()
    assert "secret" not in str(raised.value)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(StoreError, match="redis address 'nonsense'"):
        RedisStore("nonsense", "x")


def test_a_glance_tells_what_is_new_of_what_was_saved(owner: Store, second: Store) -> None:
    assert second.glance() == NOTHING
    owner.save(base(1, d1=b"1", d2=b"2"))
    assert second.glance() == (1, b"head 1", (), {"d1": b"1", "d2": b"2"})
    owner.save(delta(2, 1, d2=b"two", d3=b"3"))
    assert second.glance() == (2, b"head 2", (), {"d2": b"two", "d3": b"3"})
    assert second.glance() == (2, b"head 2", (), {})
