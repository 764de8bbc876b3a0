"""What is set aside and to which nothing more is to come: both sides have gone on beyond it."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from tests.support.timelines import Timeline, timeline
from twinstream.core.events import Side

SUSPECTS = "overdue: {after: 60s}\n"
PROVES = "overdue: {after: 60s, proves: true}\n"
KEYED = "{per_key: [k]}"
DIFFER = "L:7=1@0 R:7=2@0 review"
"""An event that comes once, and the candidate writes another instead."""
PASS = "? review ?"
both_clocks = pytest.mark.parametrize("clock", [SUSPECTS, PROVES])


def known(kinds: str = "changed", count: int = 100, fields: str = "[v]", identity: str = "[k]") -> str:
    rule = f"{{id: P-1, when: {{divergences: [{kinds}], fields: {fields}}}, owner: me, expires: 2999-12-31"
    return f"identity: {identity}\nknown_differences:\n  - {rule}, ceiling: {{count: {count}}}}}\n"


def closed(seen: Timeline) -> dict[str, int]:
    """What is counted for good."""
    return dict(seen.driver.comparison.differences.closed_by_kind)


def explained(seen: Timeline) -> dict[str, int]:
    return dict(seen.driver.comparison.differences.known.counts)


@both_clocks
def test_a_known_difference_in_a_key_that_never_comes_again_is_in_dispute_until_both_sides_have_passed_it(
    clock: str,
) -> None:
    seen = timeline(f"{DIFFER} both@0-60 {PASS}", clock + known(), KEYED)
    comparison = seen.driver.comparison
    assert comparison.in_dispute
    seen.go_on(f"both@60-62 {PASS}")
    assert (comparison.in_dispute, seen.diverged, explained(seen)) == (False, False, {"P-1": 1})
    assert [account.explained for account in comparison.accounts] == [1, 1]
    assert [comparison.unmatched(side) for side in Side] == [0, 0]


@both_clocks
def test_what_is_no_known_difference_diverges_then_only_where_the_clock_proves(clock: str) -> None:
    seen = timeline(f"L:7.1@0 R:7.2@0 review both@0-100 {PASS}", clock + known(), KEYED)
    assert (seen.diverged, seen.driver.comparison.in_dispute) == (clock == PROVES, clock == SUSPECTS)


def test_what_would_be_beyond_the_ceiling_stays_in_dispute_where_the_clock_does_not_prove() -> None:
    differ = " ".join(f"L:{key}=1@0 R:{key}=2@0 review" for key in range(3))
    seen = timeline(f"{differ} both@0-100 {PASS}", SUSPECTS + known(count=2), KEYED)
    assert (explained(seen), seen.diverged, seen.driver.comparison.in_dispute) == ({"P-1": 2}, False, True)


def test_what_has_no_other_half_yet_stays_open_where_the_clock_does_not_prove() -> None:
    more = SUSPECTS + known("missing, reordered", fields="[]")
    seen = timeline(f"both@0 L:a@0 L:b@0 R:b@0 both:c@100 {PASS}", more, "total")
    assert (seen.driver.comparison.in_dispute, explained(seen)) == (True, {"P-1": 0})


@both_clocks
def test_a_changed_event_of_a_key_that_never_comes_again_is_counted_for_good(clock: str) -> None:
    seen = timeline(DIFFER, clock + "identity: [k]", KEYED)
    assert closed(seen) == {}
    assert closed(seen.go_on(f"both@0-100 {PASS}")) == {"changed": 1}
    assert not seen.driver.comparison.scopes


@pytest.mark.parametrize(("clock", "found"), [(SUSPECTS, {}), (PROVES, {"missing": 1, "extra": 1})])
def test_two_events_without_identity_are_missing_and_extra_once_it_is_proven(
    clock: str, found: dict[str, int]
) -> None:
    seen = timeline(f"{DIFFER} both@0-100 {PASS}", clock, KEYED)
    assert (seen.diverged, closed(seen)) == (True, found)
    comparison = seen.driver.comparison
    assert bool(comparison.provisional()) == bool(comparison.scopes) == (not found)


NUMBERED = PROVES + "identity: [k, n]"
SAME_KEY = "L:7.1=1@0 R:7.1=2@0 review"


def test_equal_events_behind_the_difference_are_pairs_and_not_different() -> None:
    seen = timeline(f"{SAME_KEY} both:7.2@1 both:7.3@1 both@0-100 {PASS}", NUMBERED, KEYED)
    assert (seen.kinds, seen.driver.comparison.matched) == (["changed"], 102)


@pytest.mark.parametrize(
    "text",
    [f"{SAME_KEY} both@0-90 both:7.2@89 both@90-100", f"{SAME_KEY} L:ahead@0-200"],
    ids=["something came to it lately", "a side stands still"],
)
def test_a_scope_stays_open_that_both_sides_have_not_passed(text: str) -> None:
    assert timeline(f"{text} {PASS}", NUMBERED, KEYED).driver.comparison.scopes


def test_a_partner_of_what_was_missing_completes_it_when_it_comes_after_all() -> None:
    seen = timeline(f"L:7.1@0 L:7.2@0 R:7.2@0 both@0-100 {PASS}", PROVES, KEYED)
    assert seen.kinds == ["missing"]
    assert seen.go_on(f"R:7.1@100 both@100-200 {PASS}").kinds == ["reordered"]


MARKED = "kinds: {mark: {where: {k: mark}}, event: {}}\n"


def test_an_epoch_whose_barrier_is_lacking_is_settled_as_at_the_end() -> None:
    marks = " ".join(f"both:mark={second}@{second}" for second in range(70, 100))
    text = f"L:1@0 L:mark@0 L:2@0 R:1@0 R:2@0 {marks} {PASS} review"
    seen = timeline(text, PROVES + MARKED, "{barrier: mark, inner: {per_key: [k]}}")
    assert (seen.kinds, list(seen.driver.comparison.scopes)) == (["missing"], [])


def test_after_a_crash_the_same_scopes_are_passed() -> None:
    seen = timeline(f"{DIFFER} both@0-62 restart {PASS}", SUSPECTS + known(), KEYED)
    assert (seen.driver.comparison.in_dispute, explained(seen)) == (False, {"P-1": 1})


def test_what_may_go_to_a_scope_with_others_is_not_judged_alone() -> None:
    """The left is past its day; of the right an event cannot be answered, and may be the left's, changed."""
    order = "{barrier: mark, inner: unordered}"
    seen = timeline("L:1=1@0 L:mark@0 L:2@0", PROVES + MARKED + "identity: [k]", order)
    index = seen.driver.comparison.index
    assert not list(index.gathered(LEFT))
    seen.go_on("R:1=2@0")
    assert [one[2] for one in index.gathered(LEFT)] == [0, 1, 2]
    seen.go_on("R:mark@0 R:2@0")
    assert not list(index.gathered(LEFT))
    seen.go_on("end")
    assert (seen.kinds, seen.driver.comparison.matched) == (["changed"], 2)


def test_what_is_passed_in_an_epoch_that_is_not_over_is_named_with_what_waits_there() -> None:
    def timed(name: int | str, ts: int, price: int = 1) -> bytes:
        return record({"id": name, "ts": ts, "price": price})

    clock = "overdue: {clock: event_time, field: ts, unit: s, after: 60s, proves: true}"
    kinds = "kinds: {end: {where: {id: end}}, event: {}}\n"
    rule = known("missing, changed", 1, "[price, ts]", "[id]")
    driver = Driver(spec("{barrier: end, inner: unordered}", f"{clock}\n{kinds}{rule}"))
    driver.feed(RIGHT, [timed(7, 95, price=2), timed("y", 100), timed("end", 101)])
    driver.feed(LEFT, [timed(7, 0), timed("y", 100)])
    driver.look()
    driver.comparison.review()
    driver.feed(LEFT, [timed("end", 101)])
    for side in Side:
        driver.feed(side, [timed("z", 102), timed("end", 103)])
    driver.comparison.survey((True, True))
    driver.comparison.review()
    driver.comparison.survey((True, True))
    assert not driver.comparison.diverged
    assert driver.comparison.differences.known.counts == {"P-1": 1}
    assert [account.explained for account in driver.comparison.accounts] == [1, 1]


@pytest.mark.parametrize(
    ("order", "events"),
    [
        (KEYED, "both@0 L:7=1@0 both:7=2@0"),
        ("total", "both@0 L:7=1@0 both:7=2@0"),
        ("{barrier: end, inner: {per_key: [k]}}", "both@0 L:7=1@0 both:7=2@0"),
        ("{dependent: [[other, other]]}", "both@0 L:7=1@0 both:7=2@0"),
    ],
)
@pytest.mark.parametrize("hidden", [8, 7])
def test_a_difference_to_which_no_rule_applies_is_not_in_dispute(
    order: str, events: str, hidden: int
) -> None:
    rule = known("missing, extra, changed, reordered, duplicate", fields="[]")
    kinds = "kinds: {end: {where: {k: end}}, other: {}}\n"
    seen = timeline(events, kinds + rule.replace("fields: []", f"where: {{k: '{hidden}'}}"), order)
    assert (seen.diverged, seen.driver.comparison.in_dispute) == (hidden == 8, hidden == 7)


@pytest.mark.parametrize("inner", ["unordered", "{per_key: [k]}", "total", "{dependent: [[x, y]]}"])
def test_an_epoch_is_in_dispute_while_all_its_differences_may_be_known_ones(inner: str) -> None:
    """Its first event, which no rule covers, has its partner there, though two others have changed places."""
    kinds = "kinds: {end: {where: {k: end}}, x: {where: {k: x}}, y: {where: {k: y}}, other: {}}\n"
    rule = known("reordered", fields="[]").replace("fields: []", "where: {v: 1}")
    events = "R:x=2@0 R:x=1@0 R:end@0 R:y=1@0 L:x=1@0 L:x=2@0 L:y=1@0 L:end@0 both:x=3@0 review"
    seen = timeline(events, kinds + rule, f"{{barrier: end, inner: {inner}}}")
    assert not seen.diverged
    seen.go_on("end")
    assert not seen.diverged


def test_a_run_that_ends_an_epoch_behind_its_first_difference_is_judged() -> None:
    """The scope is empty when it is judged: it has lost its events to that of the epoch."""
    kinds = "kinds: {end: {where: {t: end}}, a: {where: {t: a}}, b: {}}\n"
    order = "{barrier: end, inner: {dependent: [[a, b]]}}"
    rule = known().replace("fields: [v]", "where: {ok: true}").replace("identity: [k]\n", "")
    driver = Driver(spec(order, kinds + rule))
    end = {"t": "end", "v": 0, "ok": False}
    driver.feed(RIGHT, [record(row) for row in ({"t": "a", "v": 9, "ok": True}, end)])
    rows = ({"t": "a", "v": 2, "ok": True}, {"t": "b", "v": 2, "ok": True}, end)
    driver.feed(LEFT, [record(row) for row in rows])
    assert driver.comparison.diverged
