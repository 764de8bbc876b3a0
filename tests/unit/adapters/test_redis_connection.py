"""The address of a Redis."""

from __future__ import annotations

import pytest

from twinstream.adapters.redis.connection import RedisConnection
from twinstream.errors import StoreError


@pytest.mark.parametrize(
    "address",
    [
        "redis://:sesame@store:port",
        "redis://:sesame#sesame@store:6379",
        "redis://user:sesame/sesame@store:6379/0",
        "redis//user:sesame@store:6379",
        "redis://store:6379?password=sesame&db=one",
        "unix://store.sock",
        "redis://:sesame@store:6379/one",
        "redis://:sesame@store:6379/-1",
        "rediss://:sesame@store:6379/0/1",
    ],
)
def test_an_address_that_is_none_is_named_without_its_password(address: str) -> None:
    with pytest.raises(StoreError, match=r"redis address '.*store.*' is not of the form") as refused:
        RedisConnection(address)
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "redis://:sesame@store:6379/0?foo=sesame",
        "redis://store?decode_responses=true",
        "redis://store?socket_timeout=sesame",
        "redis://store?ssl_ca_certs=sesame",
        "rediss://store?ssl_cert_reqs=sesame",
        "rediss://store?ssl_sesame=1",
    ],
)
def test_an_option_that_would_fail_or_change_how_it_works_is_refused(address: str) -> None:
    with pytest.raises(StoreError, match=r"store.*' can have only the options client_name, db,") as refused:
        RedisConnection(address)
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "database"),
    [
        ("redis://store:6379", 0),
        ("redis://store:6379/", 0),
        ("redis://store:6379/7", 7),
        ("redis://store:6379/7?db=8", 8),
        ("unix:///run/redis.sock?db=3", 3),
        ("rediss://store?ssl_cert_reqs=none&ssl_ca_certs=ca.pem&client_name=it&db=2", 2),
    ],
)
def test_an_address_names_its_database(address: str, database: int) -> None:
    settings = RedisConnection(address).client.connection_pool.connection_kwargs
    assert settings.get("db", 0) == database


def test_an_address_that_is_none_is_told_what_one_is() -> None:
    with pytest.raises(StoreError) as refused:
        RedisConnection("store:6379")
    assert str(refused.value) == (
        "redis address 'store:6379' is not of the form redis://[USER:PASSWORD@]HOST:PORT/DATABASE, "
        "rediss://… or unix://PATH; in a password write / as %2F, # as %23, ? as %3F, @ as %40 and % as %25"
    )
