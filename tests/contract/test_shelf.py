"""The laws of the stores of several matchers: the real ones, also on the Redis of the
simulation, and the ones in memory.
"""

from __future__ import annotations

import pytest

from tests.contract.conftest import OpenShelf
from twinstream.core.arrivals.sharding import WHOLE, Shard
from twinstream.errors import Fenced
from twinstream.ports import Checkpoint


def test_the_number_of_shards_is_that_of_the_first_who_begins(open_shelf: OpenShelf) -> None:
    one, other = open_shelf("a"), open_shelf("b")
    assert one.shards() is None
    assert [one.begin(2), other.begin(3)] == [2, 2]
    assert other.shards() == 2


def test_a_number_takes_the_place_of_the_one_in_effect_only(open_shelf: OpenShelf) -> None:
    one, other = open_shelf("a"), open_shelf("b")
    one.begin(1)
    for _ in range(2):
        one.replace(1, 2)
    assert other.shards() == 2
    with pytest.raises(Fenced, match="another process has begun this comparison anew"):
        other.replace(1, 3)
    other.replace(2, 3)
    assert one.shards() == 3


def test_a_store_that_is_seized_is_lost_to_whoever_had_it(open_shelf: OpenShelf) -> None:
    one, other = (open_shelf(token).store(Shard(1, 2)) for token in "ab")
    assert one.acquire()
    assert not other.acquire()
    one.save(Checkpoint(1, None, b"head", b"body", {}))
    other.seize()
    with pytest.raises(Fenced):
        one.renew(1)
    assert not one.acquire()
    other.save(Checkpoint(2, None, b"another", b"body", {}, anew=True))
    assert one.load().head == b"another"
    other.release()
    assert one.acquire()
    for store in (one, other):
        store.close()


def test_each_shard_of_each_number_has_a_store_of_its_own(open_shelf: OpenShelf) -> None:
    shelf = open_shelf("a")
    places = [WHOLE, Shard(0, 2), Shard(1, 2), Shard(0, 3)]
    for sequence, place in enumerate(places, 1):
        store = shelf.store(place)
        assert store.acquire()
        store.save(Checkpoint(sequence, None, b"head", b"body", {}))
        store.close()
    found = [shelf.store(place) for place in places]
    assert [store.load().sequence for store in found] == [1, 2, 3, 4]
    for store in found:
        store.close()


def test_the_secret_of_a_comparison_is_the_first_one_that_was_given(open_shelf: OpenShelf) -> None:
    one, other = open_shelf("a"), open_shelf("b")
    assert one.mask_secret(b"first") == b"first"
    assert other.mask_secret(b"second") == b"first"
    one.begin(1)
    one.replace(1, 2)
    assert open_shelf("c").mask_secret(b"third") == b"first"


def test_a_secret_that_is_set_takes_the_place_of_the_first_one(open_shelf: OpenShelf) -> None:
    one, other = open_shelf("a"), open_shelf("b")
    one.mask_secret(b"first")
    other.set_mask_secret(b"moved")
    assert one.mask_secret(b"third") == b"moved"


def test_whoever_asks_is_told_the_head_of_what_a_store_has_in_effect(open_shelf: OpenShelf) -> None:
    owner, other = (open_shelf(token).store(Shard(0, 2)) for token in "ab")
    assert other.head() == b""
    assert owner.acquire()
    owner.save(Checkpoint(1, None, b"one", b"", {}))
    assert other.head() == b"one"
    owner.save(Checkpoint(2, 1, b"two", b"", {}))
    assert other.head() == b"two"
