"""A fuse: ends a piece of work that takes too long, from within the same thread.

What is on trial runs on the thread of the comparison beside which it is tried, and its rules may hold code of
the user. So it gets a bounded time, after which it is interrupted wherever it is. That leaves its objects in
any state: who lights a fuse throws them away when it has blown. Nothing else may be worked on meanwhile.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType


class Blown(BaseException):
    """The time is over. Work that handles all its exceptions does not handle this one."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it took longer than {seconds:g} s")


Fuse = Callable[[float], AbstractContextManager[None]]
"""Lights a fuse of so many seconds for the work within; Blown is raised there."""


@contextmanager
def endless(_seconds: float) -> Iterator[None]:
    """No fuse: whoever drives the work by hand has all the time."""
    yield


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """A fuse by the alarm clock of the process: for its main thread only, and one at a time."""

    def blow(_number: int, _frame: FrameType | None) -> None:
        raise Blown(seconds)

    before = signal.signal(signal.SIGALRM, blow)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
