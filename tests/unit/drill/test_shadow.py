"""The comparison of the copies, the times in them, and the order in which they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.drilled import pair, rides, spec_with
from twinstream.core.events import Side
from twinstream.drill.copies import CopiedPair
from twinstream.drill.planting import PlantedDifference, PlantedKind, plan
from twinstream.drill.shadow import awaited, before, behind, dated, expected, left_out, shadow_of
from twinstream.errors import SettingsError
from twinstream.spec.drills import DrillRecord, Names
from twinstream.spec.file.model import Overdue, Spec
from twinstream.spec.load import digest

NOW_MS = 1_800_000_000_000
NAMES = Names("rides", "5f0c2e1a")


def planted(spec: Spec, kind: PlantedKind = "drop") -> PlantedDifference:
    return plan(spec, pair(), kind, "5f0c2e1a")


def times(records: Sequence[DrillRecord]) -> list[int]:
    return [record.timestamp_ms for record in records]


def test_the_shadow_has_the_rules_of_the_live_one_on_topics_of_its_own() -> None:
    spec = spec_with(
        more="identity: [n]\nequality: {ignore: [p]}\n"
        "start: {at: offsets, reference: {0: 5}, candidate: {0: 5}}\n"
    )
    shadow = shadow_of(spec, NAMES, 100)
    assert shadow.name == "rides-drill-5f0c2e1a"
    assert [shadow.version_of(side).topic for side in Side] == list(NAMES.topics)
    assert (shadow.order, shadow.equality, shadow.identity) == (spec.order, spec.equality, spec.identity)
    assert shadow.start.at == "earliest"
    assert list(left_out(spec)) == [
        "the start at `offsets`: the copies are compared from their first record on"
    ]
    assert digest(shadow) != digest(spec)


def test_the_copies_are_not_checked_by_themselves() -> None:
    spec = spec_with(more="checks: [{id: a, not_null: [zzz]}]\n")
    assert shadow_of(spec, NAMES, 100).checks == []
    assert list(left_out(spec)) == ["the checks: the drill is about a difference between the copies"]


def test_a_long_name_leaves_room_for_that_of_the_drill() -> None:
    name = Names("a" * 47 + "-" + "b" * 15, "5f0c2e1a").comparison
    assert name == "a" * 47 + "-drill-5f0c2e1a"
    assert len(name) <= 63


def test_only_as_much_evidence_is_asked_for_as_the_copies_have() -> None:
    assert shadow_of(spec_with(), NAMES, 100).evidence.matched == 50


def test_times_keep_their_distances_and_end_now() -> None:
    spec = spec_with()
    copies = dated(spec, planted(spec), NOW_MS)
    assert times(copies.reference)[-1] == NOW_MS
    assert times(copies.reference)[0] == NOW_MS - 199_000


def test_behind_a_difference_that_a_clock_has_to_tell_enough_time_passes() -> None:
    spec = spec_with("unordered", "overdue: {clock: arrival, after: 10m, proves: true}\n")
    found = planted(spec)
    copies = dated(spec, found, NOW_MS)
    assert expected(spec, found) == "fail"
    assert NOW_MS - copies.candidate[found.at].timestamp_ms >= 20 * 60_000 - 1000
    for side in Side:
        assert times(copies[side]) == sorted(times(copies[side]))


@pytest.mark.parametrize("seconds", [3600, 20])
def test_a_candidate_that_wrote_later_does_not_make_the_reference_lead_or_look_stalled(seconds: int) -> None:
    spec = spec_with()
    later = [record._replace(timestamp_ms=record.timestamp_ms + seconds * 1000) for record in rides()]
    found = replace(planted(spec), pair=CopiedPair(rides(), later))
    copies = dated(spec, found, NOW_MS)
    firsts = [times(copies[side])[0] for side in Side]
    assert abs(firsts[0] - firsts[1]) < 1000


def test_times_that_are_compared_are_not_changed() -> None:
    spec = spec_with("{per_key: [$timestamp]}", "overdue: {after: 1h}\n")
    told = r"^behind the difference 7200 s of Kafka time .* give more --records"
    with pytest.raises(SettingsError, match=told):
        dated(spec, planted(spec), NOW_MS)


def test_a_silent_candidate_is_followed_by_the_reference_for_long_enough() -> None:
    spec = spec_with(more="overdue: {after: 1h}\n")
    found = planted(spec, "stall")
    copies = dated(spec, found, NOW_MS)
    assert expected(spec, found) == "stall"
    assert times(copies.reference)[-1] - times(copies.candidate)[-1] >= 7_000_000


def test_a_clock_that_proves_is_given_the_time_that_it_asks_for() -> None:
    proves = spec_with("unordered", "overdue: {clock: arrival, after: 10m, proves: true}\n")
    assert awaited(proves, planted(proves)).total_seconds() == 600
    ordered = spec_with(more="overdue: {clock: arrival, after: 10m, proves: true}\n")
    assert awaited(ordered, planted(ordered)).total_seconds() == 0


def test_without_proof_a_loss_is_expected_to_be_a_suspicion() -> None:
    spec = spec_with("unordered")
    assert expected(spec, planted(spec)) == "suspicion"


def test_what_only_the_clock_of_the_input_can_tell_is_refused() -> None:
    spec = spec_with("unordered").model_copy(update={"control": "said", "overdue": Overdue(clock="input")})
    told = r"^only the clock of the input can tell this drop in rides, since"
    with pytest.raises(SettingsError, match=told):
        expected(spec, planted(spec))
    assert shadow_of(spec, NAMES, 100).followed is None
    assert next(left_out(spec)) == "the clock of the input: the copies have no control topic"


# -- the order in which they are written ------------------------------------------------------------------


def test_both_halves_together_are_both_copies_in_their_order_and_in_turn() -> None:
    spec = spec_with()
    found = planted(spec)
    first, second = before(NAMES, found.pair, found), behind(spec, NAMES, found.pair, found)
    every = [*first, *second.first]
    for topic, records in zip(NAMES.topics, found.pair, strict=True):
        assert [record for name, record in every if name == topic] == records
    assert [name for name, _ in first[:4]] == [*NAMES.topics, *NAMES.topics]
    assert second.rest == []
    assert second.events == (200, 199)


def test_the_time_counts_from_the_record_at_which_the_difference_shows() -> None:
    spec = spec_with()
    found = planted(spec, "duplicate")
    tail = behind(spec, NAMES, found.pair, found)
    assert tail.first[tail.mark] == (NAMES.topics[1], found.pair.candidate[found.at])
    silent = planted(spec, "stall")
    assert behind(spec, NAMES, silent.pair, silent).mark == 0


def test_where_later_batches_have_to_follow_the_last_part_is_held_back() -> None:
    spec = spec_with(more="duplicates: {policy: replays}\n")
    found = planted(spec, "duplicate")
    tail = behind(spec, NAMES, found.pair, found)
    assert tail.mark < len(tail.first)
    assert tail.rest
    assert sum(tail.events) + len(tail.rest) == 401
