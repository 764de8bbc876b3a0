"""A broker and a store in one folder, started side by side."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer


def at_once(*actions: Callable[[], None]) -> None:
    """Do several things side by side; wait for all, then raise the first error if there was one."""
    with ThreadPoolExecutor(max_workers=len(actions)) as pool:
        running = [pool.submit(action) for action in actions]
    for action in running:
        action.result()


class Stack:
    """Kafka and Redis with their data under one folder; a context manager that starts and stops both."""

    def __init__(self, folder: Path) -> None:
        self.kafka = Kafka(folder / "kafka")
        self.redis = RedisServer(folder / "redis")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start both, and return when both answer; if one does not come up, neither stays.

        Raises:
            EmbeddedError: one of them does not come up.
        """
        try:
            at_once(self.kafka.start, self.redis.start)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop both; their data stay."""
        at_once(self.kafka.stop, self.redis.stop)
