"""No message tells a password that an address holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from twinstream.adapters.redis.connection import RedisConnection
from twinstream.cli.shared.client import Service, ask
from twinstream.drill.alarm import Alertmanager, Prometheus
from twinstream.errors import without_secrets
from twinstream.spec.decode.formats.registry import Registry

ADDRESSES = ["any:sesame@127.0.0.1:1", "any:sesame#sesame@127.0.0.1:1", "any:sesame/sesame@127.0.0.1:1"]
ASKED: dict[str, Callable[[str], object]] = {
    "the service": lambda address: ask(Service(address), "/comparisons"),
    "Prometheus": lambda address: Prometheus(address).has("up"),
    "Alertmanager": lambda address: Alertmanager(address).routes("orders"),
    "the schema registry": lambda address: Registry(address).schema(1),
    "redis": lambda address: RedisConnection(f"{address}x"),
}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("scheme", ["http://", ""])
@pytest.mark.parametrize("who", ASKED)
def test_a_server_that_cannot_be_asked_is_named_without_the_password(
    who: str, scheme: str, address: str
) -> None:
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1") as refused:
        ASKED[who](scheme + address)
    assert who in str(refused.value)
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://any:token@host/twinstream", "https://…@host/twinstream"),
        ("any:token@host", "…@host"),
        ("redis://host:6379/0?password=token", "redis://host:6379/0"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("", ""),
    ],
)
def test_an_address_is_shown_but_for_its_secrets(address: str, shown: str) -> None:
    assert without_secrets(address) == shown
