"""The clock of the input settles a key when both rows show it after the same input, and not before."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, record
from tests.support.tables import Pair
from twinstream.core.clocks.input import Effect
from twinstream.core.events import Event, Form
from twinstream.core.tables import by_input, settled
from twinstream.core.tables.by_input import ByInput
from twinstream.core.tables.declared import Step
from twinstream.core.tables.rows import PendingRows, Row


@pytest.fixture(params=[False, True], ids=["", "restarted behind every step"])
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(restarts=request.param)


def test_rows_of_one_prefix_are_compared_when_both_versions_have_consumed_it(pair: Pair) -> None:
    assert pair.go_on("L:a=1 L!10 R:a=1") == (0, [], [[0], [0]])
    assert pair.go_on("R!7") == (0, [], [[0], [0]])
    assert pair.go_on("R!12") == (1, [], [[], []])


def test_a_row_behind_the_end_of_a_batch_belongs_to_the_next_one(pair: Pair) -> None:
    # The second row of the left is of the next batch, which is not finished.
    assert pair.go_on("L:a=1 R:a=1 L:a=2 R!10 L!10/1") == (0, [], [[1], [0]])
    assert pair.go_on("L!20 R:a=2 R!20") == (1, [], [[], []])
    assert pair.superseded() == [1, 1]


def test_a_key_that_changes_before_the_other_side_has_caught_up_stays_pending(pair: Pair) -> None:
    words = (f"L:a={at} L!{at} R:a={at + 5} R!{at + 5}" for at in range(10, 100, 10))
    assert pair.go_on(" ".join(words)) == (0, [], [[8], [8]])
    survey = pair.driver.look()
    assert survey.first_open == ({0: 0}, {0: 0}), "verified is what lies before the first row of the key"


def test_a_deletion_is_compared_only_where_the_table_had_the_key(pair: Pair) -> None:
    assert pair.go_on("L:a=1 L:a=- L!10 R!10") == (0, [], [[], []])
    assert pair.go_on("L:a=2 L!20 R:a=2 R!20 L:a=- L!30 R!30") == (1, ["extra"], [[], []])


def test_a_row_of_one_side_that_both_then_delete_leaves_nothing_behind(pair: Pair) -> None:
    assert pair.go_on("R:a=5 R!5 L!6 L:a=- R:a=- L!9 R!9") == (0, ["extra"], [[], []])


def test_a_row_that_says_what_the_table_holds_changes_nothing(pair: Pair) -> None:
    assert pair.go_on("L:a=1 L!10 R:a=1 R!10 R:a=1 L!20 R!20") == (1, [], [[], []])
    assert pair.superseded() == [0, 1]


def test_a_second_query_of_a_version_is_a_hole(pair: Pair) -> None:
    pair.go_on("L:a=1 L!10")
    pair.finish(LEFT, 20, query="another")
    assert ["two queries" in hole.reason for hole in pair.driver.comparison.holes] == [True]


def test_a_row_on_one_side_of_a_key_settled_too_long_ago_is_unclear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled.Settled.__init__, "__defaults__", (2,))
    pair = Pair()
    pair.go_on("L:a=1,b=1,c=1 R:a=1,b=1,c=1 L!10 R!10")
    assert pair.go_on("L:a=1 L!20 R!20") == (3, [], [[], []])
    assert not pair.driver.comparison.diverged
    assert ["not among the last" in hole.reason for hole in pair.driver.comparison.holes] == [True]


def test_a_key_in_two_partitions_of_a_side_is_a_hole(pair: Pair) -> None:
    pair.go_on("L:a=1")
    pair.driver.feed(LEFT, [record({"k": "a", "v": 2})], partition=1)
    pair.go_on("L!10 R!10")
    assert ["two partitions" in hole.reason for hole in pair.driver.comparison.holes] == [True]


def test_a_row_whose_batch_is_finished_counts_no_more_when_a_newer_one_has_come(pair: Pair) -> None:
    assert pair.go_on("L:a=1 L!10 L:a=2 R:a=1 R!10") == (0, [], [[1], [0]])


def test_a_side_that_stands_still_costs_no_memory_for_rows_that_were_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_input, "SLACK", 3)
    pair = Pair()
    pair.go_on("L:once=1 " + " ".join(f"L:often={batch} L!{batch}" for batch in range(100)))
    tables = pair.driver.comparison.tables
    assert tables is not None
    consumed, groups = tables.state(whole=True)["batches"][LEFT]
    assert consumed == [["in", 0, 99]]
    assert 2 <= len(groups) <= 7, "one for each pending row, and a few more"
    assert pair.go_on("R:once=1,often=99 R!99") == (2, [], [[], []])


def test_a_row_for_no_input_at_all_waits_for_the_first_batch_of_the_other_side(pair: Pair) -> None:
    assert pair.go_on("L:total=0 L!0") == (0, [], [[0], []])
    assert pair.go_on("R:total=0 R!0") == (1, [], [[], []])


class Watched(Row):
    """A row that counts how often it is looked at."""

    __slots__ = ("_event",)
    looks = 0

    @property
    def event(self) -> Event:
        Watched.looks += 1
        return self._event

    @event.setter
    def event(self, event: Event) -> None:
        self._event = event


def test_a_batch_looks_at_its_own_rows_and_not_at_those_of_the_batches_behind_it() -> None:
    count, rows = 500, (PendingRows(repr), PendingRows(repr))
    tables = ByInput(rows, settled.Settled(), lambda _: None, lambda key: repr(key).encode())
    for key in range(count):
        tables.came(LEFT, key, Watched(Event(Form("", b"", "", b""), key % 2, key // 2, 0, 0.0)))
    Watched.looks = 0
    for batch in range(1, count // 2 + 1):
        tables.finish(LEFT, Effect(batch, {("in", 0): batch}, {0: batch, 1: batch}), Step())
    assert Watched.looks < 10 * count
    consumed, groups = tables.state()[LEFT]
    assert (consumed, len(groups)) == ([["in", 0, count // 2]], count // 2)


def test_a_batch_has_the_rows_below_its_end_whenever_their_keys_came_first(pair: Pair) -> None:
    # Key a is open for longer than b, and its latest row is of the next batch.
    assert pair.go_on("L:a=1,b=1,a=2 L!10/2 R:b=1 R!10") == (1, [], [[2], []])


PACES = {"in step": "{L1} {R1} {L2} {R2}", "reference first": "{L1} {L2} {R1} {R2}"}
VALUES = {
    "L:a=3 L!2 R!2": "changed",
    "L!2 R:a=3 R!2": "changed",
    "L:a=3 L!2 R:a=4 R!2": "changed",
    "L:a=- L!2 R!2": "extra",
    "L:a=- L!2 R:a=4 R!2": "extra",
    "L!2 R:a=- R!2": "missing",
    "L:a=3 L!2 R:a=- R!2": "missing",
}
"""What both versions write of a key that had the value 2, and the difference of their tables then."""
paces = pytest.mark.parametrize("pace", PACES.values(), ids=PACES)


def in_pace(pace: str, later: str) -> str:
    """Both versions write the key with the value 2, then what comes `later`: that of the left comes first."""
    ends = later.index("L!2") + len("L!2")
    return pace.format(L1="L:a=2 L!1", R1="R:a=2 R!1", L2=later[:ends], R2=later[ends:])


def known(kind: str, when: str = "") -> Pair:
    """Two versions with a known difference of a kind."""
    declared = f"{{id: K, when: {{divergences: [{kind}]{when}}}, owner: o, expires: 2999-12-31, "
    return Pair(more=f"known_differences: [{declared}ceiling: {{count: 9}}}}]\n")


@paces
@pytest.mark.parametrize(("later", "kind"), VALUES.items(), ids=VALUES)
def test_what_the_tables_hold_names_a_difference_whatever_the_pace(
    pair: Pair, later: str, kind: str, pace: str
) -> None:
    assert pair.go_on(in_pace(pace, later))[1:] == ([kind], [[], []])


@paces
@pytest.mark.parametrize(("later", "kind"), VALUES.items(), ids=VALUES)
def test_a_known_difference_covers_a_row_by_what_the_tables_hold_whatever_the_pace(
    later: str, kind: str, pace: str
) -> None:
    for declared in ("missing", "extra", "changed"):
        pair = known(declared)
        pair.go_on(in_pace(pace, later))
        comparison = pair.driver.comparison
        found = comparison.diverged, comparison.differences.known.hits, comparison.holes
        assert found == ((False, {"K": 1}, []) if declared == kind else (True, {}, []))


UNDECIDED, COVERED, DIFFERS = (False, {}, 1), (False, {"K": 1}, 0), (True, {}, 0)


@pytest.mark.parametrize(
    ("kind", "when", "later", "found"),
    [
        ("changed", ", fields: [v]", "L:a=3 L!2 R!2", UNDECIDED),
        ("changed", ", fields: [v]", "L:a=3 L!2 R:a=4 R!2", COVERED),
        ("changed", ", fields: [v], where: {k: b}", "L:a=3 L!2 R!2", DIFFERS),
        ("changed", ", where: {k: a}", "L:a=3 L!2 R!2", COVERED),
        ("changed", ", where: {v: 3}", "L:a=3 L!2 R!2", UNDECIDED),
        ("changed", ", where: {v: 4}", "L:a=3 L!2 R!2", DIFFERS),
        ("extra", ", where: {k: a}", "L:a=- L!2 R!2", COVERED),
        ("extra", ", where: {k: b}", "L:a=- L!2 R!2", DIFFERS),
        ("extra", ", where: {v: 2}", "L:a=- L!2 R!2", UNDECIDED),
        ("extra", ", where: {k: b, v: 2}", "L:a=- L!2 R!2", DIFFERS),
        ("extra", ", where: {v: 2}", "L!2 R:a=- R!2", DIFFERS),
        ("missing", ", where: {v: 2}", "L!2 R:a=- R!2", UNDECIDED),
    ],
)
def test_what_only_the_row_of_the_table_would_tell_is_undecided(
    kind: str, when: str, later: str, found: tuple[bool, dict[str, int], int]
) -> None:
    pair = known(kind, when)
    pair.go_on(in_pace(PACES["in step"], later))
    comparison = pair.driver.comparison
    assert (comparison.diverged, comparison.differences.known.hits, len(comparison.holes)) == found
    assert all("is not kept" in hole.reason for hole in comparison.holes)


def test_beyond_the_ceiling_of_a_known_difference_nothing_is_undecided() -> None:
    pair = known("changed", ", fields: [v]")
    pair.go_on("L:a=2 R:a=2 L!1 R!1")
    pair.go_on(" ".join(f"L:a={at} R:a={-at} L!{at} R!{at}" for at in range(3, 12)))
    assert not pair.driver.comparison.diverged
    pair.go_on("L:a=12 L!12 R!12")
    assert (pair.driver.comparison.diverged, pair.driver.comparison.holes) == (True, [])


@pytest.mark.parametrize("order", ["unordered", "{per_key: [k]}"])
def test_no_later_row_is_the_other_half_of_a_difference_of_tables(order: str) -> None:
    pair = Pair(order=order)
    pair.go_on("L:a=2 R:a=2 L!1 R!1 L:a=3 L!2 R!2 L:a=4 L!3 R!3")
    assert pair.go_on("R:a=3 L!4 R!4") == (1, ["changed"] * 3, [[], []])
    assert [len(divergence.finding.witness) for divergence in pair.driver.findings()] == [0, 0, 0]


def test_a_difference_that_was_told_is_not_told_again(pair: Pair) -> None:
    pair.go_on("L:a=2 R:a=2 L!1 R!1 L:a=3 L!2 R!2")
    assert pair.go_on("R:a=2 L!3 R!3 L:a=3 R:a=2 L!4 R!4") == (1, ["changed"], [[], []])
    assert pair.superseded() == [1, 2]
