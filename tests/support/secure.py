"""A broker that has a second address, where it asks for TLS on both sides, and for a login."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from deploy.embedded.kafka import Kafka
from deploy.embedded.processes import LOOPBACK, free_port
from tests.support.certificates import certify
from tests.support.listeners import add_listener

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORD = "open sesame"


class SecureKafka(Kafka):
    """One broker; `guarded` stands for it by its second address, `properties` are those of a client there."""

    def _configure(self) -> int:
        port, self._guarded = super()._configure(), free_port()
        self._certificate, key = certify(self.folder, "guarded")
        self._store = self.folder / "store.pem"
        self._store.write_text(key.read_text() + self._certificate.read_text())
        own = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._store,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._certificate,
            "ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN",
            "plain.sasl.jaas.config": f'{_PLAIN} required user_ann="{PASSWORD}";',
        }
        more = "".join(f"listener.name.guarded.{name}={value}\n" for name, value in own.items())
        add_listener(self.folder, "GUARDED:SASL_SSL", self._guarded, self._guarded, more)
        return port

    @property
    def guarded(self) -> Any:
        """Its second address, as `Kafka.brokers`."""
        return SimpleNamespace(brokers=f"{LOOPBACK}:{self._guarded}")

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of librdkafka."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "ann",
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self._certificate),
            "ssl.certificate.location": str(self._store),
            "ssl.key.location": str(self._store),
        }
