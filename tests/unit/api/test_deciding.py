"""What would make an undecided gate decided: one sentence for each thing that has to happen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.statuses import NAME, START, Clocks, coverage, diverged, partition, status, unmatched
from twinstream.api.gate.freshness import awaited, heard, lost
from twinstream.api.gate.gate_hints import GateFacts, to_decide
from twinstream.api.gate.samples import Sample
from twinstream.status.common import Sides
from twinstream.status.comparison import (
    ComparisonStatus,
    Coverage,
    Health,
    Hole,
    UnmatchedEvent,
    UnmatchedSample,
)

FRESH = heard(START, 0.5, 5.0)


def steps(it: ComparisonStatus, *waiting: UnmatchedEvent, **more: Any) -> list[str]:
    known = GateFacts(
        it, more.get("freshness", FRESH), waiting, more.get("samples", []), it.verified_age_seconds
    )
    return to_decide(known)


def samples(*matched: int) -> list[Sample]:
    """One a second, the last at the start."""
    return [
        Sample(
            at=START - timedelta(seconds=len(matched) - 1 - number),
            events_per_second=Sides[float | None](reference=1.0, candidate=1.0),
            unmatched=Sides[int](reference=0, candidate=0),
            lag=Sides[int | None](reference=0, candidate=0),
            matched=value,
        )
        for number, value in enumerate(matched)
    ]


def pending(**changes: Any) -> ComparisonStatus:
    lack = coverage(
        210, ("210 of 1,000 required pairs", "0 of 300 s of Kafka time", "no `end_of_day` has matched")
    )
    kinds = {"matched_by_kind": {"ride": 210, "end_of_day": 0}, "kinds_required": ["ride", "end_of_day"]}
    lack = lack.model_copy(update={**kinds, "seconds": 0.0})
    return status(**{"verdict": "PENDING", "coverage": lack, **changes})


def test_missing_pairs_are_told_with_the_time_that_they_take_at_the_pace_of_late() -> None:
    assert steps(pending(), samples=samples(10, 110, 210))[0] == (
        "790 more pairs required (210 of 1,000): about 8 s at 100 per second."
    )


def test_nothing_is_promised_where_nothing_matches() -> None:
    assert steps(pending(), samples=samples(210, 210))[0].endswith(
        "; no match recently: both sides must write."
    )


def test_a_pace_below_one_a_second_is_not_called_none_a_second() -> None:
    told = steps(pending(), samples=samples(*range(150, 200), *[200] * 61, 210))[0]
    assert told == "790 more pairs required (210 of 1,000): about 1 h 19 min."


def test_missing_time_and_kinds_are_told_with_what_can_be_done() -> None:
    assert steps(pending())[1:] == [
        "5 min more of Kafka time required (0 s of 5 min), while both sides keep writing.",
        (
            "No event of kind `end_of_day` has matched yet; one is required. If the input may lack it, name "
            "it in `evidence.may_be_absent`."
        ),
    ]


def test_what_lacks_besides_is_said_as_it_came() -> None:
    lack: Coverage = coverage(5000, ("batch 7 is told differently by both versions",))
    told = steps(status(verdict="PENDING", coverage=lack))
    assert told == ["Batch 7 is told differently by both versions."]


def test_one_that_has_not_begun_is_told_why_and_where_a_beginning_is_declared() -> None:
    told = steps(pending(waiting_for="no safe start: the topics begin an hour apart"))
    assert told == [
        (
            "The comparison must start: no safe start: the topics begin an hour apart. Set `start` in the "
            "comparison file or in a reset."
        )
    ]


AWAY = Health(status="degraded", reasons=["Kafka is away"], unreachable=["kafka"])
BESIDE = Health(status="degraded", reasons=["another owns it"], standby=True)


@pytest.mark.parametrize(
    ("health", "reason", "told"),
    [
        (AWAY, "Kafka is away", "Kafka must answer. "),
        (BESIDE, "another owns it", "The process that owns the comparison must be heard, or stop: another"),
        (
            Health(status="ok", reasons=[]),
            "topic t is missing",
            "The comparison must start: topic t is missing.",
        ),
    ],
)
def test_a_reset_is_named_only_where_another_start_helps(health: Health, reason: str, told: str) -> None:
    (step,) = steps(pending(health=health, waiting_for=reason))
    assert step.startswith(told)
    assert "reset" not in step


def test_a_hole_never_heals_and_the_command_that_begins_anew_is_named() -> None:
    hole = Hole(reason="lost", seen_at=START)
    told = steps(status(verdict="INCONCLUSIVE", holes=[hole, hole], hole_count=2))
    assert told == [
        (
            "2 parts of the input were not checked, and cannot be checked later. Fix the cause, then reset: "
            f"`twinstream reset {NAME} --reason …`; with a later `--start` where reading from `start` on "
            "would meet it again."
        )
    ]


def test_overdue_events_are_told_with_their_sides_and_the_oldest() -> None:
    events = [
        unmatched(8, seconds=-70, overdue=True),
        unmatched(9, seconds=-60, overdue=True),
        unmatched(4, side="candidate", seconds=-65, overdue=True),
        unmatched(10, seconds=-80),
    ]
    told = steps(status(verdict="INCONCLUSIVE", suspicions=3), *events)
    assert told[0].startswith(
        "3 events are overdue (2 of the reference and 1 of the candidate; the oldest is ads.reference 0:8, "
        "of 2026-03-01 11:58:50 UTC)."
    )
    more = steps(status(verdict="INCONCLUSIVE", suspicions=900), *events)
    assert "(at least 2 of the reference and at least 1 of the candidate;" in more[0]


@pytest.mark.parametrize(
    ("awaited", "told"),
    [
        ("checkpoint", "once a checkpoint has it"),
        ("classification", "by 16 equal events, or for"),
        ("batches", "by control records of both versions, or by all records until then"),
    ],
)
def test_a_difference_that_does_not_count_yet_is_told_with_what_it_waits_for(awaited: str, told: str) -> None:
    assert told in steps(status(verdict="INCONCLUSIVE", difference_awaits=[awaited]))[0]


def test_a_side_that_stands_still_has_to_write_again() -> None:
    health = Health(status="degraded", reasons=["the candidate is stalled"], stalled=["candidate"])
    assert steps(status(health=health)) == [
        "The candidate must write again or catch up: newer events of the reference wait for it."
    ]


def test_a_service_that_is_away_has_to_answer_and_other_reasons_are_repeated() -> None:
    away = Health(status="degraded", reasons=["Kafka cannot be reached"], unreachable=["kafka"])
    assert steps(status(health=away))[0].startswith("Kafka must answer.")
    other = Health(status="degraded", reasons=["the topic is gone"])
    assert steps(status(health=other)) == ["Health must be ok. The topic is gone."]


def test_an_old_verified_prefix_is_told_with_the_event_that_holds_it_back() -> None:
    old = status(verified_through=START - timedelta(minutes=9), progress=Sides(reference=[], candidate=[]))
    assert steps(old, unmatched(8, seconds=-540), unmatched(9, seconds=-5)) == [
        (
            "The oldest unmatched event must find its partner: ads.reference 0:8, of 2026-03-01 11:51:00 "
            "UTC. The candidate has not written it yet."
        )
    ]
    assert steps(old) == ["Both topics must be read to their ends, with no unmatched event left."]


def test_unread_records_may_be_the_partner_and_may_stand_behind_an_open_transaction() -> None:
    read, unread = partition(0, 900, 0, START), partition(1, 100, 50, START)
    old = status(
        verified_through=START - timedelta(minutes=9),
        progress=Sides(reference=[read], candidate=[read, unread]),
    )
    (told,) = steps(old, unmatched(8, seconds=-540))
    assert told.endswith(
        "The candidate has not written it yet, or it is among its unread records (50, from ads.candidate "
        "1:100 on). If they stay unread, a transaction is open there, which its producer must end."
    )
    assert steps(old) == [
        (
            "Both topics must be read to their ends: there are unread records (50, from ads.candidate 1:100 "
            "on). If they stay unread, a transaction is open there, which its producer must end."
        )
    ]


def test_clocks_that_disagree_are_told() -> None:
    ahead = status(verified_through=START + timedelta(hours=1))
    assert steps(ahead) == [
        "The clocks of Kafka and of this host must agree: see the times of the newest records."
    ]


@pytest.mark.parametrize(
    ("freshness", "told"),
    [
        (awaited(START, 1.0), "The matcher must start."),
        (heard(START, 9.0, 5.0), "The matcher must report again."),
        (lost(START, 1.0, "killed"), "The matcher must run again"),
    ],
)
def test_nothing_else_matters_while_nobody_compares(freshness: Any, told: str) -> None:
    (only,) = steps(pending(suspicions=4), freshness=freshness)
    assert only.startswith(told)


def test_the_gate_says_it_while_it_is_undecided_and_only_then() -> None:
    board = Clocks().board()
    assert board.view(NAME).gate.to_decide.startswith("The matcher must start.")
    board.accept(status(verdict="INCONCLUSIVE", suspicions=1))
    board.accept(UnmatchedSample(comparison=NAME, events=(unmatched(8, overdue=True),)))
    assert board.view(NAME).gate.to_decide.startswith("1 event is overdue (1 of the reference;")
    board.accept(diverged(at=START + timedelta(seconds=1)))
    assert (board.view(NAME).gate.answer, board.view(NAME).gate.to_decide) == ("fail", "")
