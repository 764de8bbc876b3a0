"""The gate fails closed: what is not known to be good does not pass."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.statuses import START, coverage, diverged, expectation, status
from twinstream.api.gate.freshness import Freshness, awaited, heard, lost
from twinstream.api.gate.gate import GateAnswer, gate
from twinstream.api.routes.scope import GateScope, ScopedAnswer, scoped
from twinstream.api.state.expectation import placeholder
from twinstream.status.comparison import (
    CheckedSide,
    CheckGate,
    CheckStatus,
    ComparisonStatus,
    Health,
    Position,
    Stretches,
    Version,
    Violation,
)

FRESH = heard(START, 0.5, 5.0)
STALE = heard(START, 9.0, 5.0)
LOST = lost(START, 1.0, "its matcher exited with code 1")
DEGRADED = Health(status="degraded", reasons=["Kafka cannot be reached since 12:00."], unreachable=["kafka"])


def ask(it: ComparisonStatus, freshness: Freshness = FRESH) -> GateAnswer:
    return gate(it, freshness, it.verified_age_seconds)


def test_a_healthy_equivalent_comparison_that_is_verified_recently_passes() -> None:
    answer = ask(status())
    assert (answer.answer, answer.passed, answer.failed, answer.undecided) == ("pass", True, False, False)
    assert answer.reason == (
        "Equivalent: 5,000 events matched; verified through 2026-03-01 11:59:58 UTC, 2 s ago."
    )


def test_a_pass_says_how_much_known_differences_explain() -> None:
    answer = ask(status(explained_by_rule={"PRICE-17": 1, "TAX-2": 1}))
    assert "5,000 events matched, known differences explain all 2 differences; verified" in answer.reason


def test_what_known_differences_explain_is_a_difference_that_is_explained() -> None:
    explained = {"PRICE-17": 1}
    for answer in (
        ask(status(explained_by_rule=explained, health=DEGRADED)),
        ask(status(explained_by_rule=explained, verified_through=None)),
        asked(status(explained_by_rule=explained), since=ago(1)),
    ):
        assert answer.reason.startswith("No unexplained difference so far, but ")


def test_a_diverged_comparison_fails_with_the_reason_of_the_matcher() -> None:
    answer = ask(diverged())
    assert (answer.answer, answer.failed) == ("fail", True)
    assert answer.reason == diverged().reason


def test_a_diverged_comparison_fails_even_while_health_is_degraded() -> None:
    assert ask(diverged(health=DEGRADED)).answer == "fail"


@pytest.mark.parametrize("verdict", ["PENDING", "INCONCLUSIVE"])
def test_a_verdict_that_is_not_decided_is_undecided_and_says_why(verdict: str) -> None:
    answer = ask(status(verdict=verdict, reason="only 3 of 1000 matches so far"))
    assert answer.answer == "undecided"
    assert answer.reason == "Only 3 of 1000 matches so far."


def test_degraded_health_is_undecided_and_named() -> None:
    answer = ask(status(health=DEGRADED))
    assert (answer.answer, answer.healthy) == ("undecided", False)
    assert "Kafka cannot be reached since 12:00." in answer.reason


@pytest.mark.parametrize("verdict", ["EQUIVALENT", "DIVERGED"])
@pytest.mark.parametrize("freshness", [STALE, LOST])
def test_a_status_that_is_not_live_is_undecided_whatever_it_says(verdict: str, freshness: Freshness) -> None:
    answer = ask(status(verdict=verdict), freshness)
    assert (answer.answer, answer.stale, answer.healthy) == ("undecided", True, False)
    assert answer.reason.endswith(f"Last known verdict: {verdict}.")


def test_a_comparison_that_has_not_published_is_undecided() -> None:
    answer = ask(placeholder(expectation(), START), awaited(START, 3.0))
    assert (answer.answer, answer.verdict, answer.updated_at) == ("undecided", "PENDING", "")
    assert answer.reason.startswith("No status yet")


@pytest.mark.parametrize(
    ("age_seconds", "answer"), [(299.9, "pass"), (300, "undecided"), (-1, "pass"), (-301, "undecided")]
)
def test_a_pass_needs_verification_less_than_max_staleness_ago(age_seconds: float, answer: str) -> None:
    it = status(verified_through=START - timedelta(seconds=age_seconds), max_staleness_seconds=300.0)
    assert ask(it).answer == answer


def test_old_verification_names_both_ages() -> None:
    answer = ask(status(verified_through=START - timedelta(seconds=400)))
    assert "400 s ago" in answer.reason
    assert "less than 300 s" in answer.reason


def test_nothing_verified_yet_is_undecided_and_an_empty_text() -> None:
    answer = ask(status(verified_through=None))
    assert (answer.answer, answer.verified_through) == ("undecided", "")


def states() -> list[tuple[ComparisonStatus, Freshness]]:
    every = [status(), diverged(), status(verified_through=None), status(verdict="PENDING", reason="")]
    return [(it, freshness) for it in every for freshness in (FRESH, STALE, LOST, awaited(START, 1.0))]


@pytest.mark.parametrize(("it", "freshness"), states())
def test_every_answer_is_flat_with_no_null_and_a_sentence(it: ComparisonStatus, freshness: Freshness) -> None:
    body: dict[str, Any] = json.loads(ask(it, freshness).model_dump_json())
    assert all(isinstance(value, (str, int, float, bool)) for value in body.values())
    assert not any(isinstance(value, float) and math.isnan(value) for value in body.values())
    assert [body["pass"], body["fail"], body["undecided"]].count(True) == 1
    assert body["reason"][0].isupper()
    assert body["reason"].endswith(".")


def asked(it: ComparisonStatus, *, pace: float = 0.0, **scope: Any) -> ScopedAnswer:
    return scoped(ask(it), GateScope(**scope), it, pace)


def test_a_scope_that_is_met_changes_nothing_and_is_echoed() -> None:
    answer = ask(status())
    about = {"candidate": answer.candidate_version, "spec_digest": answer.spec_digest}
    found = asked(status(), min_matched=5000, **about)
    assert (found.answer, found.reason, found.scope_min_matched) == ("pass", answer.reason, 5000)
    assert (found.scope_candidate, found.scope_spec_digest) == (answer.candidate_version, answer.spec_digest)


def test_a_pass_with_fewer_pairs_than_asked_for_is_undecided_and_a_fail_stays() -> None:
    found = asked(status(), min_matched=5001)
    assert (found.answer, found.passed, found.undecided) == ("undecided", False, True)
    assert found.reason == "No difference so far, but only 5,000 of 5,001 required pairs are confirmed."
    assert asked(diverged(), min_matched=10**9).answer == "fail"


@pytest.mark.parametrize("it", [status(), diverged(), status(verdict="PENDING", reason="too early")])
@pytest.mark.parametrize("scope", [{"candidate": "9.9"}, {"spec_digest": "other"}])
def test_an_answer_about_something_else_is_undecided(it: ComparisonStatus, scope: dict[str, str]) -> None:
    found = asked(it, **scope)
    assert (found.answer, found.passed, found.failed, found.undecided) == ("undecided", False, False, True)
    assert found.reason.startswith("You asked about ")


def test_about_something_else_it_says_what_has_to_change_or_what_can_be_asked() -> None:
    assert asked(diverged(), candidate="9.9").to_decide == (
        "Write `candidate.version: 9.9` in the comparison file once that version runs, or ask about 1.9.0."
    )
    assert asked(status(), spec_digest="other").to_decide == (
        "Start the service with that comparison file, or ask about 5f0c9a."
    )
    unnamed = status(candidate=Version(topic="ads.candidate"))
    assert asked(unnamed, candidate="9.9").to_decide.endswith(", or ask about no version.")


def test_what_lacks_of_the_pairs_that_are_asked_for_is_told_with_the_time_that_they_take() -> None:
    assert asked(status(), min_matched=5001).to_decide == (
        "1 more pair required (5,000 of 5,001); no match recently: both sides must write."
    )
    assert asked(status(), min_matched=9000, pace=100.0).to_decide == (
        "4,000 more pairs required (5,000 of 9,000): about 40 s at 100 per second."
    )


def test_what_is_undecided_anyhow_is_told_what_the_scope_lacks_besides() -> None:
    inconclusive = status(verdict="INCONCLUSIVE", reason="Not decided: 2 events are overdue.")
    own = ask(inconclusive).model_copy(update={"to_decide": "Their partners have to come."})
    found = scoped(own, GateScope(min_matched=9000), inconclusive, 100.0)
    assert found.reason == own.reason
    assert found.to_decide.splitlines() == [
        "Their partners have to come.",
        "4,000 more pairs required (5,000 of 9,000): about 40 s at 100 per second.",
    ]
    of_another = scoped(own, GateScope(candidate="9.9"), inconclusive)
    assert of_another.to_decide.splitlines()[1:] == ["Their partners have to come."]
    stale = ask(inconclusive, STALE).model_copy(update={"to_decide": "The matcher must report again."})
    assert scoped(stale, GateScope(min_matched=9000), inconclusive).to_decide == stale.to_decide


def test_a_proven_difference_has_nothing_to_decide_whatever_is_asked() -> None:
    found = asked(diverged(), min_matched=10**9, since=ago(0))
    assert (found.answer, found.to_decide) == ("fail", "")


def ago(seconds: float) -> str:
    return (START - timedelta(seconds=seconds)).isoformat()


def test_a_pass_may_be_asked_to_rest_on_what_came_since() -> None:
    found = asked(status(), since="2026-03-01T11:54:50Z")
    assert (found.answer, found.scope_since) == ("pass", "2026-03-01T11:54:50Z")
    assert (found.matched_in_scope, found.seconds_in_scope) == (5000, 309.0)
    without = asked(status())
    assert (without.scope_since, without.matched_in_scope, without.seconds_in_scope) == ("", 5000, 310.0)


def test_evidence_from_before_is_none_and_is_said_to_lack() -> None:
    found = asked(status(), since="2026-03-01T13:58:00+02:00")
    assert (found.answer, found.matched_in_scope, found.seconds_in_scope) == ("undecided", 1500, 92.0)
    assert found.reason == (
        "No difference so far, but not enough compared since 2026-03-01 11:58:00 UTC: 92 of 300 s of Kafka "
        "time."
    )
    assert found.to_decide == (
        "3 min 28 s more of Kafka time required (1 min 32 s of 5 min), while both sides keep writing."
    )


def test_the_silence_before_the_first_pair_is_no_evidence() -> None:
    late = coverage().model_copy(update={"seconds": 3600.0})
    found = asked(status(coverage=late), since=ago(3000))
    assert (found.answer, found.seconds_in_scope) == ("pass", 309.0)
    none = asked(status(coverage=late.model_copy(update={"matched_since": Stretches()})), since=ago(3000))
    assert (none.answer, none.seconds_in_scope) == ("undecided", 0.0)


def test_pairs_that_no_look_has_confirmed_are_not_those_that_are_asked_for() -> None:
    found = asked(status(matched=6000), min_matched=5001)
    assert (found.answer, found.matched_in_scope) == ("undecided", 5000)


def test_pairs_and_kinds_are_asked_for_since_then_too() -> None:
    kinds = coverage().model_copy(update={"kinds_required": ["event", "day"], "seconds_required": 0.0})
    found = asked(status(coverage=kinds), since=ago(100), min_matched=4000)
    assert found.reason.endswith("11:58:20 UTC: 1,500 of 4,000 required pairs; no `day` has matched.")
    pairs, kind = found.to_decide.splitlines()
    assert pairs.startswith("2,500 more pairs required (1,500 of 4,000)")
    assert kind.startswith("No event of kind `day` has matched yet")


def test_a_moment_behind_what_is_verified_is_undecided() -> None:
    assert asked(status(), since=ago(1)).to_decide == (
        "All events before 2026-03-01 11:59:59 UTC must be verified, and then enough of what follows."
    )
    assert asked(status(), since=ago(1)).reason == (
        "No difference so far, but events are verified only through 2026-03-01 11:59:58 UTC; you asked about "
        "2026-03-01 11:59:59 UTC and later."
    )


def test_one_pair_at_least_must_have_come_since() -> None:
    none_asked = coverage().model_copy(update={"matched_required": 0, "seconds_required": 0.0})
    assert asked(status(coverage=none_asked), since=ago(10)).undecided
    assert asked(status(coverage=none_asked), since=ago(32)).passed


@pytest.mark.parametrize(
    "since", ["2026-03-01", "2026", "yesterday", "2026-03-01T14:02:00", "0001-01-01T00:00:00+14:00"]
)
def test_what_is_no_moment_is_refused(since: str) -> None:
    with pytest.raises(ValidationError, match=r"is not a time with a zone|lies outside of the calendar"):
        GateScope(since=since)


# -- checks of single sides --------------------------------------------------------------------------------

HOLDS = CheckedSide(state="holds", checked=9)
AT = Position(topic="ads.candidate", partition=0, offset=7)
VIOLATED = CheckedSide(
    state="violated", checked=9, violations=2, first=[Violation(position=AT, problem="has no key")]
)
UNKNOWN = CheckedSide(state="undecided", checked=9, reason="no control record was heard")
UNSAVED = VIOLATED.model_copy(update={"state": "undecided", "reason": "a violation was found"})


def checked(gate: CheckGate = "fail", **sides: CheckedSide) -> list[CheckStatus]:
    return [CheckStatus(id="keyed", property="key_partition", text="", gate=gate, **sides)]


@pytest.mark.parametrize(
    ("checks", "answer"),
    [
        (checked(reference=HOLDS, candidate=HOLDS), "pass"),
        (checked(candidate=VIOLATED), "fail"),
        (checked(reference=VIOLATED, candidate=VIOLATED), "fail"),
        (checked(reference=VIOLATED, candidate=HOLDS), "undecided"),
        (checked("undecided", candidate=VIOLATED), "undecided"),
        (checked("undecided", reference=VIOLATED), "undecided"),
        (checked("ignore", reference=VIOLATED, candidate=VIOLATED), "pass"),
        (checked(reference=HOLDS, candidate=UNKNOWN), "undecided"),
        (checked(reference=UNKNOWN, candidate=HOLDS), "undecided"),
        (checked("undecided", candidate=UNKNOWN), "pass"),
        (checked("undecided", candidate=UNSAVED), "undecided"),
        (checked("ignore", candidate=UNSAVED), "pass"),
        (checked("undecided", candidate=VIOLATED) + checked(candidate=VIOLATED), "fail"),
    ],
)
def test_what_a_check_makes_of_the_gate(checks: list[CheckStatus], answer: str) -> None:
    assert ask(status(checks=checks)).answer == answer


def test_a_violated_check_fails_whatever_the_verdict_and_never_on_a_stale_word() -> None:
    checks = checked(candidate=VIOLATED)
    for verdict in ("PENDING", "INCONCLUSIVE", "EQUIVALENT"):
        answer = ask(status(verdict=verdict, checks=checks, health=DEGRADED))
        assert (answer.answer, answer.violations, answer.verdict) == ("fail", 2, verdict)
        assert answer.reason == (
            "The candidate violates the check `keyed`: 2 violations, the first: the record at ads.candidate "
            "0:7 has no key."
        )
    assert ask(diverged(checks=checks)).reason == diverged().reason
    assert ask(status(checks=checks), STALE).answer == "undecided"


def test_an_undecided_check_is_named_after_what_is_more_urgent() -> None:
    checks = checked(candidate=UNKNOWN)
    assert ask(status(checks=checks)).reason == (
        "No difference so far, but the check `keyed` is undecided for the candidate: no control record was "
        "heard."
    )
    assert "health is degraded" in ask(status(checks=checks, health=DEGRADED)).reason
