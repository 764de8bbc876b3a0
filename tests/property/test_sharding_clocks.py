"""However many matchers share a comparison by key, its clocks find overdue what one matcher finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from hypothesis import example, given, note
from hypothesis import strategies as st

from tests.support.saying import control_record
from tests.support.team import Team
from tests.support.workers import SPEC
from twinstream.core.events import Side
from twinstream.spec.marks import InputPosition

SIDES = SPEC.replace("test.reference}", 'test.reference, version: "1"}').replace(
    "test.candidate}", 'test.candidate, version: "2"}'
)
INPUT = f"{SIDES}control: test.control\noverdue: {{clock: input}}\n"
TIMED = f"{SIDES}overdue: {{clock: event_time, field: t, after: 10s, idle_after: 1h}}\n"
PROVEN = TIMED.replace("after: 10s", "after: 10s, proves: true")
PARTITIONS = 4


@dataclass(frozen=True)
class Event:
    """An event of a key, from a record of the input, and where it was put out: 0, 1 or (2) both."""

    key: int
    offset: int
    where: int

    def put_out(self, team: Team) -> None:
        record = orjson.dumps({"k": self.key, "n": self.offset, "t": self.offset * 1000})
        headers = [InputPosition("in", 0, self.offset).header]
        for side in Side:
            if self.where in (side, 2):
                partition = (self.key + side) % PARTITIONS
                team.source.append(side, partition, record, self.offset * 1000, headers)


def say(team: Team, version: str, batch: int, consumed: int, written: dict[int, int]) -> None:
    """A version says what it has consumed of the input, and written."""
    topic = {"1": "test.reference", "2": "test.candidate"}[version]
    team.source.say(control_record(version, batch, {"in": {"0": consumed}}, {topic: written}))


def told(spec: str, shards: list[int], stages: list[list[Event]]) -> Any:
    """What is said of a comparison at its end; between the stages its matchers stop, and go on as so many."""
    team = Team(by="key", spec=spec)
    written: list[dict[int, int]] = [{}, {}]
    for batch, events in enumerate(stages):
        for event in events:
            event.put_out(team)
            for side in Side:
                if event.where in (side, 2):
                    partition = (event.key + side) % PARTITIONS
                    written[side][partition] = written[side].get(partition, 0) + 1
        for side, version in zip(Side, "12", strict=True):
            say(team, version, batch, sum(map(len, stages[: batch + 1])), written[side])
        team.shards = shards[batch % len(shards)]
        workers = team.started()
        team.view(workers)
        if batch < len(stages) - 1:
            for worker in workers:
                worker.stop()
    status = team.view(workers).status
    return {
        "verdict": status.verdict,
        "suspicions": status.suspicions,
        "divergences": status.divergences,
        "accounts": status.accounts,
        "holes": [hole.reason for hole in status.holes],
    }


@st.composite
def stages(draw: st.DrawFn) -> list[list[Event]]:
    rows = st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from([2, 2, 2, 2, 2, 0, 1])), min_size=1, max_size=15
    )
    found: list[list[Event]] = []
    offset = 0
    for part in draw(st.lists(rows, min_size=1, max_size=3)):
        found.append([Event(key, offset + number, where) for number, (key, where) in enumerate(part)])
        offset += len(part)
    return found


NEAR = [
    [Event(4, 0, 0), Event(0, 1, 2), Event(0, 2, 2), Event(3, 3, 2)],
    [Event(0, 11, 2), Event(1, 12, 2), Event(1, 13, 2), Event(2, 14, 2), Event(2, 15, 2), Event(3, 16, 2)],
]
"""A partition whose first time came before the number of matchers changed, and its second one after."""


@example(TIMED, NEAR, [1, 2])
@given(st.sampled_from([INPUT, TIMED, PROVEN]), stages(), st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_clocks_find_by_key_what_they_find_with_one_matcher(
    spec: str, events: list[list[Event]], shards: list[int]
) -> None:
    one, many = told(spec, [1], events), told(spec, shards, events)
    note(f"{one} | {many}")
    assert many == one
