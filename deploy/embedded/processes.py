"""Programs that we start and that never outlive us.

Every long-running program runs below a guard (see `guard`), so that neither Ctrl-C nor SIGTERM nor `kill -9`
of this process leaves anything behind, the Java and Python processes that Spark starts included.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from deploy.embedded import guard
from deploy.embedded.errors import EmbeddedError

LOOPBACK = "127.0.0.1"

_FIRST_PORT, _LAST_PORT = 20_000, 32_000
"""Below Linux's range for outgoing connections (from 32768): a port that a server gives up while it restarts
is not taken by some client's connection in the meantime."""

_GUARD_SLACK_SECONDS = 15.0
"""How much longer than the program's own grace we wait for its guard before we say that it hangs."""


def free_port() -> int:
    """Pick a port that nothing listens on now; another process may still be quicker to take it."""
    for port in random.sample(range(_FIRST_PORT, _LAST_PORT), 200):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise EmbeddedError(f"no free port found on {LOOPBACK} between {_FIRST_PORT} and {_LAST_PORT}")


class Process:
    """One guarded program; a context manager that starts it and stops it.

    Standard output and standard error are appended to `log`. All methods may be called from any thread, one
    at a time. `stop` may be called at any time and any number of times.

    Args:
        name: what messages call it.
        argv: the program and its arguments.
        log: where its output goes; the folder must exist.
        environment: variables on top of this process's own.
        directory: its working directory, by default this process's.
        grace_seconds: how long it may take to end by itself before it is killed.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        grace_seconds: float = 10.0,
    ) -> None:
        self.name = name
        self.argv = list(argv)
        self.log = log
        self.grace_seconds = grace_seconds
        self._environment = dict(environment or {})
        self._directory = directory
        self._guard: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._process: int | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether the program has been started and has not ended."""
        return self._guard is not None and self._guard.poll() is None

    @property
    def process_id(self) -> int:
        """The program's own process id (not its guard's)."""
        if self._process is None:
            raise EmbeddedError(f"{self.name} has not been started")
        return self._process

    @property
    def exit_code(self) -> int | None:
        """How the program ended, 128 + N for signal N as in a shell; None before that."""
        code = None if self._guard is None else self._guard.poll()
        return 128 - code if code is not None and code < 0 else code  # below 0 the guard itself was killed

    def start(self) -> None:
        """Start the program; return when it has been executed.

        Raises:
            EmbeddedError: it runs already, or cannot be executed.
        """
        if self.running:
            raise EmbeddedError(f"{self.name} runs already, as process {self._process}")
        self._release()
        ours, theirs = socket.socketpair()
        with theirs:
            self._guard = self._start_guard(theirs)
        self._channel = ours
        answer = self._send_order(ours)
        if answer["failure"]:
            self.stop()
            raise EmbeddedError(f"{self.name} cannot be started: {answer['failure']}: {self.argv[0]}")
        self._process = int(str(answer["process"]))

    def _start_guard(self, channel: socket.socket) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", guard.__file__, str(channel.fileno()), self.name]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[channel.fileno()],
                start_new_session=True,  # the terminal's Ctrl-C is for us; we stop the parts in their order
            )

    def _send_order(self, channel: socket.socket) -> dict[str, object]:
        order = {
            "argv": self.argv,
            "environment": {**os.environ, **self._environment},
            "directory": str(self._directory or Path.cwd()),
            "grace_seconds": self.grace_seconds,
            "parent": os.getpid(),
        }
        channel.sendall(json.dumps(order).encode() + b"\n")
        with channel.makefile("rb") as answers:
            answer = answers.readline()
        if not answer:
            raise EmbeddedError(f"{self.name} cannot be started: its guard ended at once, see {self.log}")
        loaded: dict[str, object] = json.loads(answer)
        return loaded

    def wait(self, seconds: float) -> int:
        """Wait until the program has ended by itself, and return its exit code.

        Raises:
            EmbeddedError: it still runs after `seconds`.
        """
        if self._guard is None:
            raise EmbeddedError(f"{self.name} has not been started")
        try:
            return self._guard.wait(seconds)
        except subprocess.TimeoutExpired:
            raise EmbeddedError(f"{self.name} did not end within {seconds:g} s, {self.where()}") from None

    def stop(self) -> None:
        """End the program and all that it started: asked first, killed after `grace_seconds`."""
        self.ask_to_stop()
        if self._guard is not None:
            try:
                self._guard.wait(self.grace_seconds + _GUARD_SLACK_SECONDS)
            except subprocess.TimeoutExpired:
                raise EmbeddedError(f"{self.name} (process {self._process}) cannot be killed") from None

    def ask_to_stop(self) -> None:
        """Begin to end the program without waiting for it; `stop` waits."""
        self._release()

    def _release(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the program and to those of its descendants that share its process group."""
        with contextlib.suppress(ProcessLookupError):  # it may have ended: then nobody is left to tell
            os.killpg(self.process_id, number)

    def kill(self) -> None:
        """Kill the program with -9, as an out-of-memory killer would, and return when its family is gone."""
        self.send(signal.SIGKILL)
        self.stop()

    def pause(self) -> None:
        """Stop the program in its tracks: it keeps its connections and answers nothing."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused program go on."""
        self.send(signal.SIGCONT)

    def restart(self) -> None:
        """Stop it if it runs, and start it again with the same arguments."""
        self.stop()
        self.start()

    def where(self) -> str:
        """Say where its log is and how it ends: the tail of a message about it."""
        return f"its log is {self.log}{self._log_tail()}"

    def _log_tail(self, lines: int = 15) -> str:
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 16_384))
                text = file.read().decode(errors="replace")
        except OSError:
            return ""
        tail = "\n".join(f"  | {line}" for line in text.splitlines()[-lines:])
        return f" and ends:\n{tail}" if tail else ", which is empty"

    def wait_until_ready(self, ready: Callable[[], bool], *, seconds: float) -> None:
        """Poll `ready`; stop the program and say why if it ends first or takes longer than `seconds`.

        Raises:
            EmbeddedError: naming the program, what happened, its log and the log's end.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            code = self.exit_code
            if code is None and time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            why = f"was not ready within {seconds:g} s" if code is None else f"ended with exit code {code}"
            self.stop()
            raise EmbeddedError(f"{self.name} {why}; {self.where()}")


def listens(port: int) -> bool:
    """Whether something accepts connections on a loopback port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0
