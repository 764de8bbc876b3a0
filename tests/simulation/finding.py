"""Which seed finds each planted bug. A search takes minutes, and one seed takes none."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from tests.simulation.many import Runners
from tests.simulation.planted import ALL, find
from tests.simulation.run import Failure

TABLE = Path(__file__).with_name("found_by.json")
FOUND_WITHIN = 1_000
RECORD = "python -m tests.simulation --record"


def recorded() -> dict[str, int]:
    """The seed of each planted bug, by its name."""
    seeds: dict[str, int] = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    return seeds


def search(runners: Runners, name: str) -> Failure | None:
    """What the first seed says that finds a planted bug."""
    return runners.first_failure(range(FOUND_WITHIN), partial(find, name))


def record(runners: Runners) -> None:
    """Write the table anew: a seed that still finds its bug stays, and others are searched for."""
    seeds = recorded()
    for name in ALL:
        if name in seeds and find(name, seeds[name]):
            continue
        seeds.pop(name, None)
        failure = search(runners, name)
        if failure is not None:
            seeds[name] = failure.seed
        print(f"{name}: {seeds.get(name, 'found by no seed')}", flush=True)
        known = {name: seeds[name] for name in ALL if name in seeds}
        TABLE.write_text(json.dumps(known, indent=2) + "\n")
