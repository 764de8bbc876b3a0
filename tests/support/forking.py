"""Processes of `twinstream` that need no second to start: forked off one that has imported all of it.

What is forked is a real process with arguments, folder, environment, standard streams and exit code of its
own. Only the start of the interpreter and the imports are spared, most of what a short command costs.
"""

from __future__ import annotations

import atexit
import contextlib
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

ROOT = Path(__file__).parents[2]
STREAMS = 3


class Fork:
    """The process that the others are forked off. It ends with the process that made it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fork-")
        self._address = str(Path(self._folder.name, "socket"))
        self._process = subprocess.Popen(
            # Not with -m: what click calls the program depends on it.
            [sys.executable, "-c", "from tests.support import forking; forking.main()", self._address],
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

    def run(
        self,
        command: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        stdin: bytes,
        seconds: float,
    ) -> tuple[int, bytes, bytes]:
        """Run a command; exit code, standard output and standard error. Raises TimeoutError."""
        read, write = os.pipe()
        with (
            socket.socket(socket.AF_UNIX) as line,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            line.connect(self._address)
            line.settimeout(seconds)
            socket.send_fds(line, [b"!"], [read, out.fileno(), err.fileno()])
            os.close(read)
            threading.Thread(target=_feed, args=(write, stdin), daemon=True).start()
            wanted = {"command": command, "folder": folder, "environment": dict(environment)}
            line.sendall(json.dumps(wanted).encode() + b"\n")
            code = _code(line)
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()


def _feed(pipe: int, content: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(pipe, "wb") as file:
        file.write(content)


def _code(line: socket.socket) -> int:
    """The exit code, which comes on a line behind that with the number of the process."""
    with line.makefile("r") as answer:
        process = int(answer.readline())
        try:
            return int(answer.readline())
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            raise


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
