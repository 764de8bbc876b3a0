"""The embedded Redis is a real server with the durability that the service demands."""

from __future__ import annotations

from pathlib import Path

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


def test_settings_can_be_given(tmp_path: Path) -> None:
    with (
        RedisServer(tmp_path, config={"maxmemory-policy": "allkeys-lru"}) as server,
        client(server) as connection,
    ):
        assert connection.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}


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


def test_a_paused_server_answers_nothing_until_it_is_resumed(own_redis: RedisServer) -> None:
    own_redis.pause()
    with client(own_redis) as connection, pytest.raises(redis.TimeoutError):
        connection.ping()
    own_redis.resume()
    with client(own_redis) as connection:
        assert connection.ping()
