"""What opens a connection is said once, in librdkafka's words, and both Kafka clients of a job take it."""

from __future__ import annotations

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


def test_a_certificate_of_the_client_and_its_key_stay_in_their_one_file() -> None:
    one = {"ssl.certificate.location": "/job.pem", "ssl.key.location": "/job.pem"}
    assert options_of({**one, "ssl.key.password": "quiet"}) == {
        "kafka.ssl.keystore.location": "/job.pem",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.key.password": "quiet",
    }


def test_what_tunes_one_client_alone_stays_with_it() -> None:
    assert options_of({"client.id": "orders", "fetch.min.bytes": 1, "socket.keepalive.enable": True}) == {}


def test_an_option_in_the_words_of_java_wins_and_stands_for_all_of_its_kind() -> None:
    kafka = {"security.protocol": "sasl_ssl", "sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "k"}
    more = {
        "kafka.sasl.mechanism": "GSSAPI",
        "kafka.sasl.jaas.config": "j",
        "kafka.retries": 3,
        "kafka.a": True,
    }
    assert options_of(kafka, more) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "GSSAPI",
        "kafka.sasl.jaas.config": "j",
        "kafka.retries": "3",
        "kafka.a": "true",
    }


def test_the_name_of_a_host_goes_unchecked_only_where_that_is_said() -> None:
    name = "ssl.endpoint.identification.algorithm"
    assert [options_of({name: given}) for given in ("none", "https")] == [
        {f"kafka.{name}": ""},
        {f"kafka.{name}": "https"},
    ]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"ssl.certificate.location": "/a", "ssl.key.location": "/b"}, "reads both from one file"),
        ({"ssl.key.location": "/b"}, "reads both from one file"),
        ({"ssl.ca.pem": "x"}, r"kafka property ssl\.ca\.pem: Spark's Kafka client has no such setting"),
        ({"enable.ssl.certificate.verification": False}, "certificate.verification: Spark's Kafka client"),
        ({"sasl.mechanism": "GSSAPI", "sasl.username": "a"}, "logs in by PLAIN, .*, not 'GSSAPI'"),
    ],
)
def test_what_sparks_client_has_no_word_for_is_refused_by_name(given: dict[str, object], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        options_of(given)
