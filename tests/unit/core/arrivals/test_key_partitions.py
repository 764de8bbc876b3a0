from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.arrivals import key_partitions as homes
from twinstream.core.arrivals.key_partitions import FIRST, SAMPLE, KeyPartitions, merged
from twinstream.core.events import Form
from twinstream.core.order import BARRIER, Epochs, Lanes


def forms(*lanes: object) -> list[Form]:
    return [Form(lane, b"", "event", b"") for lane in lanes]


def test_one_barrier_for_all_keeps_everything_in_one_partition() -> None:
    watched = KeyPartitions(Epochs(Lanes()))
    assert list(watched.displaced(forms("a"), 0)) == []
    assert list(watched.displaced(forms("b"), 1)) == [(0, 0)]


def test_barriers_with_copies_leave_each_key_its_partition() -> None:
    watched = KeyPartitions(Epochs(Lanes(), copies=True))
    assert list(watched.displaced(forms("a"), 0)) == []
    assert list(watched.displaced(forms(BARRIER), 1)) == []
    assert list(watched.displaced(forms("b"), 1)) == []
    assert list(watched.displaced(forms("a"), 1)) == [(0, 0)]


def test_a_key_that_has_moved_is_at_home_where_it_stood_last() -> None:
    watched = KeyPartitions(Lanes())
    found = [list(watched.displaced(forms("a"), partition)) for partition in (0, 1, 1, 0)]
    assert found == [[], [(0, 0)], [], [(0, 1)]]


def test_what_may_stand_anywhere_hides_nothing_behind_it() -> None:
    watched = KeyPartitions(Lanes())
    assert list(watched.displaced(forms("a"), 0)) == []
    assert list(watched.displaced(forms(*[b"b"] * SAMPLE, "a"), 1)) == [(SAMPLE, 0)]


def test_a_rare_key_is_found_in_small_runs_at_once_and_in_large_ones_in_time() -> None:
    watched = KeyPartitions(Lanes())
    for partition in (0, 1):
        run = [Form(lane, b"", "event", b"") for lane in (*range(partition * 100, partition * 100 + 40), "a")]
        assert list(watched.displaced(run, partition)) == ([(40, 0)] if partition else [])
    watched = past_its_first_events()
    runs = (forms(*[b"b"] * 999, "a"), forms(*[b"b"] * 500, "a", *[b"b"] * 499))
    found = [list(watched.displaced(runs[turn % 2], turn % 2)) for turn in range(20 * SAMPLE)]
    assert any(found)


def past_its_first_events() -> KeyPartitions:
    watched = KeyPartitions(Lanes())
    for partition in (0, 1):
        list(watched.displaced(forms(*[partition] * FIRST), partition))
    return watched


@pytest.mark.parametrize(("size", "keys"), [(1000, 16), (1000, 100), (100, 10), (500, 50)])
def test_keys_in_two_partitions_of_the_same_content_are_found(size: int, keys: int) -> None:
    run = forms(*(number % keys for number in range(size)))
    for watched in (KeyPartitions(Lanes()), past_its_first_events()):
        found = [list(watched.displaced(run, turn % 2)) for turn in range(100)]
        assert any(found)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homes, "LIMIT", 3)
    watched = KeyPartitions(Lanes())
    for lane in range(20):
        assert list(watched.displaced(forms(lane), 0)) == []
    assert len(watched._home_of) <= 4


def test_homes_are_known_over_restarts_and_the_latest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homes, "SAVED", 2)
    watched = KeyPartitions(Lanes())
    for lane in ("a", "b", ("c", 7)):
        list(watched.displaced(forms(lane), 0))
    for _ in range(2):
        saved = watched.state(whole=True)
        watched = KeyPartitions(Lanes())
        watched.restore(saved)
    assert list(watched.displaced(forms("a"), 1)) == [], "it is forgotten"
    assert list(watched.displaced(forms("b"), 1)) == [(0, 0)]
    assert list(watched.displaced(forms(("c", 7)), 0)) == []
    assert list(watched.displaced(forms(("c", 7)), 1)) == [(0, 0)]


def test_a_change_has_the_classes_since_the_last_state_and_the_newest_partition_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(homes, "LIMIT", 4)
    monkeypatch.setattr(homes, "SAVED", 3)
    watched = KeyPartitions(Lanes())
    states = []
    for lanes in ("ab", "b", "c", "", "cde"):
        list(watched.displaced(forms(*lanes), len(states)))
        states.append(watched.state(whole=not states))
    assert [len(state) for state in states] == [2, 1, 1, 0, 3]
    again = KeyPartitions(Lanes())
    again.restore(merged(states))
    moved = [list(again.displaced(forms(lane), 9)) for lane in "abcde"]
    assert moved == [[], [], [(0, 4)], [(0, 4)], [(0, 4)]]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_pair_of_two_partitions_is_told_once_whatever_comes_over_a_restart(restarts: bool) -> None:
    driver = Driver(spec("unordered", "co_partitioned: true"))
    for number in range(3):
        driver.feed(LEFT, [record({"v": number})], partition=0)
        driver.feed(RIGHT, [record({"v": number})], partition=1)
        if restarts:
            driver.restart()
    (hole,) = driver.comparison.holes
    assert "`co_partitioned: true`" in hole.reason
