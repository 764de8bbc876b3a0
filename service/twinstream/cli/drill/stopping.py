"""Handles Ctrl-C and SIGTERM for a command that has to clean up."""

from __future__ import annotations

import signal

from twinstream.errors import TwinstreamError


class Stopping:
    """Catches Ctrl-C and SIGTERM while the block runs; raises KeyboardInterrupt only where it does no harm.

    Inside a call to Kafka's client it might be lost, and during cleaning up it would leave things behind.
    """

    def __enter__(self) -> Stopping:
        self._asked = False
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._former = {number: signal.signal(number, self._ask) for number in numbers}
        return self

    def _ask(self, _number: int, _frame: object) -> None:
        self._asked = True

    def check(self) -> None:
        """Raise KeyboardInterrupt if the drill is to stop."""
        if self._asked:
            raise KeyboardInterrupt

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        if kind is None or issubclass(kind, TwinstreamError):
            self.check()
