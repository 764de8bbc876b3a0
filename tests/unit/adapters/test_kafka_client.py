"""What the Kafka adapter says of brokers that cannot be reached, with the real client and no broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

import twinstream.adapters.kafka.client as client_module
import twinstream.adapters.kafka.watch as module
from tests.support.waiting import eventually
from twinstream.adapters.kafka.client import LinkFaults, admin_client
from twinstream.adapters.kafka.watch import TopicsAdmin, describe
from twinstream.core.events import Side
from twinstream.errors import SettingsError, SourceError
from twinstream.ports import Topic


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No broker answers, so nobody is waited for."""
    monkeypatch.setattr(module, "DESCRIBE_SECONDS", 0.5)
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.5)


@pytest.fixture
def closed() -> str:
    """The address of a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def stranger() -> Iterator[str]:
    """The address of a server that does not speak Kafka."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"

        def greet() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=greet, daemon=True).start()
        yield address
        listening.shutdown(socket.SHUT_RDWR)


def told(brokers: str) -> str:
    """What somebody is told who asks these brokers for a topic."""
    with pytest.raises(SourceError) as caught:
        describe(brokers, ["orders"], {})
    return str(caught.value)


def test_an_unknown_host_a_closed_port_and_a_stranger_are_told_apart(closed: str, stranger: str) -> None:
    unknown = "nobody.invalid:9092"
    port, other = closed.partition(":")[2], stranger.partition(":")[2]
    start = f"kafka at {closed} does not answer: "
    assert told(closed) == (
        f"{start}nothing listens on port {port} of 127.0.0.1: start Kafka, or correct the port"
    )
    assert "no host has the name nobody.invalid: correct it" in told(unknown)
    assert f"port {other} of 127.0.0.1 answers, but not as Kafka does: " in told(stranger)


def test_a_port_without_tls_is_told_to_who_asks_with_it() -> None:
    link, why = LinkFaults(), "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?"
    link.heard(KafkaError(KafkaError._SSL, f"ssl://h:1/bootstrap: {why} (after 2ms in state SSL_HANDSHAKE)"))
    assert link.causes == "port 1 of h speaks no TLS: correct the port, or its security.protocol"


def test_kerberos_which_is_the_default_is_refused_with_what_there_is() -> None:
    with pytest.raises(
        SettingsError, match=r"^kafka settings: sasl.mechanism is GSSAPI, the default, .* PLAIN, "
    ):
        admin_client("h:1", {"security.protocol": "SASL_PLAINTEXT"}, LinkFaults())


@pytest.mark.timeout(30)
def test_an_unknown_host_is_told_without_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DESCRIBE_SECONDS", 60.0)
    assert "no host has the name nobody.invalid" in told("nobody.invalid:9092,nobody.invalid:9093")


def test_of_several_brokers_each_has_its_own_sentence(closed: str) -> None:
    both = told(f"{closed},nobody.invalid:9092")
    assert "no host has the name nobody.invalid" in both
    assert "nothing listens on port " in both


def test_a_whole_look_says_the_same(closed: str) -> None:
    admin = TopicsAdmin({Side.LEFT: "a", Side.RIGHT: "b"}, closed, {})
    with pytest.raises(SourceError, match="does not answer for topic a: nothing listens on port "):
        admin.look()


def test_looks_go_on_to_name_one_broker_of_two_that_is_away(closed: str) -> None:
    """librdkafka tells of a broker that it does not reach once in a while, and not with each request."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        brokers = f"{closed},127.0.0.1:{silent.getsockname()[1]}"
        admin = TopicsAdmin({Side.LEFT: "a", Side.RIGHT: "b"}, brokers, {})

        def look() -> str:
            with pytest.raises(SourceError) as caught:
                admin.look()
            return str(caught.value)

        eventually(lambda: "nothing listens on port " in look(), what="it is named")
        assert all("nothing listens on port " in look() for _ in range(3))


def test_a_host_that_is_known_may_still_come_up() -> None:
    link = LinkFaults()
    link.heard(KafkaError(KafkaError._RESOLVE, "h:1/bootstrap: Failed to resolve 'h:1': not known"))
    link.heard(KafkaError(KafkaError._TRANSPORT, "i:2/bootstrap: Connection refused"))
    link.heard(KafkaError(KafkaError._ALL_BROKERS_DOWN, "2/2 brokers are down"))
    assert not link.only_unknown_hosts


def test_an_error_of_another_kind_keeps_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    link = LinkFaults()
    link.heard(KafkaError(KafkaError._RESOLVE, "h:1/bootstrap: Failed to resolve 'h:1': not known"))
    denied = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "denied"))
    assert link.reason(denied) == "denied"
    monkeypatch.setattr(client_module, "REMEMBERED_SECONDS", 0.0)
    link.clear()
    assert link.reason(KafkaException(KafkaError(KafkaError._TRANSPORT, "gone"))) == "gone"


def test_a_look_without_an_answer_how_topics_are_cleaned_vouches_for_nothing(
    closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = TopicsAdmin({Side.LEFT: "a", Side.RIGHT: "b"}, closed, {})
    described: Future[Any] = Future()
    described.set_result(SimpleNamespace(topic_id="id", partitions=[SimpleNamespace(id=0)]))
    monkeypatch.setattr(admin, "_described", lambda: {"a": described, "b": described})
    with pytest.raises(SourceError, match="does not answer for topic a"):
        admin.is_as({side: Topic("id", {0: 0}, {0: 9}, "delete") for side in Side})
