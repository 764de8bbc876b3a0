"""A store and a shelf in a Redis cluster, whose keys are where their hash tags say, and move."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from tests.support.redis_cluster import RedisCluster
from tests.support.stack import Closing
from tests.support.waiting import eventually
from twinstream.adapters.redis.presence import GONE_SECONDS
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.adapters.redis.store import RedisStore
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import Fenced, StoreError
from twinstream.ports import Checkpoint

pytestmark = pytest.mark.requires_redis

NOBODY_SERVES = "no node serves the keys of this comparison now"
SAVED = Checkpoint(1, None, b"head", b"body" * 2_000_000, {"d": b"report"})


def name_on(cluster: RedisCluster, node: int, *, shards: int = 0) -> str:
    """The name of a comparison whose keys a node holds; with shards, each of them on another one."""
    while True:
        name = f"cluster-{uuid.uuid4().hex[:8]}"
        tags = {cluster.holder(f"{name}.of-{shards}.{shard}") for shard in range(shards)}
        if cluster.holder(name) == node and len(tags) == shards:
            return name


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[RedisCluster]:
    with RedisCluster(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.mark.parametrize("node", range(3))
def test_whichever_node_holds_the_keys_the_address_of_any_will_do(
    redis_cluster: RedisCluster, closing: Closing, node: int
) -> None:
    name = name_on(redis_cluster, node)
    for asked in redis_cluster.nodes:
        store = closing(RedisStore(asked.url, name, "a"))
        assert store.acquire()
        store.save(SAVED)
        assert store.load().bodies == (SAVED.body,)
        assert store.renew(1)
        assert store.memory_bytes() > len(SAVED.body)
        assert store.answers()


def test_shards_whose_keys_are_on_different_nodes_are_one_shelf(
    redis_cluster: RedisCluster, closing: Closing
) -> None:
    name = name_on(redis_cluster, 2, shards=3)
    shelf = closing(RedisShelf(redis_cluster.nodes[0].url, name, "a"))
    assert shelf.begin(3) == 3
    stores = [closing(shelf.store(Shard(number, 3))) for number in range(3)]
    for number, store in enumerate(stores):
        assert store.acquire()
        store.save(SAVED._replace(head=b"%d" % number))
    assert [store.load().head for store in stores] == [b"0", b"1", b"2"]


def owner_and_standby(cluster: RedisCluster, closing: Closing) -> tuple[str, RedisStore, RedisStore]:
    """The name of a comparison on node 1, its owner, which has saved, and one that stands by."""
    name, url = name_on(cluster, 1), cluster.nodes[0].url
    first, second = (closing(RedisStore(url, name, token)) for token in ("first", "second"))
    assert first.acquire()
    first.save(SAVED)
    assert not second.acquire()
    return name, first, second


def refused(asked: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as caught:
        asked()
    return str(caught.value)


def test_keys_that_move_to_another_node_are_followed_and_the_fence_goes_with_them(
    own_cluster: RedisCluster, closing: Closing
) -> None:
    name, first, second = owner_and_standby(own_cluster, closing)
    own_cluster.hand_over(name, 2)
    first.save(Checkpoint(2, 1, b"head 2", b"delta", {}))
    assert second.load().bodies == first.load().bodies == (SAVED.body, b"delta")
    first.release()
    assert second.acquire()
    with pytest.raises(Fenced):
        first.save(Checkpoint(3, 2, b"head 3", b"delta", {}))


def test_an_owner_whose_keys_have_moved_is_not_taken_for_gone_and_one_that_was_killed_is(
    own_cluster: RedisCluster, closing: Closing
) -> None:
    name, first, second = owner_and_standby(own_cluster, closing)
    own_cluster.hand_over(name, 2)
    until = time.monotonic() + 2 * GONE_SECONDS
    while time.monotonic() < until:
        assert first.renew(1)
        assert not second.acquire()
    lease = f"twinstream:{{{name}}}:lease"
    with redis.Redis.from_url(own_cluster.nodes[2].url) as client:
        client.pexpire(lease, 3_600_000)
    first.close()  # All that Redis sees of a process that was killed.
    eventually(second.acquire, what="the second takes over")


def test_a_shelf_that_was_never_sent_to_another_node_asks_one_when_its_own_is_away(
    own_cluster: RedisCluster, closing: Closing
) -> None:
    shelf = closing(RedisShelf(own_cluster.nodes[0].url, name_on(own_cluster, 0), "a"))
    assert shelf.shards() is None
    own_cluster.nodes[0].kill()
    assert f":{own_cluster.nodes[0].port} " in refused(shelf.shards)
    eventually(lambda: NOBODY_SERVES in refused(shelf.shards), what="others are asked")


def test_a_node_that_is_away_is_named_and_used_again_when_it_is_back(
    own_cluster: RedisCluster, closing: Closing
) -> None:
    store = closing(RedisStore(own_cluster.nodes[0].url, name_on(own_cluster, 1), "a"))
    assert store.acquire()
    store.save(SAVED)
    own_cluster.nodes[1].kill()
    assert f":{own_cluster.nodes[1].port} " in refused(lambda: store.renew(1))
    eventually(lambda: NOBODY_SERVES in refused(lambda: store.renew(1)), what="the cluster is down")
    own_cluster.nodes[1].start()

    def works() -> bool:
        try:
            return store.answers() and store.renew(1)
        except StoreError:
            return False

    eventually(works, what="the store is back")
    store.save(Checkpoint(2, 1, b"head 2", b"delta", {}))
