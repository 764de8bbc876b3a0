"""What is not vouched for, and clocks, when a state is divided by key and joined."""

from __future__ import annotations

import pytest

from tests.support.rides import KINDS
from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.state.dividing import divided, joined
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import snapshot
from twinstream.spec.compile.addresses import Addresses

SHARDS = 4
LOST = "limits: {scope_events: 32}"
EVENT_TIME = "overdue: {clock: event_time, field: n, unit: s, after: 1s}"


def event(key: int, number: int = 0) -> bytes:
    return record({"k": key, "n": number})


def shards_of(driver: Driver, count: int = SHARDS) -> list[Comparison]:
    """The comparison of a driver in shards."""
    parts = divided(snapshot(driver.comparison), Addresses(driver.codec, count).of_stored, count)
    found = []
    for part in parts:
        comparison = Comparison(driver.comparison.rules)
        restore(comparison, part.state, driver.codec.form_again, 0.0)
        found.append(comparison)
    return found


def whole_of(driver: Driver, shards: list[Comparison]) -> Comparison:
    state, _ = joined([snapshot(shard) for shard in shards])
    comparison = Comparison(driver.comparison.rules)
    restore(comparison, state, driver.codec.form_again, 0.0)
    return comparison


@pytest.fixture
def doubted() -> Driver:
    """A difference of each of six keys: that of key 0 is vouched for, the others are not."""
    driver = Driver(spec("{per_key: [k]}"))
    for key in range(6):
        driver.comparison.certainty.moment += 1
        driver.feed(LEFT, [event(key, -1), *(event(key, number) for number in range(20))])
        driver.feed(RIGHT, [event(key, number) for number in range(20)])
        driver.comparison.review()
        if key == 0:
            driver.comparison.proven.vouch(driver.comparison.certainty.moment)
    assert driver.kinds() == ["missing"] * 6
    return driver


def test_differences_that_are_not_vouched_for_are_disowned_in_their_shards_and_no_others(
    doubted: Driver,
) -> None:
    shards = shards_of(doubted)
    assert sum(len(shard.proven.doubted) for shard in shards) == 5
    for shard in shards:
        shard.disown()
    assert sum(len(shard.take_tainted()) for shard in shards) == 5
    assert [shard.diverged for shard in shards] == [True, False, False, False]


def test_differences_count_for_sure_once_each_shard_is_vouched_for(doubted: Driver) -> None:
    shards = shards_of(doubted)
    for shard in shards:
        shard.proven.vouch(shard.certainty.moment)
    assert not any(shard.proven.doubted for shard in shards)
    assert any(shard.proven.for_sure for shard in shards)


def test_what_is_vouched_for_in_one_shard_stays_so_and_the_rest_does_not(doubted: Driver) -> None:
    shards = shards_of(doubted)
    numbers = [len(shard.proven.doubted) for shard in shards]
    busy = next(place for place, count in enumerate(numbers) if count)
    for ahead in range(100):
        shards[busy].certainty.moment += ahead
    shards[busy].proven.vouch(shards[busy].certainty.moment)
    whole = whole_of(doubted, shards)
    assert len(whole.proven.doubted) == 5 - numbers[busy]
    whole.disown()
    assert len(whole.take_tainted()) == 5 - numbers[busy]
    assert whole.diverged


def test_the_frontier_of_event_times_is_the_furthest_of_all_shards() -> None:
    driver = Driver(spec("{per_key: [k]}", EVENT_TIME))
    driver.feed(LEFT, [event(key, 10) for key in range(12)])
    driver.look()
    shards = shards_of(driver)
    ahead = shards_of(driver)[0]
    driver.feed(LEFT, [event(key, 50) for key in range(12)])
    driver.look()
    shards[2] = shards_of(driver)[2]
    for order in (shards, [ahead, *shards[1:]]):
        times = whole_of(driver, order).clocks.times
        assert times is not None
        assert (times.reached(LEFT), times.newest_ms(LEFT, 0)) == (49_000, 50_000)


def test_a_hole_of_one_shard_is_one_of_the_whole_and_that_of_the_whole_is_one_of_each() -> None:
    driver = Driver(spec("{per_key: [k]}"))
    driver.comparison.overflow("limits.unmatched_events (1)")
    shards = shards_of(driver)
    assert all(shard.certainty.tainted for shard in shards)
    assert len(whole_of(driver, shards).holes) == 1
    calm = shards_of(Driver(spec("{per_key: [k]}")))
    calm[3].overflow("limits.unmatched_events (1)")
    assert whole_of(driver, calm).certainty.tainted
    assert [whole_of(driver, calm).unmatched(side) for side in Side] == [0, 0]


def test_what_one_shard_has_told_of_the_partitions_of_pairs_the_whole_and_its_shards_do_not_tell_again() -> (
    None
):
    driver = Driver(spec("{per_key: [k]}", "co_partitioned: true"))
    shards = shards_of(driver)
    shards[2].watch.keeps_partitions = False
    whole = whole_of(driver, shards)
    assert not whole.watch.keeps_partitions
    driver.comparison = whole
    assert not any(shard.watch.keeps_partitions for shard in shards_of(driver))


def test_what_lost_scopes_keep_goes_with_the_scope_of_each_key() -> None:
    driver = Driver(spec("{by_key: [k], inner: {barrier: day, inner: unordered}}", f"{KINDS}{LOST}"))
    keys = range(8)

    def end_of_day(key: int) -> list[bytes]:
        return [record({"t": "day", "k": key, "n": 2}), event(key, 5), event(key, 6)]

    for key in keys:
        for side in Side:
            numbers = range(100 * side, 100 * side + 40)
            driver.feed(side, [*(event(key, number) for number in numbers), end_of_day(key)[0]])
    driver.comparison.review()
    assert all(scope.lost for scope in driver.comparison.scopes)
    assert len(driver.comparison.scopes) == len(keys)
    for key in keys[1:]:
        driver.feed(LEFT, end_of_day(key))
    shards = shards_of(driver)
    assert sum(len(snapshot(shard)["since_lost"]) for shard in shards) == len(keys) - 1
    for shard in shards[1:]:
        assert [shard.unmatched(side) for side in Side] == shard.ledger.given_up
        assert shard.unmatched(LEFT) == sum(len(row[1]["records"]) for row in snapshot(shard)["since_lost"])
    driver.comparison = whole_of(driver, shards)
    for key in reversed(keys):
        driver.feed(RIGHT, end_of_day(key))
    assert driver.comparison.matched == 3 * (len(keys) - 1)
    assert len(driver.comparison.scopes) == 1


def test_the_time_since_which_copies_wait_is_known_also_where_another_partition_has_an_older_one() -> None:
    driver = Driver(spec("unordered", "overdue: {clock: arrival, after: 60s}\n"))
    for side, at_ms, partition in ((LEFT, 30, 0), (LEFT, 100, 0), (LEFT, 90, 1), (RIGHT, 31, 0)):
        driver.offsets[side] = 2 * at_ms
        driver.feed(side, [event(1)], [1000 * at_ms], partition)
    driver.comparison.review()
    whole = Driver(driver.spec)
    states = [snapshot(driver.comparison), snapshot(Driver(driver.spec).comparison)]
    restore(whole.comparison, joined(states)[0], driver.codec.form_again, 0.0)
    for comparison in (driver.comparison, whole.comparison):
        assert [since_ms for since_ms, _ in comparison.index.chains(LEFT)] == [30_000]
