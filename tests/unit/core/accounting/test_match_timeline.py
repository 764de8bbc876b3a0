"""Evidence since a moment is never more than there is, and stays small."""

from __future__ import annotations

from twinstream.core.accounting.match_timeline import LIMIT, MatchTimeline, united

DAY = 86_400


def noted(*seconds: int) -> MatchTimeline:
    stretches = MatchTimeline()
    for second in seconds:
        stretches.note(second * 1000, {"ride": 1})
    return stretches


def since(stretches: MatchTimeline, second: float) -> int:
    return stretches.since(second).total()


def test_a_month_of_seconds_stays_small_and_its_last_hour_exact_to_an_eighth() -> None:
    newest = 30 * DAY
    stretches = noted(*range(newest - 3 * DAY, newest, 7))
    assert len(stretches.state()["begins"]) <= LIMIT
    for age in (60, 600, 3600, DAY):
        asked, there = since(stretches, newest - age), age // 7
        assert there * 7 // 8 - 2 <= asked <= there + 1


def test_one_time_in_the_far_future_does_not_make_the_others_coarse() -> None:
    stretches = noted(*range(1000, 1200), 10**9, *range(1200, 1400))
    for second in range(1400, 1400 + 2 * LIMIT):
        stretches.note(second * 1000, {"ride": 1})
    newest = 1400 + 2 * LIMIT
    assert since(stretches, newest - 16) == 17
    assert len(stretches.state()["begins"]) <= LIMIT


def test_many_times_in_the_far_future_stay_bounded() -> None:
    stretches = noted(*range(10**9, 10**9 + 5 * LIMIT), 1, 2)
    assert len(stretches.state()["begins"]) <= LIMIT
    assert since(stretches, 0) == 5 * LIMIT + 2


def test_what_several_have_adds_up() -> None:
    parts = [noted(100, 101), noted(101, 300)]
    both = united(part.state() for part in parts)
    assert [since(both, moment) for moment in (0, 101, 102, 301)] == [4, 3, 1, 0]


def test_a_state_of_nothing_has_nothing() -> None:
    assert united([]).since(0) == {}
    assert united([MatchTimeline().state()]).state() == {"at": 0, "begins": [], "matched": {}}
