"""The embedded Kafka is a real broker, and strict about topics.

That it keeps its address and its data when it is killed, and hangs when it is paused, is proven by the tests
of the service that do this to it (`e2e/test_service.py`).
"""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from deploy.embedded.errors import EmbeddedError
from deploy.embedded.kafka import Kafka
from tests.support.stack import MakeTopic

pytestmark = pytest.mark.requires_kafka


def test_a_topic_that_exists_is_refused_by_name(kafka: Kafka, topic: MakeTopic) -> None:
    name = topic()
    with pytest.raises(EmbeddedError, match=f"topic '{name}' cannot be created: .*already exists"):
        kafka.create_topic(name)


def test_a_topic_is_not_created_by_asking_for_it(kafka: Kafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.brokers})
    assert admin.list_topics("nobody-made-this", timeout=10).topics["nobody-made-this"].error is not None
    assert "nobody-made-this" not in admin.list_topics(timeout=10).topics
