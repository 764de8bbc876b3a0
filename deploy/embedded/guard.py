"""The process between us and each program that we start: it ends the program's whole family when we are gone.

A parent that is killed with -9 runs no clean-up code, so somebody else has to. The guard is a child of ours
that holds one end of a socket. When the other end closes, because we asked for it or because we died in
whatever way, it ends the program and everything that the program ever started:

1. it is a *subreaper*: a grandchild whose parent died becomes the guard's child, not init's, so the family
   can always be found by walking down from the guard;
2. it asks the program to end (SIGTERM), waits for a bounded time, then kills all that is left, until nothing
   is;
3. should the guard itself be killed, the kernel kills the program with it (PR_SET_PDEATHSIG; the guard has
   one thread, so the signal cannot fire early because some other thread of it ended).

The order arrives over the socket and not as arguments, so that `pkill -f` for the program does not find its
guard. The guard answers with the program's process id, or with why it could not be started.

Only the standard library, and little of it, since one of these starts for every program.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_SECONDS = 0.1
"""How often a dead parent or child is looked for: soon enough for people, rarely enough for a processor."""

_COULD_NOT_START = 127


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def _parents() -> dict[int, int]:
    """Map each process of this machine to its parent."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after_name = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue  # it ended between the listing and the look
            parents[int(entry.name)] = int(after_name[1])
    return parents


def descendants(root: int) -> list[int]:
    """List the processes below `root`, nearest first."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents().items():
        children.setdefault(parent, []).append(process)
    found = [root]
    for process in found:
        found.extend(children.get(process, ()))
    return found[1:]


def _signal(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


class _Family:
    """The program and all that comes of it."""

    def __init__(self, program: int) -> None:
        self.program = program
        self.status: int | None = None

    def reap(self) -> None:
        """Collect whoever has ended; remember how the program itself did."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self.program:
                self.status = os.waitstatus_to_exitcode(status)

    def end(self, grace_seconds: float) -> None:
        """Ask the program to end, then kill whatever is left of the family, until none is left."""
        self.reap()
        if self.status is None:
            _signal(self.program, signal.SIGTERM)
            _signal(self.program, signal.SIGCONT)  # a stopped process would never see the SIGTERM
        deadline = time.monotonic() + grace_seconds
        while self.status is None and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS / 5)
            self.reap()
        while left := descendants(os.getpid()):
            for process in left:
                _signal(process, signal.SIGKILL)
            time.sleep(_LOOK_SECONDS / 20)
            self.reap()


def _start(order: dict[str, object], parent: socket.socket) -> int:
    """Fork and become the program; return its process id. Errors before the exec come back through a pipe."""
    failed_read, failed_write = os.pipe()  # both close on exec: an end of file says that the exec succeeded
    guard = os.getpid()
    program = os.fork()
    if program == 0:
        try:
            _become(order, guard)
        except BaseException as error:  # noqa: BLE001 a forked copy of us must never go on from here
            os.write(failed_write, str(error).encode())
        os._exit(_COULD_NOT_START)
    os.close(failed_write)
    with os.fdopen(failed_read, "rb") as pipe:
        failure = pipe.read().decode()
    parent.sendall(json.dumps({"process": program, "failure": failure}).encode() + b"\n")
    return program


def _become(order: dict[str, object], guard: int) -> None:
    os.setpgid(0, 0)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        raise OSError("the guard ended before the program began")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # what our parent blocks is no business of the program's
    argv, environment = order["argv"], order["environment"]
    assert isinstance(argv, list)
    assert isinstance(environment, dict)
    os.chdir(str(order["directory"]))
    os.execvpe(argv[0], argv, environment)


def _read_order(parent: socket.socket) -> dict[str, object]:
    received = b""
    while not received.endswith(b"\n"):
        piece = parent.recv(65536)
        if not piece:
            sys.exit(0)  # we were given up before we were told what to do
        received += piece
    order = json.loads(received)
    assert isinstance(order, dict)
    return order


def _parent_left(parent: socket.socket, parent_process: int) -> bool:
    """Wait a moment; say whether the other end is closed, or held open only by some fork of a dead parent."""
    readable, _, _ = select.select([parent], [], [], _LOOK_SECONDS)
    return bool(readable) or os.getppid() != parent_process


def main() -> int:
    """Take the order, start the program, wait for the first of the two to leave, and clear up."""
    parent = socket.socket(fileno=int(sys.argv[1]))
    parent.set_inheritable(False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    order = _read_order(parent)
    parent_process, grace_seconds = order["parent"], order["grace_seconds"]
    assert isinstance(parent_process, int)
    assert isinstance(grace_seconds, int | float)
    family = _Family(_start(order, parent))
    while family.status is None and not _parent_left(parent, parent_process):
        family.reap()
    family.end(grace_seconds)
    status = family.status if family.status is not None else -signal.SIGKILL
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
