"""Where the service listens."""

from __future__ import annotations

import socket

from twinstream.http_server import bound


def test_who_asks_before_the_server_runs_waits_and_is_not_turned_away() -> None:
    with bound("127.0.0.1:0") as listening, socket.create_connection(listening.getsockname(), timeout=10):
        pass
