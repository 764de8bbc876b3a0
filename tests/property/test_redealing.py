"""However often the number of shards changes, the counts go on as if it had not."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from tests.support.team import Team
from tests.support.workers import SPEC
from twinstream.core.events import Side
from twinstream.core.stretches import united
from twinstream.status import ComparisonStatus

Way = Literal["partition", "key"]
ORDERS = ["{per_key: [k]}", "unordered", "{by_key: [k], inner: unordered}"]


def writes(team: Team, events: list[tuple[int, int, int]]) -> None:
    """Events on the reference, the candidate, or (most) on both; each in the partition of its key."""
    for key, number, where in events:
        for side in Side:
            if where in (side, 2):
                team.write(side, key % 4, (key, number))


def reports(team: Team) -> list[Any]:
    found: dict[str, Any] = {}
    for publisher in team.publishers.values():
        for publication in publisher.published:
            if hasattr(publication, "kind") and not publication.provisional:
                found[publication.id] = publication.kind
    return sorted(found.items())


def told(status: ComparisonStatus) -> dict[str, Any]:
    """What must not depend on how the work is and was divided."""
    return {
        "accounts": status.accounts,
        "matched": status.matched,
        "by kind": status.coverage.matched_by_kind,
        "in all stretches": united([status.coverage.matched_since.model_dump()]).since(0),
        "divergences": status.divergences,
        "found": status.closed_divergences,
        "diverged": status.verdict == "DIVERGED",
        "holes": [hole.reason for hole in status.holes],
        "verified": status.verified_up_to,
    }


DAYS = """{barrier: day, inner: {per_key: [k]}, copies: per_partition}
kinds: {day: {where: {k: -1}}, ride: {}}"""


def once(status: ComparisonStatus) -> dict[str, Any]:
    """What is told where a day has a copy in each partition, and counts once in each shard."""
    by_kind = status.coverage.matched_by_kind
    accounts = [account.model_dump() for account in (status.accounts.reference, status.accounts.candidate)]
    for account in accounts:
        account["matched"] -= by_kind["day"]
        account["ignored"] += by_kind["day"]
    rides = {"accounts": accounts, "matched": by_kind["ride"], "by kind": None, "in all stretches": None}
    return {**told(status), **rides}


event = st.tuples(st.integers(0, 7), st.integers(0, 2), st.sampled_from([2, 2, 2, 2, 2, 2, 0, 1]))
stage = st.tuples(st.lists(event, max_size=40), st.integers(1, 3), st.lists(st.integers(0, 3), max_size=3))


@given(
    st.sampled_from(ORDERS),
    st.sampled_from(["partition", "key", "auto"]),
    st.lists(stage, min_size=1, max_size=3),
)
def test_a_comparison_goes_on_with_any_number_of_shards(
    order: str, by: Any, stages: list[tuple[list[tuple[int, int, int]], int, list[int]]]
) -> None:
    spec = SPEC.replace("{per_key: [k]}", order)
    one, many = Team(shards=1, spec=spec), Team(by=by, spec=spec)
    for number, (events, shards, steps) in enumerate(stages):
        many.shards = shards
        last = number == len(stages) - 1
        for team in (one, many):
            team.publishers.clear()
            writes(team, events)
            workers = team.started()
            for place in steps:
                for _ in range(place):
                    workers[place % len(workers)].step()
            if last:
                view = team.view(workers)
                if team is one:
                    expected = told(view.status), reports(team)
                else:
                    assert (told(view.status), reports(team)) == expected
            else:
                waits = any(worker.intake.taken or worker.comparison.is_asked for worker in workers)
                if not steps or waits:
                    team.view(workers)  # what has not caught up, or asks its neighbours, is not dealt again
                for worker in workers:
                    worker.stop()


rides = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), max_size=8)
places = st.tuples(st.sampled_from(list(Side)), st.integers(0, 3))
day = st.tuples(rides, st.sets(places), st.integers(1, 4), st.lists(st.integers(1, 5), max_size=3))


@given(st.lists(day, min_size=2, max_size=4))
def test_days_with_a_copy_in_each_partition_go_on_with_any_number_of_shards(
    days: list[tuple[list[tuple[int, int]], set[tuple[Side, int]], int, list[int]]],
) -> None:
    spec = SPEC.replace("{per_key: [k]}", DAYS)
    one, many = Team(shards=1, spec=spec), Team(spec=spec)
    unwritten: dict[tuple[Side, int], list[tuple[int, int]]] = {
        (side, partition): [] for side in Side for partition in range(4)
    }
    for number, (events, late, shards, steps) in enumerate(days):
        many.shards, last = shards, number == len(days) - 1
        for (_, partition), waiting in unwritten.items():
            waiting += [*(ride for ride in events if ride[0] % 4 == partition), (-1, number)]
        for place in unwritten.keys() - (set() if last else late):
            for team in (one, many):
                team.write(*place, *unwritten[place])
            unwritten[place].clear()
        said = []
        for team in (one, many):
            workers = team.started()
            for place in steps:
                for _ in range(place):
                    workers[place % len(workers)].step()
            if last:
                said.append(once(team.view(workers).status))
            for worker in workers:
                worker.stop()
    assert said[1] == said[0]
