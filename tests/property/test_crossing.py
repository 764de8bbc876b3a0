"""Shards by partition, and a candidate that does not keep the partitions of the reference.

One matcher pairs an event wherever it stands. Shards by partition cannot; so whatever the candidate's
partitions are, they may find nothing that one matcher would not find, and pass nothing that it would not.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import orjson
from hypothesis import given, note
from hypothesis import strategies as st

from tests.support.team import Team
from tests.support.workers import SPEC
from twinstream.core.events import Side

KINDS = "kinds: {a: {where: {t: a}}, b: {where: {t: b}}}\n"
ABSENT = "seconds: 0, may_be_absent: [a, b]"
ORDERS = [
    "{per_key: [k]}",
    "unordered",
    "{by_key: [k], inner: {barrier: b, inner: unordered}}",
    "{parallel: {p: {kinds: [a], order: {per_key: [k]}}, q: {kinds: [b], order: unordered}}}",
    "{dependent: [{pair: [a, b], same: [k]}]}",
    "{barrier: b, inner: {per_key: [k]}, copies: per_partition}",
    "{barrier: b, inner: unordered, copies: per_partition}",
]
"""Every form of order that can be divided by partition."""
PARTITIONS, LATER_MS = 4, 300_000
CURE = "begin anew with `--shard-by key`"


class Written(NamedTuple):
    """One event: its kind, key and number, and the partition in which the candidate has it; None: nowhere."""

    kind: str
    key: int
    number: int
    partition: int | None
    everywhere: bool = False
    """Whether each partition of both sides has a copy of it."""

    @property
    def home(self) -> int:
        """The partition in which the reference has it."""
        return self.key % PARTITIONS

    @property
    def record(self) -> bytes:
        return orjson.dumps({"t": self.kind, "k": self.key, "n": self.number})


def run(order: str, events: list[Written], shards: int, moved: list[int]) -> Any:
    """The end of a comparison by so many matchers; time has gone on until all that waits is overdue.

    `moved` are rounds in which the candidate is read before the reference.
    """
    spec = SPEC.replace("{per_key: [k]}\n", f"{order}\n{KINDS}").replace("seconds: 0", ABSENT)
    team = Team(shards=shards, by="partition" if shards > 1 else "auto", spec=spec)
    workers = team.started()
    for number, event in enumerate(events):
        if event.everywhere:
            for partition, side in product(range(PARTITIONS), Side):
                team.source.append(side, partition, event.record, number)
            continue
        team.source.append(Side.LEFT, event.home, event.record, number)
        if event.partition is not None:
            team.source.append(Side.RIGHT, event.partition, event.record, number)
        if number in moved:
            team.view(workers, steps=2)
    for later in (LATER_MS, LATER_MS + 10):
        for partition in range(PARTITIONS):
            record = orjson.dumps({"t": "a", "k": 100 + partition, "n": later})
            for side in Side:
                team.source.append(side, partition, record, later)
        team.view(workers)
    return team.view(workers)


@st.composite
def written(draw: st.DrawFn, *, lost: bool) -> list[Written]:
    """What both sides put out, some of it in other partitions by the candidate, and some of it lost."""
    elsewhere = st.sampled_from([None] * 6 + list(range(PARTITIONS)))
    rows = st.tuples(st.sampled_from("aab"), st.integers(0, 5), st.integers(0, 2), elsewhere)
    events = []
    for kind, key, number, other in draw(st.lists(rows, min_size=1, max_size=25)):
        home = key % PARTITIONS
        events.append(Written(kind, key, number, home if other is None else other))
    for place in draw(st.lists(st.integers(0, len(events) - 1), max_size=2)) if lost else ():
        events[place] = events[place]._replace(partition=None)
    return events


def told_barriers(order: str, events: list[Written]) -> list[Written]:
    """The events as they are where barriers have a copy in each partition."""
    if "copies" not in order:
        return events
    return [one._replace(partition=one.home, everywhere=True) if one.kind == "b" else one for one in events]


def crosses(events: list[Written], shards: int) -> bool:
    """Whether a pair is in partitions of two shards."""
    return any(one.partition is not None and (one.partition - one.home) % shards for one in events)


def differs_at_home(order: str, events: list[Written], shards: int) -> bool:
    """Whether one shard has all of a key, or of a form of a bag, and may see a difference.

    Something of it is lost, or the candidate has it in two partitions, which are read in any order.
    """
    groups: dict[Any, list[Written]] = {}
    for one in events:
        groups.setdefault(one.key, []).append(one)
        if "unordered" in order:
            groups.setdefault(one.record, []).append(one)
    return any(
        not crosses(own, shards) and (len({one.partition for one in own}) > 1 or own[0].partition is None)
        for own in groups.values()
    )


def dealt(*, lost: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An order, events of which some may be lost, a number of shards, and records that are moved."""
    moved = st.lists(st.integers(0, 24), max_size=3)
    return given(st.sampled_from(ORDERS), written(lost=lost), st.integers(2, 4), moved)


@dealt(lost=False)
def test_what_only_stands_elsewhere_is_never_a_difference_and_never_passed(
    order: str, events: list[Written], shards: int, moved: list[int]
) -> None:
    events = told_barriers(order, events)
    view = run(order, events, shards, moved)
    note(view.status.reason)
    reasons = [hole.reason for hole in view.status.holes]
    assert view.status.verdict != "DIVERGED" or differs_at_home(order, events, shards)
    if view.status.verdict == "DIVERGED":
        return
    if crosses(events, shards):
        assert (view.status.verdict, view.gate.answer) == ("INCONCLUSIVE", "undecided")
        assert any(CURE in reason for reason in reasons), reasons
    elif all(one.partition == one.home for one in events):
        assert view.status.verdict == "EQUIVALENT"


@dealt(lost=True)
def test_shards_pass_nothing_that_one_matcher_would_not(
    order: str, events: list[Written], shards: int, moved: list[int]
) -> None:
    events = told_barriers(order, events)
    whole, parts = run(order, events, 1, moved), run(order, events, shards, moved)
    note(f"{whole.status.reason} | {parts.status.reason}")
    if whole.status.verdict != "EQUIVALENT":
        assert parts.status.verdict != "EQUIVALENT"
    assert parts.status.verdict != "DIVERGED" or differs_at_home(order, events, shards)
    if not crosses(events, shards) and all(one.partition in (None, one.home) for one in events):
        assert parts.status.verdict == whole.status.verdict
