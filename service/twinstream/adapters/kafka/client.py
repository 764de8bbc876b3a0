"""What all parts of this adapter share: admin clients, how a topic is cleaned, and the words of an error."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

Properties = Mapping[str, str | int | bool]
"""Properties of librdkafka."""


def config_of(brokers: str, properties: Properties) -> dict[str, str | int | float | bool]:
    """The configuration of a client that prints nothing: its exceptions hold what matters."""
    return {"log_level": 0, **properties, "bootstrap.servers": brokers}


def admin_client(brokers: str, properties: Properties) -> AdminClient:
    """A client that connects with its first request. Raises KafkaException if a property is wrong."""
    return AdminClient(config_of(brokers, properties))


def cleanup_policy(client: AdminClient, topic: str, seconds: float) -> str:
    """How a topic is cleaned. Raises KafkaException, also where the permission to ask for it is missing."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (asked,) = client.describe_configs([resource], request_timeout=seconds).values()
    return str(asked.result()["cleanup.policy"].value)


def reason_of(error: KafkaException) -> str:
    """The words of librdkafka about an error."""
    return str(error.args[0].str())
