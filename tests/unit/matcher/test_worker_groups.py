"""The groups of a status count each saved difference once, whatever happens to the worker."""

from __future__ import annotations

import orjson
import pytest

from tests.support.workers import SPEC, Bench
from twinstream.checkpoints import format as checkpoint
from twinstream.core.events import Side
from twinstream.reporting import divergences, open_groups
from twinstream.status.comparison import ResetRequest
from twinstream.status.groups import Group

NAMED = f"{SPEC}identity: [k, id]\n"
MET = 20
"""So many pairs behind a difference make its explanation final."""


def _write_pairs(bench: Bench, key: str, first: int, count: int, *, shift: int = 0) -> None:
    """Write events of a key to both sides; the candidate's numbers are shifted."""
    for side in Side:
        for number in range(first, first + count):
            value = number + (shift if side is Side.RIGHT else 0)
            bench.source.append(side, 0, orjson.dumps({"k": key, "id": number, "n": value}), 1_000 * number)


def _changed(bench: Bench, key: str, first: int, count: int) -> None:
    _write_pairs(bench, key, first, count, shift=1)
    _write_pairs(bench, key, first + count, MET)


def _groups(bench: Bench, *, older: int = 0) -> list[Group]:
    """The groups, whose counts add up to the saved differences; so do those by time, with `older` ones."""
    found = bench.status()
    total = found.closed_divergences.total
    assert sum(group.count for group in found.groups) == sum(found.found.counts) + older == total
    return found.groups


def _as_seen(bench: Bench) -> dict[int, int]:
    """How many reports were first seen in each of the bins."""
    told = bench.status().found
    seen = [int(report.first_seen.timestamp()) for report in bench.reports().values()]
    return {begin: sum(begin <= at < begin + told.width_seconds for at in seen) for begin in told.begins}


def test_saved_differences_are_grouped_with_their_pattern() -> None:
    bench = Bench(spec=NAMED)
    _changed(bench, "a", 1, 12)
    bench.run()
    (group,) = _groups(bench)
    assert (group.kind, group.fields, group.count, group.keys) == ("changed", ["n"], 12, 1)
    assert group.text == (
        "12 changed, all in `n`; all of k a; from 1970-01-01 00:00:01 to 00:00:12 UTC; value + 1 in 100 %."
    )
    assert set(group.examples) < set(bench.reports())


def test_differences_of_an_open_scope_are_in_provisional_groups_until_it_closes() -> None:
    bench = Bench(spec=NAMED)
    _write_pairs(bench, "a", 1, 12, shift=1)
    bench.run()
    (group,) = bench.status().provisional_groups
    assert (group.kind, group.fields, group.count) == ("changed", ["n"], 12)
    assert group.text.endswith("value + 1 in 100 %.")
    assert set(group.examples) <= set(bench.reports())
    assert _groups(bench) == []
    _write_pairs(bench, "a", 13, MET)
    bench.run()
    assert bench.status().provisional_groups == []
    assert [one.count for one in _groups(bench)] == [12]


def test_provisional_groups_count_all_at_once_and_read_a_bounded_number_at_each_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_groups, "READ_AT_A_LOOK", 5)
    monkeypatch.setattr(open_groups, "GROUPED", 11)
    bench = Bench(spec=NAMED)
    _write_pairs(bench, "a", 1, 12, shift=1)
    told = []
    for _ in range(4):
        bench.run(steps=1)
        groups = bench.status().provisional_groups
        told.append([(group.kind, group.fields, group.count) for group in groups])
    assert told[0] == [("changed", ["n"], 10), ("changed", None, 1), ("others", None, 1)], "of two looks"
    assert told[-1] == [("changed", ["n"], 11), ("others", None, 1)]
    assert {sum(count for *_, count in groups) for groups in told} == {12}


def test_differences_that_are_not_saved_are_in_provisional_groups() -> None:
    bench = Bench(spec=NAMED)
    bench.run()
    bench.storage.down = "the store is away"
    _changed(bench, "a", 1, 3)
    bench.run()
    assert _groups(bench) == []
    assert [(group.count, group.fields) for group in bench.status().provisional_groups] == [(3, ["n"])]
    bench.storage.down = None
    bench.run()
    assert [group.count for group in _groups(bench)] == [3]
    assert bench.status().provisional_groups == []


def test_over_a_crash_each_difference_counts_once() -> None:
    bench = Bench(spec=NAMED)
    _changed(bench, "a", 1, 5)
    bench.run()
    before = _groups(bench)
    bench.run(bench.restarted())
    assert _groups(bench) == before
    bench.storage.down = "the store is away"
    _changed(bench, "b", 1, 4)
    bench.run()  # It finds them, and falls before they are saved.
    bench.storage.down = None
    bench.run(bench.restarted())
    (group,) = _groups(bench)
    assert (group.count, group.keys, group.patterns[0].count) == (9, 2, 9)


def test_differences_beyond_those_that_are_kept_are_grouped_too() -> None:
    bench = Bench(spec=f"{NAMED}limits: {{kept_divergences: 2}}\n")
    for number in range(30):
        _changed(bench, f"k{number}", 1, 1)
    bench.run()
    assert len(bench.reports()) == 2
    assert [group.count for group in _groups(bench)] == [30]


def test_one_that_turns_up_elsewhere_moves_to_another_group_also_behind_a_restart() -> None:
    bench = Bench(spec=SPEC)
    bench.write(Side.LEFT, ("a", -1))
    bench.write_both(*(("a", number) for number in range(MET)))
    bench.run()
    assert [(group.kind, group.count) for group in _groups(bench)] == [("missing", 1)]
    bench.run(bench.restarted())
    bench.write(Side.RIGHT, ("a", -1))
    bench.write_both(*(("a", number) for number in range(100, 100 + MET)))
    bench.run()
    assert [(group.kind, group.count) for group in _groups(bench)] == [("reordered", 1)]


def test_the_state_of_an_older_version_leaves_its_differences_in_others() -> None:
    bench = Bench(spec=NAMED)
    _changed(bench, "a", 1, 5)
    bench.run()
    stored = bench.storage.stored
    head = checkpoint.decode(stored.head)
    del head["groups"], head["found"]
    bench.storage.stored = stored._replace(head=checkpoint.encode(head))
    bench.run(bench.restarted())
    _changed(bench, "b", 1, 2)
    bench.run()
    groups = _groups(bench, older=5)
    assert [(group.kind, group.count) for group in groups] == [("changed", 2), ("others", 5)]


def test_a_reset_empties_the_groups() -> None:
    bench = Bench(spec=NAMED)
    worker = bench.started()
    _changed(bench, "a", 1, 5)
    bench.run(worker)
    assert _groups(bench)
    request = ResetRequest(id="r-1", by="ann", reason="fixed", address="127.0.0.1", start="now")
    assert bench.reset(worker, request)
    assert bench.status().groups == []
    bench.run(bench.restarted())
    assert _groups(bench) == []


def test_differences_are_counted_at_the_time_at_which_their_reports_say_they_were_first_seen() -> None:
    bench = Bench(spec=NAMED)
    _write_pairs(bench, "open", 1, 2, shift=1)
    bench.run()  # They are shown, and their scope stays open.
    assert (len(bench.reports()), bench.status().found.counts) == (2, [])
    bench.clock.advance(300)
    _changed(bench, "a", 1, 3)
    bench.run()
    bench.run(bench.restarted())
    bench.clock.advance(300)
    _write_pairs(bench, "open", 3, MET)
    _changed(bench, "b", 1, 4)
    bench.run()
    told = bench.status().found
    assert [count for count in told.counts if count] == [2, 3, 4]
    assert dict(zip(told.begins, told.counts, strict=True)) == _as_seen(bench)
    assert _groups(bench)


def test_values_that_may_not_be_shown_are_in_no_group() -> None:
    bench = Bench(spec=NAMED.replace("show: [k, n]", "show: []"))
    _changed(bench, "secret", 4711, 12)
    bench.run()
    (group,) = _groups(bench)
    assert group.patterns == []
    told = group.model_dump_json(exclude={"first_at", "last_at", "text"})
    assert "secret" not in told + group.text


def test_where_records_are_not_kept_groups_know_the_kind_alone() -> None:
    bench = Bench(spec=f"{NAMED}keep: hashes\n")
    _changed(bench, "a", 1, 6)
    bench.run()
    (group,) = _groups(bench)
    assert (group.kind, group.fields, group.count, group.keys, group.patterns) == (
        "changed",
        None,
        6,
        None,
        [],
    )


def test_of_a_flood_what_is_not_read_counts_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divergences, "READ_AT_ONCE", 4)
    bench = Bench(spec=NAMED)
    _changed(bench, "a", 1, 10)
    bench.run()
    assert [(group.fields, group.count, group.keys, group.more_keys) for group in _groups(bench)] == [
        (None, 6, None, True),
        (["n"], 4, 1, False),
    ]
