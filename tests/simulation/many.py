"""Many seeds, run by as many processes as there are cores.

Which seed is told does not depend on how many processes there are: of those that break something the first in
their order, whichever is found first. A process that dies is told loudly. All of them hold one end of a pipe,
the lifeline: when the other end is closed, or its holder gone, they end at once, whatever they are doing.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread

from tests.simulation.run import Failure, simulate

Run = Callable[[int], Failure | None]


class Died(Exception):  # noqa: N818 - no error of the program, a finding
    """A process fell that runs seeds, and cannot say in which."""


class Runners:
    """Processes that run seeds. Use as a context: at its end they are gone."""

    def __init__(self, processes: int | None = None) -> None:
        context = get_context("spawn")
        theirs, self._lifeline = context.Pipe(duplex=False)
        processes = processes or len(os.sched_getaffinity(0))
        self._pool = ProcessPoolExecutor(processes, context, _prepare, (theirs,))

    def first_failure(self, seeds: range, run: Run = simulate) -> Failure | None:
        """What the first of the seeds broke that broke anything; those behind it need not have been run.

        `run` is a function of a module. Raises Died.
        """
        told = 0
        try:
            for failure in self._pool.map(run, seeds):
                told += 1
                if failure is not None:
                    return failure
        except BrokenProcessPool:
            raise Died(f"a process fell in one of the seeds {seeds[told:]}: replay them one by one") from None
        return None

    def __enter__(self) -> Runners:
        """Use as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, also in the middle of a seed."""
        self._lifeline.close()
        self._pool.shutdown(cancel_futures=True)


def _prepare(lifeline: Connection) -> None:
    """What each process does before its first seed. Ctrl-C is its parent's matter."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    gc.collect()
    gc.freeze()  # What is imported lives as long as the process, and need not be looked through again.


def _end_with(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os._exit(1)
