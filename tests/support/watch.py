"""Asking gates all the time while something breaks, and judging afterwards every answer that was seen."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from tests.support.service import ServiceProcess

_PAUSE_SECONDS = 0.05


class Seen(NamedTuple):
    """One answer of a gate; `unreachable` where the service gave none."""

    service: int
    answer: str
    matched: int
    reason: str


class Watch:
    """Asks the gates of some services all the time, on a thread of its own."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._services: list[ServiceProcess] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def add(self, service: ServiceProcess) -> None:
        """Ask this one, too. Its address may change when it is started again."""
        self._services.append(service)

    def answers(self, service: int = 0) -> list[str]:
        """What one service said, without repetitions."""
        return [answer for answer, _ in groupby(each.answer for each in self.seen if each.service == service)]

    def newest(self, service: ServiceProcess) -> str:
        """The last answer of a service; empty before the first."""
        number = self._services.index(service)
        return next((each.answer for each in reversed(self.seen) if each.service == number), "")

    def _run(self) -> None:
        while not self._over.wait(_PAUSE_SECONDS):
            for number, service in enumerate(self._services):
                self.seen.append(_ask(number, service))

    @contextlib.contextmanager
    def asking(self) -> Iterator[Watch]:
        """Ask from here on, until the end of the block."""
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()


def _ask(number: int, service: ServiceProcess) -> Seen:
    answer = service.asked("/gate")
    if not answer:
        return Seen(number, "unreachable", 0, "")
    return Seen(number, answer["answer"], answer["matched"], answer["reason"])
