"""Makes the shared fixtures known to every test, and how long Hypothesis looks."""

from hypothesis import settings

from tests.support.searching import PROFILE
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

settings.load_profile(PROFILE)
