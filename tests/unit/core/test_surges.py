from __future__ import annotations

import math
import random

import pytest

from twinstream.core.known import Known, KnownDifference
from twinstream.core.stretches import Stretches, united
from twinstream.core.surges import COMPARED, Rate, far_more, surges

HOUR = 3600
RULE = KnownDifference("PRICE-17", lambda _: True, count=10**9)


def stream(stretches: Stretches, first: int, last: int, *, hits: float, pairs: int = 100) -> Stretches:
    """So many pairs a second from one second to another, and beside them a share of them as hits."""
    due = 0.0
    for second in range(first, last):
        stretches.note(second * 1000, {COMPARED: pairs})
        due += hits * pairs
        count, due = int(due), due % 1
        if count:
            stretches.note_late(second * 1000, {"PRICE-17": count, COMPARED: count})
    return stretches


def rising(stretches: Stretches) -> list[str]:
    return [surge.rule for surge in surges(stretches)]


def test_a_rule_that_explains_as_much_as_ever_is_no_surge() -> None:
    assert rising(stream(Stretches(), 0, 2 * HOUR, hits=0.01)) == []


def test_a_rule_that_explains_far_more_is_a_surge_with_both_rates() -> None:
    stretches = stream(stream(Stretches(), 0, 2 * HOUR, hits=0.001), 2 * HOUR, 2 * HOUR + 600, hits=0.02)
    (surge,) = surges(stretches)
    assert surge.rule == "PRICE-17"
    assert surge.now.hits / surge.now.compared == pytest.approx(0.02, rel=0.1)
    assert surge.before.hits / surge.before.compared == pytest.approx(0.001, rel=0.2)


def test_a_rule_that_hits_for_the_first_time_is_a_surge_once_there_are_enough_hits() -> None:
    quiet = stream(Stretches(), 0, HOUR, hits=0)
    assert rising(stream(quiet, HOUR, HOUR + 9, hits=0.01)) == []
    assert rising(stream(quiet, HOUR + 9, HOUR + 60, hits=0.01)) == ["PRICE-17"]


def test_nothing_is_a_surge_at_the_start() -> None:
    stretches = Stretches()
    for begin in range(0, 1200, 60):
        stream(stretches, begin, begin + 60, hits=0.5)
        assert rising(stretches) == []


def test_more_traffic_is_no_surge() -> None:
    stretches = stream(Stretches(), 0, 4 * HOUR, hits=0.01, pairs=100)
    assert rising(stream(stretches, 4 * HOUR, 4 * HOUR + 600, hits=0.01, pairs=2000)) == []


def test_twice_as_much_is_not_far_more() -> None:
    stretches = stream(Stretches(), 0, 4 * HOUR, hits=0.01)
    assert rising(stream(stretches, 4 * HOUR, 4 * HOUR + 600, hits=0.02)) == []


def test_a_surge_ends_when_the_rule_explains_as_much_as_before() -> None:
    stretches = stream(Stretches(), 0, 4 * HOUR, hits=0.001)
    assert rising(stream(stretches, 4 * HOUR, 4 * HOUR + 600, hits=0.05)) == ["PRICE-17"]
    assert rising(stream(stretches, 4 * HOUR + 600, 5 * HOUR, hits=0.001)) == []


def test_a_surge_ends_a_day_after_the_last_hit() -> None:
    stretches = stream(Stretches(), 0, HOUR, hits=0)
    stream(stretches, HOUR, HOUR + 300, hits=0.05)
    assert rising(stream(stretches, HOUR + 300, 4 * HOUR, hits=0)) == ["PRICE-17"]
    for second in range(4 * HOUR, 26 * HOUR, 60):
        stretches.note(second * 1000, {COMPARED: 6000})
    assert rising(stretches) == []


def test_a_time_far_in_the_future_hides_no_surge() -> None:
    stretches = stream(Stretches(), 0, 2 * HOUR, hits=0.001)
    stretches.note(10**13, {COMPARED: 1})
    stretches.note_late(10**13, {"PRICE-17": 1, COMPARED: 1})
    assert rising(stream(stretches, 2 * HOUR, 2 * HOUR + 600, hits=0.02)) == ["PRICE-17"]


def test_a_surge_over_shards_is_that_of_their_sums() -> None:
    shards = [stream(Stretches(), 0, HOUR, hits=0, pairs=10) for _ in range(4)]
    for number, shard in enumerate(shards):
        stream(shard, HOUR, HOUR + 600, hits=0.001 if number else 0, pairs=10)
    assert [rising(shard) for shard in shards] == [[], [], [], []]
    assert rising(united(shard.state() for shard in shards)) == ["PRICE-17"]


def test_it_is_bounded_in_memory_for_any_length_of_time() -> None:
    stretches = Stretches()
    for second in range(0, 100 * 86_400, 97):
        stretches.note(second * 1000, {COMPARED: 50})
        stretches.note_late(second * 1000, {"PRICE-17": 1, COMPARED: 1})
    assert len(stretches.state()["begins"]) < 256


def test_pairs_of_a_run_that_was_read_late_are_counted_each_at_its_time() -> None:
    known = Known([RULE])
    known.compared([0, 600_000, 1_200_000], [5, 600_005, 1_300_000])
    assert [known.stretches.between(COMPARED, at, at) for at in (0, 600, 1200)] == [1, 1, 1]


def test_without_rules_nothing_is_counted() -> None:
    known = Known([])
    known.compared([0], [0])
    assert known.stretches.state()["begins"] == []


def test_far_more_needs_hits_and_as_much_before_as_now() -> None:
    assert not far_more(Rate(9, 1000), Rate(0, 10**6))
    assert far_more(Rate(10, 1000), Rate(0, 10**6))
    assert not far_more(Rate(500, 1000), Rate(0, 999))
    assert far_more(Rate(500, 1000), Rate(0, 1000))
    assert not far_more(Rate(10, 10), Rate(0, 0))


@pytest.mark.parametrize("rate", [0.0005, 0.01, 0.2])
def test_an_unchanged_rate_is_never_a_surge_by_chance(rate: float) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    drawn = random.Random(seed)

    def count(compared: int) -> int:
        mean = rate * compared
        return max(0, round(drawn.gauss(mean, (mean * (1 - rate)) ** 0.5)))

    for _ in range(20_000):
        now, before = drawn.randrange(1, 20_000), drawn.randrange(20_000, 2_000_000)
        assert not far_more(Rate(count(now), now), Rate(count(before), before))


def exact_tail(hits: int, total: int, share: float) -> float:
    return sum(math.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(hits, total + 1))


def test_what_is_far_more_is_no_chance_by_the_exact_law_either() -> None:
    told = 0
    for hits in range(10, 60):
        for before in range(40):
            if far_more(Rate(hits, 1000), Rate(before, 5000)):
                told += 1
                assert exact_tail(hits, hits + before, 3000 / 8000) < 1e-6
    assert told > 100
