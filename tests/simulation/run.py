"""Runs of the simulation by seed, also with a log."""

from __future__ import annotations

import traceback
from contextlib import ExitStack
from dataclasses import dataclass
from unittest.mock import patch

from tests.simulation.plant import NO_BUG, Plant
from tests.simulation.world import World
from twinstream.core.arrivals import whole_runs


@dataclass(frozen=True)
class Failure:
    """A seed whose run broke something that must hold."""

    seed: int
    what: str

    def __str__(self) -> str:
        return f"{self.what}\nreplay: python -m tests.simulation {self.seed} --log"


def simulate(seed: int, plant: Plant = NO_BUG) -> Failure | None:
    """One run: what it broke, if anything."""
    with ExitStack() as patches:
        for patched in plant.patched:
            patches.enter_context(patched)
        return _run(World(seed, plant=plant))


def logged(seed: int) -> tuple[list[str], Failure | None]:
    """One run with a line for each decision."""
    world = World(seed, log=True)
    failure = _run(world)
    return world.scheduler.log or [], failure


LEAST = 1
"""The runs here are so short that hardly one would wait ahead of the index else."""


def _run(world: World) -> Failure | None:
    try:
        with patch.multiple(whole_runs, LEAST=LEAST, LEAST_IN_THE_MEAN=LEAST):
            world.run()
    except AssertionError as violation:
        return Failure(world.scheduler.seed, str(violation))
    except Exception:  # noqa: BLE001 - whatever falls in the product is found
        return Failure(world.scheduler.seed, traceback.format_exc())
    return None
