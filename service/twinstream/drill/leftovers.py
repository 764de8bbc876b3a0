"""Finds and removes the leftovers of drills that did not clean up.

A drill that may still be running is left alone: it runs as long as its note in Redis exists, which expires at
the latest when the drill's time is over.
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
    """The leftovers of one drill that did not clean up; `runs` if it may still be running."""

    comparison: str
    topics: Sequence[str]
    runs: bool


def leftovers(own: Settings) -> list[Leftover]:
    """All drills that have left something. Raises SourceError and StoreError."""
    topics: dict[str, list[str]] = {}
    for name in DrillTopics(own.brokers, own.kafka).found():
        if (names := Names.of_topic(name)) is not None:
            topics.setdefault(names.comparison, []).append(name)
    with closing(DrillKeys(own.redis)) as keys:
        for comparison in keys.found():
            topics.setdefault(comparison, [])
        return [Leftover(name, found, keys.runs(name)) for name, found in sorted(topics.items())]


def sweep(own: Settings, left: Sequence[Leftover]) -> list[str]:
    """Remove the leftovers of drills that no longer run; returns those that remain, with reasons."""
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
