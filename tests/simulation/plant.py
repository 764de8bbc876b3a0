"""What a planted bug is, and how a worker that has one is written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.server import Alter
from twinstream.adapters.redis.store import RedisStore
from twinstream.matcher.worker import Worker


class Altered(Worker):
    """A worker with a bug. `memory` outlives it: all workers of a run share one."""

    def __init__(self, memory: list[Any], *ports: Any, **more: Any) -> None:
        super().__init__(*ports, **more)
        self.memory = memory

    def start(self) -> bool:
        started = super().start()
        if started:
            self.after_start()
        return started

    def after_start(self) -> None:
        """It owns the comparison, and has loaded what there was."""


@dataclass(frozen=True)
class Plant:
    """A planted bug, and what the simulation says of it (`told`).

    It is in the workers, in the stores, in the scripts of these, or in what is patched meanwhile. `storm` is
    what goes wrong more often than is drawn.
    """

    told: str = ""
    worker: type[Altered] | None = None
    store: type[RedisStore] = RedisStore
    alter: Alter = bytes
    storm: Mapping[str, float] = field(default_factory=dict)
    patched: tuple[AbstractContextManager[object], ...] = ()


NO_BUG = Plant()
