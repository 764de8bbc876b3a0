"""However often the number of shards changes, the counts go on as if it had not."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workers import SPEC
from tests.unit.test_shards import Team
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


event = st.tuples(st.integers(0, 7), st.integers(0, 2), st.sampled_from([2, 2, 2, 2, 2, 2, 0, 1]))
stage = st.tuples(st.lists(event, max_size=40), st.integers(1, 3), st.lists(st.integers(0, 3), max_size=3))


@settings(deadline=None)
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
