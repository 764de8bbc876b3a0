"""Processes that a command starts by multiprocessing, forked off one that has imported all of them.

Multiprocessing starts an interpreter for each, which imports for a second. Here a process that was forked off
the command before it did anything does the same by forking: what is told to a process is pickled as ever, it
has nothing but the imports in common with the command, and it is a child of the command.
"""

from __future__ import annotations

import ctypes
import io
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Sequence
from multiprocessing import context, forkserver, popen_fork, popen_forkserver, reduction, spawn, util

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_FDS = 32


class Nursery:
    """Forks processes on demand, and gives them to the process that opened it, with which it ends."""

    def __init__(self) -> None:
        libc, parent = ctypes.CDLL(None), os.getpid()
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._line, theirs = socket.socketpair()
        if os.fork() == 0:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            self._line.close()
            _tend(theirs, parent)
        theirs.close()

    def bear(self, fds: Sequence[int]) -> int:
        """A new child of this process: it reads from the first of these what it is to do."""
        socket.send_fds(self._line, [b"!"], fds)
        return int(self._line.recv(20))


def _tend(line: socket.socket, parent: int) -> None:
    """Fork on demand, until nobody is left who could ask."""
    while True:
        word, fds, _, _ = socket.recv_fds(line, 1, _FDS)
        if not word:
            os._exit(0)
        if between := os.fork():
            os.waitpid(between, 0)
            for fd in fds:
                os.close(fd)
        elif os.fork():
            os._exit(0)
        else:
            _live(line, parent, fds)


def _live(line: socket.socket, parent: int, fds: list[int]) -> None:
    from tests.support.forking import show

    while os.getppid() != parent:  # until the one between has ended
        time.sleep(0.001)
    show(["twinstream", "spawn_main"])
    line.send(str(os.getpid()).encode())
    line.close()
    forkserver._forkserver._inherited_fds = fds
    os._exit(spawn._main(fds[0], os.dup(fds[0])))


class _Popen(popen_fork.Popen):
    method = "spawn"
    DupFd = popen_forkserver._DupFd
    nursery: Nursery

    def duplicate_for_child(self, fd: int) -> int:
        self._fds.append(fd)
        return len(self._fds) - 1

    def _launch(self, process: multiprocessing.Process) -> None:
        told, (read, write), (self.sentinel, held) = io.BytesIO(), os.pipe(), os.pipe()
        self._fds = [read, held]
        context.set_spawning_popen(self)
        try:
            reduction.dump(spawn.get_preparation_data(process.name), told)
            reduction.dump(process, told)
        finally:
            context.set_spawning_popen(None)
        self.pid = self.nursery.bear(self._fds)
        os.close(read)
        os.close(held)
        self.finalizer = util.Finalize(self, util.close_fds, (os.dup(write), self.sentinel))
        with os.fdopen(write, "wb") as pipe:
            pipe.write(told.getbuffer())


def open_one() -> None:
    """From here on processes that this one starts by multiprocessing are born in a nursery of its own."""
    _Popen.nursery = Nursery()
    context.SpawnProcess._Popen = staticmethod(_Popen)
