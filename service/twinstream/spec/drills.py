"""Names the topics, groups and records of a drill.

Everything that a drill makes can be told by its name: topics begin with `TOPICS`, the comparison of the
copies ends with `INFIX` and 8 hexadecimal digits, and each planted record has a header.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from twinstream.spec.decode.formats.envelope import envelope
from twinstream.spec.decode.headers import Headers
from twinstream.spec.file.model import Spec

HEADER = "twinstream-drill"
"""Names the drill in each planted record, so that it can be told from a real one wherever it turns up."""
TOPICS = "twinstream.drill."
INFIX = "-drill-"
_OF_A_DRILL = re.compile(f".*{INFIX}[0-9a-f]{{8}}")
_SIDES = ("reference", "candidate")
_LONGEST_NAME = 63


def is_of_a_drill(comparison: str) -> bool:
    """Whether a comparison has a name that only drills give, so that a sweep removes its state.

    >>> is_of_a_drill("ads-drill-5f0c2e1a"), is_of_a_drill("power-drill-sales")
    (True, False)
    """
    return _OF_A_DRILL.fullmatch(comparison) is not None


class Names(NamedTuple):
    """The names of one drill of a comparison.

    >>> names = Names("ads", "5f0c2e1a")
    >>> names.comparison, names.topics[1]
    ('ads-drill-5f0c2e1a', 'twinstream.drill.ads.5f0c2e1a.candidate')
    >>> Names.of_topic(names.topics[1]) == names, Names.of_topic("twinstream.drill.ads.eu.reference")
    (True, None)
    """

    live: str
    identifier: str

    @classmethod
    def of_topic(cls, topic: str) -> Names | None:
        """The drill that a topic belongs to; None if no drill gives such a name."""
        parts = topic.removeprefix(TOPICS).split(".")
        if not topic.startswith(TOPICS) or len(parts) != 3 or parts[2] not in _SIDES:
            return None
        names = cls(parts[0], parts[1])
        return names if is_of_a_drill(names.comparison) else None

    @property
    def comparison(self) -> str:
        """The name of the comparison of the copies, which is its label in metrics and alerts."""
        kept = _LONGEST_NAME - len(INFIX) - len(self.identifier)
        return f"{self.live[:kept].rstrip('-')}{INFIX}{self.identifier}"

    @property
    def topics(self) -> tuple[str, str]:
        """The topics of both copies, by side."""
        reference, candidate = (f"{TOPICS}{self.live}.{self.identifier}.{side}" for side in _SIDES)
        return reference, candidate

    def groups(self, shards: int) -> list[str]:
        """The consumer groups of the comparison of the copies."""
        group = f"twinstream.{self.comparison}"
        return [group] if shards == 1 else [f"{group}.{number}-of-{shards}" for number in range(shards)]


class DrillRecord(NamedTuple):
    """A record of a topic, with its position there."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    headers: Headers
    value: bytes | None

    def held(self, spec: Spec) -> bytes | None:
        """The record as the codec of a comparison takes it."""
        if not spec.whole:
            return self.value
        return envelope(self.value, self.key, self.headers, self.timestamp_ms, self.partition)
