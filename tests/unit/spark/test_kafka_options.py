"""What opens a connection is said once, in librdkafka's words, and both Kafka clients of a job take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinstream.errors import SettingsError
from twinstream.spark.matcher.kafka_options import options_of


def test_a_login_by_password_is_the_one_of_java_and_is_encrypted_by_the_same_authority() -> None:
    login = {"sasl.mechanisms": "plain", "sasl.username": "job", "sasl.password": 'a"b\\c'}
    assert options_of({"security.protocol": "sasl_ssl", "ssl.ca.location": "/ca.pem", **login}) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        r'username="job" password="a\"b\\c";',
        "kafka.ssl.truststore.location": "/ca.pem",
        "kafka.ssl.truststore.type": "PEM",
    }


def test_a_certificate_of_the_client_goes_along_as_text(tmp_path: Path) -> None:
    for name in ("cert", "key"):
        (tmp_path / name).write_text(f"THE {name.upper()}")
    files = {"ssl.certificate.location": f"{tmp_path}/cert", "ssl.key.location": f"{tmp_path}/key"}
    assert options_of({**files, "ssl.key.password": "quiet"}) == {
        "kafka.ssl.keystore.certificate.chain": "THE CERT",
        "kafka.ssl.keystore.key": "THE KEY",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.key.password": "quiet",
    }
    with pytest.raises(SettingsError, match=r"ssl\.key\.location: /nowhere cannot be read"):
        options_of({"ssl.key.location": "/nowhere"})


def test_what_tunes_one_client_alone_stays_with_it() -> None:
    assert options_of({"client.id": "orders", "fetch.min.bytes": 1, "socket.keepalive.enable": True}) == {}


def test_the_name_of_a_host_goes_unchecked_only_where_that_is_said() -> None:
    name = "ssl.endpoint.identification.algorithm"
    assert [options_of({name: given}) for given in ("none", "https")] == [
        {f"kafka.{name}": ""},
        {f"kafka.{name}": "https"},
    ]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"ssl.ca.pem": "x"}, r"kafka property ssl\.ca\.pem: Spark's Kafka client has no such setting"),
        ({"enable.ssl.certificate.verification": False}, "certificate.verification: Spark's Kafka client"),
        ({"sasl.mechanism": "GSSAPI", "sasl.username": "a"}, "logs in by PLAIN, .*, not 'GSSAPI'"),
    ],
)
def test_what_sparks_client_has_no_word_for_is_refused_by_name(given: dict[str, object], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        options_of(given)
