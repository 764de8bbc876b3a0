"""What is said of servers that cannot be reached, by the clients that the service uses."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import redis

from deploy.demo import service as demo
from twinstream.adapters.redis.errors import sentence
from twinstream.cli.shared.client import Service, ask
from twinstream.cli.shared.output import Unreachable
from twinstream.errors import NO_HOST, NO_LISTENER, told_of_connection


def closed() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def asked_by_http(host: str, port: int) -> str:
    with pytest.raises(Unreachable) as caught:
        ask(Service(f"http://{host}:{port}"), "/comparisons")
    return str(caught.value.message)


def asked_by_redis(host: str, port: int) -> str:
    with pytest.raises(redis.ConnectionError) as caught:
        redis.Redis(host=host, port=port, retry=None).ping()
    return sentence(f"{host}:{port}", caught.value)


def asked_by_demo(host: str, port: int) -> str:
    with demo.Service(f"http://{host}:{port}") as service, pytest.raises(demo.UnreachableError) as caught:
        service.look()
    return str(caught.value)


@pytest.mark.parametrize("asked", [asked_by_http, asked_by_redis, asked_by_demo])
def test_an_unknown_host_and_a_closed_port_are_told_apart(asked: Callable[[str, int], str]) -> None:
    assert asked("127.0.0.1", closed()).endswith(f": {NO_LISTENER}")
    assert asked("nobody.invalid", 1).endswith(f": {NO_HOST}")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (httpx.ConnectError("[Errno 113] No route to host"), "No route to host"),
        (redis.ConnectionError("Error 113 connecting to h:1. No route to host."), "connecting to h:1. No"),
        (httpx.ReadTimeout("timed out"), "timed out"),
    ],
)
def test_no_number_of_the_operating_system_is_told(error: Any, told: str) -> None:
    assert told_of_connection(error).startswith(told)
