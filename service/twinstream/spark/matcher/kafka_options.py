"""The properties of librdkafka that open a connection, as options of Spark's Kafka client.

A job reaches Kafka with two clients: Twinstream's own is librdkafka, Spark's is Java's. Their properties are
given once, in the words of librdkafka (https://kafka.apache.org/documentation/#security has those of Java).
What encrypts and logs in is translated; all else, such as the size of a buffer, tunes the one client alone.

Spark writes options to its log, without those that its patterns know for secret. So a key stays in its file,
which all hosts have by the same path; a password is among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinstream.errors import SettingsError

_SAME = {
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.key.password": "ssl.key.password",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.key.location": "ssl.keystore.location",
}
_KNOWN = {
    *_SAME,
    "sasl.username",
    "sasl.password",
    "ssl.certificate.location",
    "ssl.endpoint.identification.algorithm",
}
_LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def options_of(properties: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> dict[str, str]:
    r"""The options of Spark's Kafka source and sink; `more` are in Java's words already, and win.

    Raises SettingsError for a property of encryption or login that Spark's client has no word for, and for a
    certificate apart from its key. Where `more` has options of that, they stand for all of it.

    >>> options_of({"security.protocol": "ssl", "client.id": "orders"})
    {'kafka.security.protocol': 'SSL'}
    """
    own = {name: _text(value) for name, value in (more or {}).items()}
    kinds = {name.split(".")[1] for name in own}
    given = {name: str(value) for name, value in properties.items() if _kind(name) not in kinds}
    for name in given:
        opens = name.startswith(("sasl.", "ssl.", "enable.ssl."))
        if opens and name not in _KNOWN:
            raise SettingsError(
                f"kafka property {name}: Spark's Kafka client has no such setting; a Spark job takes "
                f"{', '.join(sorted(_KNOWN))}"
            )
    if given.get("ssl.certificate.location") != given.get("ssl.key.location"):
        raise SettingsError(
            "kafka properties ssl.certificate.location and ssl.key.location: Spark's Kafka client reads both "
            "from one file; give it under both names"
        )
    java = {_SAME[name]: value for name, value in given.items() if name in _SAME}
    java |= _upper(java) | _stores(java) | _login(given, java) | _checks(given)
    return {f"kafka.{name}": value for name, value in java.items()} | own


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(name: str) -> str:
    """What a property is of: `sasl`, `ssl` or another."""
    return name.removeprefix("enable.").split(".")[0]


def _upper(java: Mapping[str, str]) -> dict[str, str]:
    """Names of which librdkafka takes any case."""
    return {name: java[name].upper() for name in ("security.protocol", "sasl.mechanism") if name in java}


def _stores(java: Mapping[str, str]) -> dict[str, str]:
    """What certificates are written in."""
    return {
        f"ssl.{store}.type": "PEM" for store in ("truststore", "keystore") if f"ssl.{store}.location" in java
    }


def _login(given: Mapping[str, str], java: Mapping[str, str]) -> dict[str, str]:
    """Name and password, as Java's clients want them."""
    if "sasl.username" not in given:
        return {}
    mechanism = java.get("sasl.mechanism", "").upper()
    if mechanism not in _LOGINS:
        raise SettingsError(
            f"kafka property sasl.mechanism: a Spark job logs in by {', '.join(_LOGINS)}, not {mechanism!r}"
        )
    words = (given["sasl.username"], given.get("sasl.password", ""))
    name, password = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return {"sasl.jaas.config": f'{_LOGINS[mechanism]} required username="{name}" password="{password}";'}


def _checks(given: Mapping[str, str]) -> dict[str, str]:
    """Whether the name of a host must be that of its certificate, for which Java's `none` is empty."""
    name = "ssl.endpoint.identification.algorithm"
    return {name: "" if given[name] == "none" else given[name]} if name in given else {}
