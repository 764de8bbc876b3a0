from __future__ import annotations

from typing import Any

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, batches, record, spec
from twinstream.core.accounting.halves import REACH
from twinstream.core.accounts import Hole
from twinstream.core.diagnosis.looks import MEETING_RUN
from twinstream.core.events import Side
from twinstream.core.overdue.judging import Lag
from twinstream.core.state.restore import of_this_version, restore
from twinstream.core.state.snapshot import Sweep, begin_sweep, delta, snapshot, sweeping
from twinstream.errors import CheckpointError

IN_DISPUTE = """
known_differences:
- {id: moved, when: {divergences: [reordered]}, owner: me, ceiling: {count: 3}, expires: 2099-01-01}
"""


def plain(data: Any) -> bool:
    """Whether it is made of what any format can carry."""
    if isinstance(data, dict):
        return all(type(name) is str and plain(value) for name, value in data.items())
    if isinstance(data, list):
        return all(map(plain, data))
    return isinstance(data, (int, str, bytes, type(None)))


def test_a_snapshot_is_plain_data() -> None:
    driver = Driver(spec("{per_key: [k]}", "undecodable: {budget: 5}"))
    driver.take(batches("L:a1 L:b1 L:c1 R:a1 R:b2 L:c2"))
    driver.comparison.hole(Hole("lost", RIGHT, 3, 9))
    driver.comparison.undecodable(LEFT)
    driver.comparison.ignore(RIGHT, 2)
    assert plain(snapshot(driver.comparison))


@pytest.mark.parametrize("name", ["doubts", "given_up", "scopes"])
def test_a_state_of_another_structure_is_refused_by_name(name: str) -> None:
    driver = Driver(spec("{per_key: [k]}"))
    other = {key: value for key, value in snapshot(driver.comparison).items() if key != name}
    with pytest.raises(CheckpointError, match=f"has no '{name}', so another version wrote it: remove the"):
        restore(Driver(driver.spec).comparison, other, driver.codec.form, read_at=7.0)


def _held(*places: tuple[int, int]) -> dict[str, Any]:
    driver = Driver(spec("{per_key: [k]}"))
    driver.take(batches("L:a1 L:a2 R:a2"))
    state = snapshot(driver.comparison)
    columns = state["held"][LEFT]
    columns["partitions"], columns["offsets"] = map(list, zip(*places, strict=True))
    return state


@pytest.mark.parametrize(
    ("places", "told"),
    [
        (((0, 1), (0, 1)), "holds two events at offset 1 of partition 0: remove the comparison's keys"),
        (((0, 1), (0, 7)), "lacks the event at offset 0 of partition 0: remove the comparison's keys"),
    ],
    ids=["one place twice", "a place without an event"],
)
def test_a_state_whose_places_do_not_tell_its_events_is_refused_by_the_place(
    places: tuple[tuple[int, int], ...], told: str
) -> None:
    driver = Driver(spec("{per_key: [k]}"))
    with pytest.raises(CheckpointError, match=f"^the stored state {told}"):
        restore(driver.comparison, _held(*places), driver.codec.form, read_at=7.0)


def test_a_fault_within_a_restore_is_not_called_another_version() -> None:
    with pytest.raises(KeyError), of_this_version():
        raise KeyError((0, 20))


def test_what_was_found_is_restored() -> None:
    """Differences that are settled, known, to be completed, and open; of the open ones the left is ahead."""
    known = "{id: K-1, when: {divergences: [extra, reordered]}, owner: me, expires: 2100-01-01, "
    known += "ceiling: {count: 1}}"
    driver = Driver(spec("{per_key: [k]}", f"known_differences: [{known}]"))
    equal = " ".join(f"L:a{number} R:a{number}" for number in range(10, 10 + MEETING_RUN))
    driver.take(batches(f"L:a1 L:a2 L:a1 R:a3 {equal}"), review=True)
    driver.take(batches("L:b1 R:b2 L:b3"), review=True)
    comparison = driver.comparison
    assert comparison.differences.found_by_kind == {"missing": 2}
    assert [half.finding.kind for half in comparison.differences.disputed.all(LEFT)] == ["missing"]
    assert comparison.differences.known.hits == {"K-1": 1}
    assert [half.finding.kind for half in comparison.differences.explained.all(RIGHT)] == ["extra"]
    assert len(comparison.scopes) == 1
    before = snapshot(comparison)
    driver.restart()
    after = snapshot(driver.comparison)
    assert set(before.pop("recent")) == set(after.pop("recent"))
    assert after == before


def test_in_a_state_of_an_earlier_version_each_hole_may_taint_a_check() -> None:
    driver, again = Driver(spec("{per_key: [k]}")), Driver(spec("{per_key: [k]}"))
    driver.comparison.certainty.note_unclear(Hole("a copy or not", RIGHT, 0, 1))
    assert driver.comparison.certainty.tainting == []
    earlier = {name: part for name, part in snapshot(driver.comparison).items() if name != "tainting"}
    restore(again.comparison, earlier, again.codec.form, read_at=7.0)
    assert again.comparison.certainty.tainting == driver.comparison.holes
    assert not again.comparison.certainty.tainted


def test_a_key_that_has_another_partition_after_a_restart_is_a_hole() -> None:
    driver = Driver(spec("{per_key: [k]}"))
    values = [record({"k": "a", "v": number}) for number in range(2)]
    for side in (LEFT, RIGHT):
        driver.feed(side, values[:1])
    for _ in range(5):
        driver.restart()
    driver.feed(RIGHT, values[1:], partition=1)
    (hole,) = driver.comparison.holes
    assert "are in two partitions (0 and 1)" in hole.reason


def test_a_delta_has_less_of_a_sweep_where_it_has_many_changes_and_half_in_any_case() -> None:
    driver = Driver(spec("{per_key: [k]}"))
    driver.take(batches(" ".join(f"L:a{number}" for number in range(200))))
    snapshot(driver.comparison)
    begin_sweep(driver.comparison)
    taken = []
    for changes in (0, 25, 100, 0, 0):
        driver.take(batches(" ".join(f"L:b{number}" for number in range(changes))))
        taken.append(len(delta(driver.comparison, Sweep(60, first=False))["again"][LEFT]["records"]))
    assert taken == [60, 35, 31, 60, 14]
    assert not sweeping(driver.comparison)


@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_read_beyond_a_difference_in_dispute_ends_it_also_after_a_restart(*, restarts: bool) -> None:
    driver = Driver(spec("{per_key: [k]}", IN_DISPUTE))
    waits, events = {"k": 2}, [{"k": 1, "v": number} for number in range(40)]

    def feed(side: Side, values: list[dict[str, int]], partition: int = 0, offset: int = 0) -> None:
        driver.offsets[side] = offset
        driver.feed(side, [record(value) for value in values], [1000] * len(values), partition)
        driver.comparison.certainty.moment += len(values)
        driver.comparison.review()

    def look() -> None:
        driver.comparison.survey((True, True), Lag(read_s=1e9))
        driver.comparison.review()

    feed(RIGHT, [{"k": 5}], partition=1)
    feed(RIGHT, [waits, events[0], *events[2:]])
    feed(LEFT, events)
    for side in Side:
        feed(side, [{"k": 3}], offset=2 * REACH)
    look()
    assert driver.comparison.in_dispute, "an event before it waits"
    if restarts:
        driver.restart()
    feed(LEFT, [waits], offset=2 * REACH + 1)
    look()
    assert (driver.comparison.in_dispute, driver.comparison.diverged) == (False, True)
