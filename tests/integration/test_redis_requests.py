"""A request is taken once, by the owner alone, and what came of it is found: on Redis and on a cluster."""

from __future__ import annotations

import uuid

import pytest

from tests.support.redis_cluster import ADDRESS, REAL
from tests.support.stack import Closing
from twinstream.adapters.redis.requests import RedisRequests
from twinstream.adapters.redis.store import RedisStore
from twinstream.errors import StoreError

pytestmark = pytest.mark.requires_redis


@pytest.fixture(params=REAL)
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(ADDRESS[request.param]))


@pytest.fixture
def name() -> str:
    return f"requests-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def requests(url: str, name: str, closing: Closing) -> RedisRequests:
    return closing(RedisRequests(url, name))


@pytest.fixture
def owner(url: str, name: str, closing: Closing) -> RedisStore:
    """The owner, whose token is `owner`."""
    owner = closing(RedisStore(url, name, "owner"))
    assert owner.acquire()
    return owner


def at_the_node(requests: RedisRequests) -> RedisRequests:
    """The same; who has asked once knows the node of a cluster that holds the keys."""
    requests.answered("nothing")
    return requests


@pytest.mark.usefixtures("owner")
def test_the_owner_takes_a_request_once_and_nobody_else_does(requests: RedisRequests) -> None:
    at_the_node(requests)
    assert requests.take("owner") is None
    assert requests.put(b"begin")
    assert requests.take("another") is None
    assert (requests.take("owner"), requests.take("owner")) == (b"begin", None)


@pytest.mark.usefixtures("owner")
def test_an_owner_that_has_asked_nobody_yet_finds_the_node_that_holds_a_request(
    url: str, name: str, requests: RedisRequests, closing: Closing
) -> None:
    assert requests.put(b"begin")
    other = closing(RedisRequests(url, name))
    assert (other.take("owner") or other.take("owner")) == b"begin"


def test_an_owner_whose_lease_has_ended_takes_nothing(requests: RedisRequests, owner: RedisStore) -> None:
    assert at_the_node(requests).put(b"begin")
    owner.release()
    assert requests.take("owner") is None


def test_there_is_one_request_at_a_time(requests: RedisRequests) -> None:
    assert requests.put(b"one")
    assert not requests.put(b"two")


@pytest.mark.usefixtures("owner")
def test_a_request_is_taken_back_only_while_it_is_there(requests: RedisRequests) -> None:
    assert requests.put(b"one")
    assert not requests.withdraw(b"two")
    assert requests.withdraw(b"one")
    assert requests.put(b"two")
    assert requests.take("owner") == b"two"
    assert not requests.withdraw(b"two")


def test_an_answer_is_found_by_its_id(requests: RedisRequests) -> None:
    assert at_the_node(requests).answered("one") is None
    requests.answer("one", b"done")
    assert (requests.answered("one"), requests.answered("two")) == (b"done", None)


def test_where_redis_is_away_who_asks_is_told_and_the_owner_is_not_held_up() -> None:
    requests = RedisRequests("redis://127.0.0.1:1", "x")
    for call in (lambda: requests.put(b"x"), lambda: requests.answered("x"), lambda: requests.withdraw(b"x")):
        with pytest.raises(StoreError, match=r"redis at 127\.0\.0\.1:1 cannot be used"):
            call()
    assert requests.take("owner") is None
    requests.answer("x", b"done")
    requests.close()
