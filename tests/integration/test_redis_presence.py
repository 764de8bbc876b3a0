"""An owner that was killed is replaced before its lease ends, and no living one is."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
import redis

from deploy.embedded.redis_server import RedisServer
from tests.support.stack import Closing
from tests.support.waiting import eventually
from twinstream.adapters.redis.presence import GONE_SECONDS, Presence, Vigil
from twinstream.adapters.redis.store import RedisStore
from twinstream.ports import Checkpoint

pytestmark = pytest.mark.requires_redis

PREFIX = "twinstream:{presence}"


@pytest.fixture
def client(own_redis: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(own_redis.url) as connection:
        yield connection


@pytest.fixture
def owner(own_redis: RedisServer) -> Iterator[Presence]:
    """An owner that listens."""
    with redis.Redis.from_url(own_redis.url) as connection:
        presence = Presence(connection, PREFIX, "owner")
        presence.keep()
        yield presence
        presence.end()


def listens(client: redis.Redis, token: str = "owner") -> bool:
    [(_, listeners)] = client.pubsub_numsub(f"{PREFIX}:alive:{token}")
    return bool(listeners)


def test_an_owner_that_could_not_listen_at_first_listens_with_a_later_beat(
    own_redis: RedisServer, client: redis.Redis
) -> None:
    client.ping()
    with redis.Redis.from_url(own_redis.url) as connection:
        presence = Presence(connection, PREFIX, "owner")
        client.config_set("maxclients", 1)
        presence.keep()
        client.config_set("maxclients", 10_000)
        presence.keep()
        eventually(lambda: listens(client), what="it listens")
        presence.end()


Stores = Callable[[str], tuple[RedisStore, RedisStore, str]]


@pytest.fixture
def stores(closing: Closing) -> Stores:
    """An owner whose lease runs for an hour, one that stands by, and the name of their lease."""

    def make(url: str) -> tuple[RedisStore, RedisStore, str]:
        name = f"presence-{uuid.uuid4().hex[:8]}"
        first, second = (closing(RedisStore(url, name, token)) for token in ("first", "second"))
        assert first.acquire()
        lease = f"twinstream:{{{name}}}:lease"
        with redis.Redis.from_url(url) as connection:
            connection.pexpire(lease, 3_600_000)
        assert not second.acquire()
        return first, second, lease

    return make


def test_an_owner_that_goes_on_is_not_replaced(
    client: redis.Redis, own_redis: RedisServer, stores: Stores
) -> None:
    first, second, lease = stores(own_redis.url)
    vigil = Vigil(client, lease.removesuffix(":lease"))
    for seconds in range(5):
        assert first.renew(1) is False, "nothing was saved"
        assert not vigil.gone("first", seconds * GONE_SECONDS)
    assert not second.acquire()


def test_gone_is_who_listened_and_does_not_any_more_for_a_while_and_nobody_who_was_never_seen(
    client: redis.Redis, owner: Presence
) -> None:
    vigil = Vigil(client, PREFIX)
    assert not any(vigil.gone("stranger", -100.0 + seconds) for seconds in range(100))
    assert not vigil.gone("owner", 0.0)
    owner.end()
    eventually(lambda: not listens(client), what="Redis has seen the end of the connection")
    assert not vigil.gone("owner", 10.0)
    assert not vigil.gone("owner", 10.0 + 0.9 * GONE_SECONDS)
    assert vigil.gone("owner", 10.0 + GONE_SECONDS)
    assert not any(vigil.gone("another", 100.0 + seconds) for seconds in range(100))


def test_an_owner_whose_line_was_cut_listens_again_with_its_next_beat(
    client: redis.Redis, owner: Presence
) -> None:
    vigil = Vigil(client, PREFIX)
    assert not vigil.gone("owner", 0.0)
    client.client_kill_filter(_type="pubsub")
    eventually(lambda: not listens(client), what="it is cut")
    assert not vigil.gone("owner", 1.0)
    eventually(lambda: owner.keep() or listens(client), what="it listens again")
    assert not vigil.gone("owner", 100.0), "it is there again"


@pytest.mark.usefixtures("owner")
def test_a_redis_that_was_away_has_cut_off_the_living_too(own_redis: RedisServer) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        vigil = Vigil(client, PREFIX)
        assert not vigil.gone("owner", 0.0)
        with redis.Redis.from_url(own_redis.url) as operator:
            operator.client_kill_filter(_type="normal", skipme=True)
            operator.client_kill_filter(_type="pubsub")
            eventually(lambda: not listens(operator), what="the owner is cut off")
        assert not any(vigil.gone("owner", seconds) for seconds in range(1, 100))


def test_a_user_who_may_not_listen_owns_until_its_lease_ends(
    client: redis.Redis, own_redis: RedisServer, stores: Stores
) -> None:
    user = ("on", ">pw", "~*", "resetchannels", "+@all", "-pubsub", "-client|id")
    client.execute_command("ACL", "SETUSER", "bound", *user)
    first, second, lease = stores(own_redis.url.replace("//", "//bound:pw@"))
    first.save(Checkpoint(1, None, b"", b"", {}))
    assert first.renew(1)
    first.close()
    assert not second.acquire()
    client.delete(lease)
    assert second.acquire()
