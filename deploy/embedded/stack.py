"""A broker and a store in one folder, started side by side."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer


def at_once(*actions: Callable[[], object], undo: Callable[[], None] | None = None) -> None:
    """Do several things side by side; return when all are done.

    Args:
        actions: what to do, each in a thread of its own.
        undo: called when one of them fails or this thread is interrupted, before and after the others end: at
            first to cut short a start that is under way, then to clear up what came of it all the same.
    """
    pool = ThreadPoolExecutor(max_workers=len(actions))
    try:
        for action in [pool.submit(action) for action in actions]:
            action.result()
    except BaseException:
        if undo is not None:
            undo()
            pool.shutdown()
            undo()
        raise
    finally:
        pool.shutdown()


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
        at_once(self.kafka.start, self.redis.start, undo=self.stop)

    def stop(self) -> None:
        """Stop both; their data stay."""
        at_once(self.kafka.stop, self.redis.stop)
