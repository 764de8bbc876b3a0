"""What all parts of this adapter share: admin clients, how a topic is cleaned, and the words of an error."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from twinstream.errors import SettingsError

_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location")
"""Of a file that is missing, librdkafka says what OpenSSL does, without its name."""
_MECHANISMS = "set it to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"

REMEMBERED_SECONDS = 20.0
"""librdkafka tries again within 15 s, and does not say each time why it failed."""

T = TypeVar("T")
Properties = Mapping[str, str | int | bool]
"""Properties of librdkafka."""


def config_of(brokers: str, properties: Properties) -> dict[str, str | int | float | bool]:
    """The configuration of a client that prints nothing: its exceptions hold what matters."""
    return {"log_level": 0, **properties, "bootstrap.servers": brokers}


def opened(make: Callable[[dict[str, Any]], T], config: Mapping[str, Any]) -> T:
    """A client, which connects with its first request. Raises SettingsError if a property is wrong."""
    try:
        return make({**config})
    except KafkaException as error:
        reason = reason_of(error)
        for name in _FILES:
            if name in config and name in reason and not Path(str(config[name])).exists():
                reason = f"{name}: there is no file {config[name]}"
        if "SASL mechanism GSSAPI" in reason:
            reason = f"sasl.mechanism is GSSAPI, the default, of which this client has none: {_MECHANISMS}"
        raise SettingsError(f"kafka settings: {reason}") from None


def admin_client(brokers: str, properties: Properties, link: LinkFaults) -> AdminClient:
    """A client that connects with its first request. Raises SettingsError if a property is wrong."""
    return opened(AdminClient, {**config_of(brokers, properties), "error_cb": link.heard})


def cleanup_policy(client: AdminClient, topic: str, seconds: float) -> str:
    """How a topic is cleaned. Raises KafkaException, also where the permission to ask for it is missing."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (asked,) = client.describe_configs([resource], request_timeout=seconds).values()
    return str(asked.result()["cleanup.policy"].value)


class LinkFaults:
    """Why librdkafka reaches no broker: its error callback hears it, its exceptions say only that it is so.

    Give `heard` to a client as its callback, and let the client serve it (`poll`) before `reason`.
    """

    def __init__(self) -> None:
        self._by_broker: dict[str, str] = {}
        self._heard_at: dict[str, float] = {}
        self._unknown: set[str] = set()
        self._all_down = False

    def heard(self, error: KafkaError) -> None:
        """The error callback."""
        self._all_down = self._all_down or error.code() == KafkaError._ALL_BROKERS_DOWN
        found = _LINK.fullmatch(error.str())
        if found is not None:
            host, _, port = found["broker"].rpartition(":")
            self._heard_at[found["broker"]] = time.monotonic()
            self._by_broker[found["broker"]] = _told_of_link(error, host, port, found["what"])
            if _is_unknown_host(error, found["what"]):
                self._unknown.add(found["broker"])

    def clear(self) -> None:
        """Forget what was heard a while before another request."""
        since = time.monotonic() - REMEMBERED_SECONDS
        for broker, heard_at in tuple(self._heard_at.items()):  # Another thread may hear and clear, too.
            if heard_at <= since:
                self._heard_at.pop(broker, None)
                self._by_broker.pop(broker, None)
                self._unknown.discard(broker)
        self._all_down = False

    def reason(self, error: KafkaException) -> str:
        """The cause of an error: for each broker that is not reached its own, else librdkafka's words."""
        return (error.args[0].code() in _UNREACHED and self.causes) or reason_of(error)

    @property
    def causes(self) -> str:
        """What was heard, broker by broker; empty if nothing."""
        return "; ".join(self._by_broker.values())

    @property
    def only_unknown_hosts(self) -> bool:
        """Whether no broker can ever be reached, since no host has the name of any."""
        return self._all_down and self._unknown == self._by_broker.keys()


_UNREACHED = {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN}
_LINK = re.compile(r"(?:\w+://)?(?P<broker>[^/]+)/\w+: (?P<what>.+?)(?: \(after \d+ms in state .*)?")


def _told_of_link(error: KafkaError, host: str, port: str, what: str) -> str:
    if _is_unknown_host(error, what):
        return f"no host has the name {host}: correct it"
    if "Connection refused" in what:
        return f"nothing listens on port {port} of {host}: start Kafka, or correct the port"
    if error.code() == KafkaError._BAD_MSG:
        stranger = f"port {port} of {host} answers, but not as Kafka does"
        return f"{stranger}: correct the port, or its security.protocol"
    if "PLAINTEXT broker listener?" in what:
        return f"port {port} of {host} speaks no TLS: correct the port, or its security.protocol"
    return f"{host}:{port}: {what}"


def _is_unknown_host(error: KafkaError, what: str) -> bool:
    return error.code() == KafkaError._RESOLVE and "not known" in what


def reason_of(error: KafkaException) -> str:
    """The words of librdkafka about an error."""
    return str(error.args[0].str())
