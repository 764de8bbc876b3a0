"""Child processes: they end with their parent, and leave Ctrl-C to it.

A terminal sends Ctrl-C to all processes of its group, and the parent decides what it means. A child inherits
the blocked signal, so it never gets it, also not in the second in which it still imports.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess
from typing import Any

_PR_SET_PDEATHSIG = 1

spawn = multiprocessing.get_context("spawn")


def start_child(body: Callable[..., object], args: tuple[Any, ...], name: str | None = None) -> SpawnProcess:
    """Start a process that runs `body`."""
    child = spawn.Process(target=body, args=args, name=name)
    resource_tracker.ensure_running()  # Where it must be started first, that unblocks the signal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        child.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child


def die_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """Make the kernel end this process by a signal when its parent is gone, however that ended.

    The parent may have ended before this call: a process takes time to start.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:
        os.kill(os.getpid(), by)
