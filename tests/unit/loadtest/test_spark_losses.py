"""Which events the load test of detection loses, and what it makes of the moments at which they are found."""

import json

import pytest

from loadtest.ad_events import AdEvents
from loadtest.schedule import Schedule
from loadtest.spark.detection import Calm, Watch
from loadtest.spark.losses import Batch, Finding, chosen, row, summary
from loadtest.spark.parts import CLOCKS, Asked

EVENTS = AdEvents(1, 1_700_000_000_000, Schedule(100))
LOSSY = [Batch(at, {0: 10 * at, 1: 10 * at}) for at in range(1, 9)]
OTHER = [Batch(batch.at + 0.5, batch.consumed) for batch in LOSSY]


def test_the_lost_are_views_of_the_stretch_in_their_order_and_the_seed_decides_which() -> None:
    lost = chosen(EVENTS, 1000, 4000, 20, seed=7)
    made = [json.loads(value) for _, value in EVENTS.between(1000, 4000)]
    views = [(value["ad_id"], value["event_time"]) for value in made if value["event_type"] == "view"]
    assert [view for view in views if view in set(lost)] == lost
    assert len(set(lost)) == 20
    assert chosen(EVENTS, 1000, 4000, 20, seed=7) == lost
    assert chosen(EVENTS, 1000, 4000, 20, seed=8) != lost


def test_time_counts_from_the_batch_that_lost_the_event() -> None:
    found = row((1, 29), Finding(5.2, "missing", "DIVERGED"), LOSSY, OTHER)
    assert found == {
        "found": "missing",
        "verdict": "DIVERGED",
        "seconds": 2.2,
        "batches": 2,
        "partner_after": 0.5,
    }
    assert row((1, 30), Finding(5.2, "missing", "DIVERGED"), LOSSY, OTHER)["seconds"] == 1.2


def test_an_event_that_nobody_found_counts_as_lost_only() -> None:
    rows = [
        row((0, place), Finding(place / 10 + 1.5, "suspicion", "INCONCLUSIVE"), LOSSY, OTHER)
        for place in (10, 20, 30)
    ]
    told = summary([*rows, row((0, 40), None, LOSSY, OTHER)])
    assert (told["lost"], told["found"], told["within_two_batches"]) == (4, {"suspicion": 3}, 3)
    assert told["seconds"] == {"median": 0.5, "p90": 0.5, "most": 0.5}


class Told(Asked):
    """A service that tells of some divergences and overdue events, the same on every clock."""

    def __init__(self, divergences: list[tuple[str, int]], overdue: list[tuple[str, int]]) -> None:
        self._missing = [{"reference": value(*view), "kind": "missing"} for view in divergences]
        self._overdue = [{"value": value(*view)} for view in overdue]

    def statuses(self):
        return {clock: {"verdict": "DIVERGED"} for clock in CLOCKS}

    def divergences(self, clock):
        return self._missing if clock in CLOCKS else []

    def overdue(self, clock):
        return self._overdue if clock in CLOCKS else []


def value(ad: str, at: int) -> dict[str, object]:
    return {"ad_id": ad, "event_time": at}


def test_a_watch_knows_what_was_lost_from_other_alarms() -> None:
    watch = Watch(Told([("ad-1", 1)], [("ad-2", 2), ("ad-3", 3)]), [("ad-1", 1), ("ad-3", 3)])
    assert not watch.complete
    watch.look()
    assert watch.complete
    assert {view: found.kind for view, found in watch.found("input").items()} == {
        ("ad-1", 1): "missing",
        ("ad-2", 2): "suspicion",
        ("ad-3", 3): "suspicion",
    }
    assert watch.others("input") == {"suspicion": 1}


def status(**other):
    well = {"verdict": "EQUIVALENT", "suspicions": 0, "hole_count": 0, "divergences": {"total": 0}}
    return {**well, "health": {"status": "ok", "reasons": []}, **other}


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"suspicions": 2}, "suspicions"),
        ({"hole_count": 1}, "holes"),
        ({"divergences": {"total": 1}}, "divergences"),
        ({"health": {"status": "degraded", "reasons": ["stalled"]}}, "unhealthy"),
    ],
)
def test_one_look_that_is_not_well_stays_in_the_report(other, what) -> None:
    calm = Calm()
    for each in ({}, other, {}):
        calm.note({"input": status(**each)})
    names = ("divergences", "suspicions", "holes", "unhealthy")
    assert [name for name in names if calm.report("input")[name]] == [what]
