"""What drills have left that did not come to clean up: named, and removed.

A drill that may still be held is left alone: one runs as long as its note in Redis is there, which ends by
itself at the latest when the time is over that the drill was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from twinstream.adapters.kafka.drill import DrillTopics
from twinstream.adapters.redis.drill import DrillKeys
from twinstream.settings import Settings
from twinstream.spec.drills import Names


@dataclass(frozen=True)
class Leftover:
    """What a drill has left that did not come to clean up; `runs` where it may still be held."""

    comparison: str
    topics: Sequence[str]
    runs: bool


def leftovers(own: Settings) -> list[Leftover]:
    """All drills of which something is there. Raises SourceError and StoreError."""
    topics: dict[str, list[str]] = {}
    for name in DrillTopics(own.brokers, own.kafka).found():
        if (names := Names.of_topic(name)) is not None:
            topics.setdefault(names.comparison, []).append(name)
    with closing(DrillKeys(own.redis)) as keys:
        for comparison in keys.found():
            topics.setdefault(comparison, [])
        return [Leftover(name, found, keys.runs(name)) for name, found in sorted(topics.items())]


def sweep(own: Settings, left: Sequence[Leftover]) -> list[str]:
    """Remove what drills have left that do not run; what could not be removed, with the reason."""
    topics = DrillTopics(own.brokers, own.kafka)
    problems = []
    with closing(DrillKeys(own.redis)) as keys:
        for one in left:
            group = f"twinstream.{one.comparison}"
            groups = [
                name for name in topics.groups(group) if name in {group} or name.startswith(f"{group}.")
            ]
            problems += topics.remove(one.topics, groups)
            keys.remove(one.comparison)
    return problems
