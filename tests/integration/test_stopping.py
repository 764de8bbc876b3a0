"""A process of the API that is told to stop while requests are under way, on real Redis and without Kafka."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.service import ServiceProcess, spec_file
from tests.support.statuses import status
from tests.support.waiting import eventually
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.core.arrivals.sharding import WHOLE
from twinstream.ports import StatusRelay
from twinstream.processes.standby import Bulletin
from twinstream.spec.load import digest, load

pytestmark = pytest.mark.requires_redis

NAME = "stopped"


@pytest.fixture
def api(tmp_path: Path, redis_url: str) -> Iterator[ServiceProcess]:
    file = spec_file(tmp_path, NAME, "reference", "candidate")
    with ServiceProcess(file, "127.0.0.1:1", redis_url, "--role", "api") as api:
        yield api


@pytest.fixture
def owner(redis_url: str, api: ServiceProcess) -> Iterator[StatusRelay]:
    """The owner of the comparison, whom the process hears."""
    shelf = RedisShelf(redis_url, NAME, "owner")
    store, relay = shelf.store(WHOLE), shelf.relay(WHOLE)
    assert store.acquire()
    said, numbers = status(NAME, spec_digest=digest(load(api.spec))), itertools.count()

    def is_heard() -> bool:
        told = Bulletin.of(said, (), (), stamp=relay.time(), number=next(numbers))
        relay.tell(told.model_dump_json().encode())
        return bool(api.get("")["verdict"] == "EQUIVALENT")

    eventually(is_heard, what="the owner is heard")
    yield relay
    for opened in (store, relay, shelf):
        opened.close()


def test_a_reset_that_is_under_way_when_the_process_stops_is_said_to_be_unknown(
    api: ServiceProcess, owner: StatusRelay
) -> None:
    with ThreadPoolExecutor() as thread:
        asked = thread.submit(api.reset)
        eventually(owner.take, what="a request")
        assert api.stop() == 0
        answer = asked.result()
    told = f"It is not known whether {NAME!r} was reset: this process stops."
    assert (answer.status_code, answer.json()["detail"].startswith(told)) == (503, True)
    assert "exception" not in api.log(), "a stack trace is for a bug"


def test_a_request_whose_body_is_not_there_when_the_process_stops_is_no_bug(api: ServiceProcess) -> None:
    place = urlsplit(api.address)
    lines = (f"POST /v1/comparisons/{NAME}/reset HTTP/1.1", "Host: localhost", "Content-Length: 50")
    more = ("Content-Type: application/json", "Expect: 100-continue", "", "{")
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        connection.sendall("\r\n".join((*lines, *more)).encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 100 "), "the body is waited for"
        assert api.stop() == 0
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"This process stops: ask again." in answer
    assert "exception" not in api.log(), "a stack trace is for a bug"
