"""The address of a Redis."""

from __future__ import annotations

import pytest

from twinstream.adapters.redis.connection import RedisConnection
from twinstream.errors import StoreError

NO_PLACE = "redis address '.*store.*' is not of the form"
WRONG_OPTION = "store.*' can have only the options client_name, db,"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("redis://:sesame@store:port", NO_PLACE),
        ("redis://:sesame#sesame@store:6379", NO_PLACE),
        ("redis://user:sesame/sesame@store:6379/0", NO_PLACE),
        ("redis//user:sesame@store:6379", NO_PLACE),
        ("redis://store:6379?password=sesame&db=one", NO_PLACE),
        ("unix://store.sock", NO_PLACE),
        ("redis://:sesame@store:6379/one", NO_PLACE),
        ("redis://:sesame@store:6379/-1", NO_PLACE),
        ("rediss://:sesame@store:6379/0/1", NO_PLACE),
        ("redis://:sesame@store:6379/0?foo=sesame", WRONG_OPTION),
        ("redis://store?decode_responses=true", WRONG_OPTION),
        ("redis://store?socket_timeout=sesame", WRONG_OPTION),
        ("redis://store?ssl_ca_certs=sesame", WRONG_OPTION),
        ("rediss://store?ssl_cert_reqs=sesame", WRONG_OPTION),
        ("rediss://store?ssl_sesame=1", WRONG_OPTION),
    ],
)
def test_an_address_that_cannot_work_is_named_without_its_password(address: str, told: str) -> None:
    with pytest.raises(StoreError, match=told) as refused:
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
