"""Describes topics: how many partitions they have, and how they are cleaned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from twinstream.errors import SourceError
from twinstream.spec.lint.topics import Topic

TIMEOUT_SECONDS = 5.0
_CLEANUP = "cleanup.policy"


def describe(
    brokers: str, names: Iterable[str], properties: Mapping[str, str | int | bool]
) -> dict[str, Topic | None]:
    """The topics with some names, None for one that is missing. `properties` are librdkafka's.

    Raises SourceError if Kafka does not answer in `TIMEOUT_SECONDS`, or refuses.
    """
    try:
        # The client writes to standard error by itself; the exceptions hold what matters.
        client = AdminClient({"log_level": 0, **properties, "bootstrap.servers": brokers})
        found = client.list_topics(timeout=TIMEOUT_SECONDS).topics
        return {name: _described(client, name, len(found[name].partitions)) if name in found else None
                for name in names}  # fmt: skip
    except KafkaException as error:
        raise SourceError(f"kafka at {brokers} does not answer: {error.args[0].str()}") from None


def _described(client: AdminClient, name: str, partitions: int) -> Topic:
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    (future,) = client.describe_configs([resource], request_timeout=TIMEOUT_SECONDS).values()
    return Topic(partitions, future.result()[_CLEANUP].value)
