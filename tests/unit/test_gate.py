"""The gate fails closed: what is not known to be good does not pass."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest

from tests.support.statuses import START, diverged, expectation, status
from twinstream.api.expectation import placeholder
from twinstream.api.freshness import Freshness, awaited, heard, lost
from twinstream.api.gate import GateAnswer, gate
from twinstream.api.scope import GateScope, scoped
from twinstream.status import ComparisonStatus, Health

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
        "Equivalent: 5000 events matched; verified through 2026-03-01 11:59:58 UTC, 2 s ago."
    )


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
    assert answer.reason.endswith(f"Its last verdict, {verdict}, no longer counts.")


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


def test_a_scope_that_is_met_changes_nothing_and_is_echoed() -> None:
    answer = ask(status())
    scope = GateScope(min_matched=5000, candidate=answer.candidate_version, spec_digest=answer.spec_digest)
    found = scoped(answer, scope)
    assert (found.answer, found.reason, found.scope_min_matched) == ("pass", answer.reason, 5000)
    assert (found.scope_candidate, found.scope_spec_digest) == (answer.candidate_version, answer.spec_digest)


def test_a_pass_with_fewer_pairs_than_asked_for_is_undecided_and_a_fail_stays() -> None:
    found = scoped(ask(status()), GateScope(min_matched=5001))
    assert (found.answer, found.passed, found.undecided) == ("undecided", False, True)
    assert found.reason == "No difference so far, but 5000 pairs match of 5001 asked for."
    assert scoped(ask(diverged()), GateScope(min_matched=10**9)).answer == "fail"


@pytest.mark.parametrize("it", [status(), diverged(), status(verdict="PENDING", reason="too early")])
@pytest.mark.parametrize("scope", [{"candidate": "9.9"}, {"spec_digest": "other"}])
def test_an_answer_about_something_else_is_undecided(it: ComparisonStatus, scope: dict[str, str]) -> None:
    found = scoped(ask(it), GateScope(**scope))
    assert (found.answer, found.passed, found.failed, found.undecided) == ("undecided", False, False, True)
    assert found.reason.startswith("It was asked about the ")
