"""Processes of `twinstream` that need no second to start: forked off one that has imported all of it.

What is forked is a real process with arguments, folder, environment, standard streams and exit code of its
own. Only the start of the interpreter and the imports are spared, most of what a short command costs. So it
is with those that a service starts in its turn (see `nursery`).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

from tests.support import nursery
from tests.support.processes import MARK, new_mark

ROOT = Path(__file__).parents[2]
STREAMS = 3
CONSTANTS = "TWINSTREAM_TEST_CONSTANTS"
SPAWN = {"drill", "serve"}
"""Commands that start Python processes of their own."""
SHOWN = 400
"""So many bytes of its command are shown of a process that is forked."""


def with_constants(module: str, **constants: float) -> dict[str, str]:
    """The environment of a process whose modules have other constants than usual: one that waits less.

    Those that are started (each night, all of them) have the usual ones.
    """
    return {CONSTANTS: json.dumps({module: constants})}


class Forked:
    """A process that was forked: as much of `subprocess.Popen` as tests use."""

    stdout: IO[bytes] | None = None

    def __init__(self, line: socket.socket) -> None:
        self._line = line.makefile("r")
        self._socket = line
        self.pid = int(self._line.readline())
        self.returncode: int | None = None

    def wait(self, timeout: float) -> int:
        """Its exit code, when it has ended. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._socket], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            self.returncode = int(self._line.readline())
            self._line.close()
            self._socket.close()
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


MAIN = "from tests.support import forking; forking.main()"


class Fork:
    """The process that the others are forked off. It ends with the process that made it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fork-")
        self._address = str(Path(self._folder.name, "socket"))
        self._process = subprocess.Popen(
            # Not with -m: what click calls the program depends on it. What is forked shows its command and
            # its mark in the room that this one has for them.
            [sys.executable, "-c", MAIN, self._address, " " * SHOWN],
            env={**os.environ, **new_mark()},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        atexit.register(self.close)

    def close(self) -> None:
        """End it."""
        self._process.communicate()
        self._folder.cleanup()

    def start(
        self, command: Sequence[str], folder: str, environment: Mapping[str, str], *streams: int
    ) -> Forked:
        """Start a command on three streams."""
        line = socket.socket(socket.AF_UNIX)
        line.connect(self._address)
        socket.send_fds(line, [b"!"], streams)
        wanted = {"command": command, "folder": folder, "environment": dict(environment)}
        line.sendall(json.dumps(wanted).encode() + b"\n")
        return Forked(line)

    def run(
        self,
        command: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        stdin: bytes,
        seconds: float,
    ) -> tuple[int, bytes, bytes]:
        """Run a command; exit code, standard output and standard error. Raises TimeoutExpired."""
        read, write = os.pipe()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.start(command, folder, environment, read, out.fileno(), err.fileno())
            os.close(read)
            threading.Thread(target=_feed, args=(write, stdin), daemon=True).start()
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def serve(self, command: Sequence[str], environment: Mapping[str, str], stderr: IO[bytes]) -> Forked:
        """Start a command that goes on; what it says is in `stdout`."""
        read, write = os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            process = self.start(
                command, str(Path.cwd()), environment, nothing.fileno(), write, stderr.fileno()
            )
        os.close(write)
        process.stdout = os.fdopen(read, "rb")
        return process


def _feed(pipe: int, content: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(pipe, "wb") as file:
        file.write(content)


@cache
def fork() -> Fork:
    """The one of this process."""
    return Fork()


def _import_all() -> None:
    import twinstream

    for module in pkgutil.walk_packages(twinstream.__path__, "twinstream."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    gc.collect()
    gc.freeze()  # What is imported lives as long as each process, and need not be looked through again.


def _serve(address: str) -> None:
    """Fork on demand; returns in each process that is to be a command."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(16)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:  # closed: whoever wanted commands is gone
                os._exit(0)
            line, _ = listener.accept()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if os.fork() == 0:
                listener.close()
                break
            line.close()
    _, streams, _, _ = socket.recv_fds(line, 1, STREAMS)
    with line.makefile("r") as asked:
        wanted = json.loads(asked.readline())
    if process := os.fork():
        for stream in streams:
            os.close(stream)
        line.sendall(f"{process}\n".encode())
        line.sendall(f"{os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}\n".encode())
        os._exit(0)
    line.close()
    _become(wanted["command"], wanted["folder"], wanted["environment"], streams)


def _become(
    command: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int]
) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    encoding = environment.get("PYTHONIOENCODING")
    sys.stdin = open(0, encoding=encoding)  # noqa: SIM115 - those of the process
    sys.stdout = open(1, "w", encoding=encoding)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(command)
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    show(command)
    for module, constants in json.loads(environment.get(CONSTANTS, "{}")).items():
        for name, value in constants.items():
            assert hasattr(import_module(module), name), f"{module} has a constant {name}"
            setattr(import_module(module), name, value)
    if SPAWN.intersection(command):
        nursery.open_one()


def show(command: Sequence[str]) -> None:
    """Have the system show the command and the mark of this process, not of the one it is forked off."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end, first, last = map(int, fields[45:49])
    size = end - start
    ctypes.memmove(start, "\0".join(command).encode()[: size - 1].ljust(size, b"\0"), size)
    found = ctypes.string_at(first, last - first)
    at = found.index(b"\0" + MARK.encode() + b"=") + 1
    mark = f"{MARK}={os.environ.get(MARK, '')}".encode()
    room = found.index(b"\0", at) - at
    ctypes.memmove(first + at, mark[:room].ljust(room, b" "), room)


def _main() -> int:
    from twinstream.cli.main import main

    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _end(code: int) -> None:
    """End as the interpreter does, without taking apart all that is imported."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def main() -> None:
    """Be the process that others are forked off; each of them returns from `_serve` and is the command."""
    sys.path[0] = str(Path(sys.executable).parent)  # as for a program that is installed there
    _import_all()
    _serve(sys.argv[1])
    _end(_main())
