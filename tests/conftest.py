"""Makes the shared fixtures known to every test."""

from tests.support.stack import (
    kafka,
    own_kafka,
    own_redis,
    redis_cluster,
    redis_cluster_url,
    redis_server,
    redis_url,
    topic,
)

__all__ = [
    "kafka",
    "own_kafka",
    "own_redis",
    "redis_cluster",
    "redis_cluster_url",
    "redis_server",
    "redis_url",
    "topic",
]
