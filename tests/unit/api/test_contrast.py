"""What one comparison hides of another is said only where it has compared and settled all of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.statuses import NAME, counts, divergence, status
from twinstream.api.state.contrast import EXAMPLES, ComparisonFacts, one_sided
from twinstream.status.common import Sides
from twinstream.status.comparison import DivergenceReport, PartitionProgress, Position
from twinstream.status.trials import OneSided

TRIAL = f"{NAME}~trial"


def found(identifier: str, reference: int | None, candidate: int | None, **more: Any) -> DivergenceReport:
    """A divergence of partition 0, by the offsets of its events."""
    places = [
        None if offset is None else Position(topic="t", partition=0, offset=offset)
        for offset in (reference, candidate)
    ]
    positions = Sides[Position | None](reference=places[0], candidate=places[1])
    return divergence(identifier, **{"provisional": False, "positions": positions, **more})


def told(
    name: str, *reports: DivergenceReport, begin: int | None = 0, settled: int = 100, **more: Any
) -> ComparisonFacts:
    """A comparison that has settled `begin` to `settled` of both sides, and keeps all that it found."""
    parts = [
        PartitionProgress(
            partition=0,
            begin=begin,
            settled=settled,
            position=200,
            end=200,
            lag=0,
            newest_event_at=None,
        )
    ]
    progress = Sides[list[PartitionProgress]](reference=parts, candidate=parts)
    total = counts(changed=len([one for one in reports if one.explained is None]))
    given = {"divergences": total, "progress": progress, **more}
    return ComparisonFacts(status(name, **given), fresh=True, found=reports)


def live(*reports: DivergenceReport, **more: Any) -> ComparisonFacts:
    return told(NAME, *reports, **more)


def trial(*reports: DivergenceReport, **more: Any) -> ComparisonFacts:
    return told(TRIAL, *reports, **more)


def numbers(found: OneSided) -> tuple[int, int, int, int]:
    return found.count, found.shared, found.open, found.unknown


def test_what_the_trial_has_settled_and_not_reported_is_hidden() -> None:
    kept = [found("a", 3, 4), found("b", 7, None, kind="missing"), found("c", 9, 9)]
    other = trial(found("z", 9, 11), found("x", 20, 20))
    hidden = one_sided(live(*kept), other)
    assert numbers(hidden) == (2, 1, 0, 0)
    assert (hidden.by_kind, hidden.why) == ({"changed": 1, "missing": 1}, [])
    assert [one.id for one in hidden.examples] == ["b", "a"] or [one.id for one in hidden.examples] == [
        "a",
        "b",
    ]
    alone = one_sided(other, live(*kept))
    assert (numbers(alone), [one.id for one in alone.examples]) == ((1, 1, 0, 0), ["x"])


def test_a_divergence_is_shared_by_any_of_its_events_on_the_same_side() -> None:
    one = live(found("a", 3, 4))
    assert numbers(one_sided(one, trial(found("z", None, 4, kind="extra")))) == (0, 1, 0, 0)
    assert numbers(one_sided(one, trial(found("z", 4, None, kind="missing")))) == (1, 0, 0, 0)


@pytest.mark.parametrize(("settled", "numbered"), [(4, (0, 0, 1, 0)), (5, (1, 0, 0, 0))])
def test_nothing_is_hidden_before_the_trial_has_settled_beyond_all_its_events(
    settled: int, numbered: tuple[int, ...]
) -> None:
    assert numbers(one_sided(live(found("a", 3, 4)), trial(settled=settled))) == numbered


@pytest.mark.parametrize("begin", [4, None])
def test_nothing_is_hidden_from_before_the_trial_began(begin: int | None) -> None:
    early = one_sided(live(found("a", 3, 4)), trial(begin=begin))
    assert numbers(early) == (0, 0, 0, 1)
    assert early.why == [f"1 lie before {TRIAL} began, or where that is not known"]


def test_what_may_still_be_withdrawn_is_open() -> None:
    assert numbers(one_sided(live(found("a", 3, 4, provisional=True)), trial())) == (0, 0, 1, 0)


def test_what_a_known_difference_explains_is_hidden_by_that_rule() -> None:
    kept = live(found("a", 3, 4), found("b", 5, 6, explained="OLD-1"))
    hidden = one_sided(kept, trial(found("z", 3, 4, explained="PRICE-17")))
    assert numbers(hidden) == (1, 0, 0, 0)
    assert [(one.id, one.rule) for one in hidden.examples] == [("a", "PRICE-17")]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"hole_count": 2}, f"{TRIAL} has not compared everything (2 holes in its status)"),
        ({"divergences": counts(changed=3)}, f"{TRIAL} has found 3 more than is kept here"),
        ({"waiting_for": "no safe start"}, f"{TRIAL} waits: no safe start"),
    ],
)
def test_nothing_is_hidden_by_a_trial_that_does_not_know_all(more: dict[str, Any], why: str) -> None:
    doubted = one_sided(live(found("a", 3, 4)), trial(**more))
    assert (numbers(doubted), doubted.why) == ((0, 0, 0, 1), [why])


def test_nothing_is_hidden_of_a_comparison_whose_topics_may_be_others() -> None:
    kept = found("a", 3, 4), found("b", 5, 6), found("c", 150, 150), found("d", 2, 2)
    doubted = one_sided(live(*kept, hole_count=2), trial(found("z", 5, 6), begin=3))
    assert (numbers(doubted), doubted.examples) == ((0, 1, 1, 2), [])
    assert doubted.why == [
        f"1 lie before {TRIAL} began, or where that is not known",
        f"{NAME} has holes: its topic may be another one",
    ]


def test_nothing_is_hidden_by_a_trial_that_is_not_heard() -> None:
    doubted = one_sided(
        live(found("a", 3, 4), found("b", 5, 6)), trial(found("z", 5, 6))._replace(fresh=False)
    )
    assert (numbers(doubted), doubted.why) == ((0, 1, 0, 1), [f"{TRIAL} is not heard now"])


def test_what_the_comparison_only_counts_is_unknown() -> None:
    flood = one_sided(live(found("a", 3, 4), divergences=counts(changed=9)), trial())
    assert numbers(flood) == (1, 0, 0, 8)
    assert flood.why == [f"8 of {NAME} are counted, and not kept here"]


def test_the_examples_have_one_of_each_kind() -> None:
    kept = [found(f"c{number}", number, number) for number in range(9)]
    kept.append(found("m", 50, None, kind="missing"))
    examples = one_sided(live(*kept), trial()).examples
    assert len(examples) == EXAMPLES
    assert {one.kind for one in examples} == {"changed", "missing"}


def test_a_partition_that_the_trial_has_not_read_is_unknown() -> None:
    place = Position(topic="t", partition=7, offset=3)
    elsewhere = found("a", 3, 4, positions=Sides[Position | None](reference=place, candidate=None))
    assert numbers(one_sided(live(elsewhere), trial())) == (0, 0, 0, 1)
