"""The running service with its state in a Redis cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from deploy.embedded.kafka import Kafka
from tests.support.cases import serving
from tests.support.marks import whole_product
from tests.support.redis_cluster import RedisCluster
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually

pytestmark = whole_product()


@pytest.mark.nightly
def test_a_service_keeps_its_state_in_a_cluster_also_when_its_keys_move_and_a_matcher_is_killed(
    kafka: Kafka, topic: MakeTopic, tmp_path: Path
) -> None:
    topics = topic(partitions=3), topic(partitions=3)
    tag = f"on-{topics[0]}"
    with RedisCluster(tmp_path / "cluster") as cluster:
        holder = cluster.holder(tag)
        asked = cluster.nodes[(holder + 1) % 3]
        with serving(tmp_path, kafka.brokers, asked.url, topics) as case:
            case.passes(range(1000))
            cluster.hand_over(tag, (holder + 2) % 3)
            case.passes(range(1000, 2000))
            case.write.reference(3, -1)
            case.write.both(range(2000, 3000))
            service = case.service
            service.answers("fail")
            before = service.divergences()
            (matcher,) = service.matchers()
            os.kill(matcher, signal.SIGKILL)
            eventually(lambda: matcher not in service.matchers(), what="it is gone")
            service.answers("fail")
            assert service.divergences() == before
