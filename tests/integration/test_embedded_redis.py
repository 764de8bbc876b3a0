"""The embedded Redis is a real server with the durability that the service demands."""

from __future__ import annotations

import pytest
import redis

from deploy.embedded.redis_server import RedisServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.requires_redis


def client(server: RedisServer) -> redis.Redis:
    return redis.Redis.from_url(server.url, socket_timeout=2)


def test_it_never_evicts_and_writes_an_append_only_file(redis_server: RedisServer) -> None:
    with client(redis_server) as connection:
        settings = connection.config_get("maxmemory-policy", "appendonly", "appendfsync")
    assert settings == {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec"}


def test_a_server_killed_and_restarted_keeps_its_data_and_its_address(own_redis: RedisServer) -> None:
    url = own_redis.url
    with client(own_redis) as connection:
        connection.set("kept", "yes")
        eventually(
            lambda: connection.info("persistence")["aof_pending_bio_fsync"] == 0, what="written to disk"
        )
    own_redis.kill()
    own_redis.restart()
    assert own_redis.url == url
    with client(own_redis) as connection:
        assert connection.get("kept") == b"yes"
