"""What the embedded servers have in common: one process on a port of its own, started, frozen and killed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Self

from deploy.embedded.errors import EmbeddedError
from deploy.embedded.processes import Process

_PORT_TRIES = 3


class Server(ABC):
    """One server whose data lie in a folder; a context manager that starts it and stops it.

    `kill`, `pause`, `resume` and `restart` are for tests of what a client does then; data and port stay the
    same.

    Args:
        folder: where configuration, log and data go; created if missing. A folder used before is taken up
            again.
    """

    name: ClassVar[str]
    start_seconds: ClassVar[float]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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
            raise EmbeddedError(f"{self.name} has not been started")
        return self._port

    def start(self) -> None:
        """Start the server and return when it answers clients.

        Raises:
            EmbeddedError: something that it needs is missing, or it does not come up.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for tries_left in reversed(range(_PORT_TRIES)):
            if self._port is None:
                self._port = self._configure()
            self.process = self._program()
            try:
                self.process.start()
                self.process.wait_until_ready(self._answers, seconds=self.start_seconds)
                return
            except EmbeddedError as error:
                if "Address already in use" not in str(error) or tries_left == 0:
                    raise
                self._port = None  # somebody else was quicker: try another

    @abstractmethod
    def _configure(self) -> int:
        """Choose a free port, and prepare the folder for it."""

    @abstractmethod
    def _program(self) -> Process:
        """The process, not started yet."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it answers clients."""

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
            raise EmbeddedError(f"{self.name} has not been started")
        return self.process
