"""Processes of `twinstream` that need no second to start: forked off one that has imported all of it.

What is forked is a real process with arguments, folder, environment, standard streams and exit code of its
own. Only the start of the interpreter and the imports are spared, most of what a short command costs. So it
is with those that a service starts in its turn (see `nursery`).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from multiprocessing import forkserver, process
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import IO
from unittest.mock import patch

import twinstream
from tests.support import nursery
from tests.support.processes import MARK, new_mark

ROOT = Path(__file__).parents[2]
CONSTANTS = "TWINSTREAM_TEST_CONSTANTS"
SPAWN = {"drill", "serve"}
"""Commands that start Python processes of their own."""
PATH, MAIN = sys.path.copy(), multiprocessing.current_process()
"""Of the process that forks: where modules are looked for, and that it is nobody's child."""


def with_constants(module: str, **constants: float) -> dict[str, str]:
    """The environment of a process whose modules have other constants than usual: one that waits less.

    Those that are started (each night, all of them) have the usual ones.
    """
    return {CONSTANTS: json.dumps({module: constants})}


@cache
def _fork() -> ForkServerContext:
    """What forks, and ends with this process. In its arguments there is room for the commands to show."""
    fork = multiprocessing.get_context("forkserver")
    modules = [module.name for module in pkgutil.walk_packages(twinstream.__path__, "twinstream.")]
    fork.set_forkserver_preload([__name__, *(name for name in modules if not name.endswith("__main__"))])
    os.environ.update(new_mark())
    with contextlib.chdir(ROOT):
        forkserver.ensure_running()
    del os.environ[MARK]
    return fork


class Forked:
    """A process that was forked: as much of `subprocess.Popen` as tests use. `streams` are paths."""

    stdout: IO[bytes]

    def __init__(
        self, command: Sequence[str], folder: str, environment: Mapping[str, str], *streams: Path
    ) -> None:
        args = command, folder, dict(environment), streams
        self._process = _fork().Process(target=_command, args=args, daemon=True)
        main = sys.modules["__main__"]
        # What is forked would otherwise import the main program of the tests.
        with patch.object(main, "__spec__", None), patch.object(main, "__file__", None, create=True):
            self._process.start()
        assert self._process.pid is not None, "it was started"
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """Its exit code, when it has ended. Raises TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self._process.is_alive():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def run(
    command: Sequence[str], folder: str, environment: Mapping[str, str], stdin: bytes, seconds: float
) -> tuple[int, bytes, bytes]:
    """Run a command; exit code, standard output and standard error. Raises TimeoutExpired."""
    with tempfile.TemporaryDirectory() as name:
        told, out, err = (Path(name, stream) for stream in ("in", "out", "err"))
        told.write_bytes(stdin)
        forked = Forked(command, folder, environment, told, out, err)
        try:
            code = forked.wait(seconds)
        finally:
            forked.kill()
        return code, out.read_bytes(), err.read_bytes()


def serve(command: Sequence[str], environment: Mapping[str, str], stderr: Path) -> Forked:
    """Start a command that goes on; what it says is in `stdout`."""
    with tempfile.TemporaryDirectory() as name:
        pipe = Path(name, "out")
        os.mkfifo(pipe)
        forked = Forked(command, str(Path.cwd()), environment, Path(os.devnull), pipe, stderr)
        forked.stdout = pipe.open("rb")
    return forked


def _command(
    command: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[Path]
) -> None:
    """Be a command. What it says on standard error is appended."""
    gc.freeze()  # What is imported lives as long as the process, and need not be looked through again.
    process._current_process, process._parent_process = MAIN, None  # type: ignore[attr-defined]
    for number, (stream, mode) in enumerate(zip(streams, ("rb", "wb", "ab"), strict=True)):
        with stream.open(mode) as file:
            os.dup2(file.fileno(), number)
    encoding = environment.get("PYTHONIOENCODING")
    sys.stdin = open(0, encoding=encoding)  # noqa: SIM115 - those of the process
    sys.stdout = open(1, "w", encoding=encoding)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(command)
    first = str(Path(sys.executable).parent)  # as for a program that is installed there
    sys.path[:] = [first, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *PATH[1:]]
    show(command)
    for module, constants in json.loads(environment.get(CONSTANTS, "{}")).items():
        for name, value in constants.items():
            assert hasattr(import_module(module), name), f"{module} has a constant {name}"
            setattr(import_module(module), name, value)
    if SPAWN.intersection(command):
        nursery.open_one()
    import_module("twinstream.cli.main").main()


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
