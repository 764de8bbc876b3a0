"""A TCP proxy on loopback that delays, stalls and cuts what passes through it."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import Self

from deploy.embedded.kafka import Kafka
from deploy.embedded.processes import LOOPBACK, free_port
from tests.support.listeners import add_listener

_CHUNK = 65_536


class Proxy:
    """Passes connections on to a port of this machine; a context manager that opens it and closes it.

    Args:
        target: the port to which it passes on; it may be set until the first client comes.
    """

    def __init__(self, target: int = 0) -> None:
        self.target, self.port = target, free_port()
        self._delay_seconds = 0.0
        self._flows = threading.Event()
        self._flows.set()
        self._over = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._listener = socket.create_server((LOOPBACK, self.port))
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._flows.set()
        self._listener.close()
        self.cut()

    def delay(self, seconds: float) -> None:
        """Let each chunk wait so long, in both directions."""
        self._delay_seconds = seconds

    def stall(self) -> None:
        """Keep all connections open, take new ones, and pass nothing on."""
        self._flows.clear()

    def flow(self) -> None:
        """Pass on at once again, also what was held back."""
        self._delay_seconds = 0.0
        self._flows.set()

    def cut(self) -> None:
        """Close all connections that are open; new ones are taken."""
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            _close(connection)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection((LOOPBACK, self.target), timeout=10)
        except OSError:
            _close(client)
            return
        server.settimeout(None)
        with self._lock:
            self._open |= {client, server}
        answers = threading.Thread(target=self._pass, args=(server, client), daemon=True)
        answers.start()
        self._pass(client, server)
        answers.join()
        with self._lock:
            self._open -= {client, server}
        client.close()
        server.close()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK):
                if self._delay_seconds:
                    self._over.wait(self._delay_seconds)
                self._flows.wait()
                sink.sendall(chunk)
        _close(source)
        _close(sink)


def _close(connection: socket.socket) -> None:
    """End a connection for both who use it, also while another thread waits for it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class ProxiedKafka(Kafka):
    """A broker that has a second address, which it advertises to those who come by it: that of a proxy."""

    def __init__(self, folder: Path, line: Proxy) -> None:
        super().__init__(folder)
        self._line = line

    def _configure(self) -> int:
        port = super()._configure()
        self._line.target = free_port()
        add_listener(self.folder, "LINE:PLAINTEXT", self._line.target, self._line.port)
        return port
