"""Many seeds, run by as many processes as there are cores.

Which seed is told does not depend on how many processes there are: of those that break something the first in
their order, whichever is found first. A process that dies is told loudly. All of them hold one end of a pipe,
the lifeline: when the other end is closed, or its holder gone, they end at once, whatever they are doing.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread

from tests.simulation.run import Failure, simulate

AHEAD = 4
"""So many seeds are handed out for each process before the first is waited for: none is ever idle."""
Run = Callable[[int], Failure | None]


class Died(Exception):  # noqa: N818 - no error of the program, a finding
    """A process fell that runs seeds, and cannot say in which."""


class Runners:
    """Processes that run seeds. Use as a context: at its end they are gone."""

    def __init__(self, processes: int | None = None) -> None:
        context = get_context("spawn")
        self.processes = processes or len(os.sched_getaffinity(0))
        theirs, self._lifeline = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(self.processes, context, _prepare, (theirs,))

    def first_failure(self, seeds: Iterable[int], run: Run = simulate) -> tuple[int, Failure | None]:
        """How many of the seeds were run, and what the first of them broke that broke anything.

        `run` is a function of a module. Raises Died.
        """
        left, done = iter(seeds), 0
        running: deque[tuple[int, Future[Failure | None]]] = deque()
        try:
            while True:
                for seed in islice(left, AHEAD * self.processes - len(running)):
                    running.append((seed, self._pool.submit(run, seed)))
                if not running:
                    return done, None
                failure = running[0][1].result()
                running.popleft()
                done += 1
                if failure is not None:
                    return done, failure
        except BrokenProcessPool:
            seeds_left = ", ".join(str(seed) for seed, _ in running)
            raise Died(f"a process fell in one of the seeds {seeds_left}: replay them one by one") from None
        finally:
            for _, future in running:
                future.cancel()

    def close(self) -> None:
        """End all processes, also in the middle of a seed."""
        self._lifeline.close()
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Runners:
        """Use as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
