"""Where the service listens."""

from __future__ import annotations

import socket

import pytest

from twinstream.errors import SettingsError
from twinstream.http_server import bound


def test_who_asks_before_the_server_runs_waits_and_is_not_turned_away() -> None:
    with bound("127.0.0.1:0") as listening, socket.create_connection(listening.getsockname(), timeout=10):
        pass


def test_a_name_that_no_host_can_have_is_told() -> None:
    with pytest.raises(SettingsError, match=r"^bind address a\.\.b:80 cannot be used: no host can have"):
        bound("a..b:80")
