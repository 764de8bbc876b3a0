"""The generated input: same seed, same bytes; events due on schedule; disorder within its bounds."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.ad_events import ADS, AdEvents, Disorder, ad_name
from loadtest.generator import arguments
from loadtest.schedule import Schedule

START_MS = 1_700_000_000_000
IN_ORDER = Disorder(share=0.0)


def events(seed: int = 7, rate: float = 1000, disorder: Disorder = IN_ORDER) -> AdEvents:
    return AdEvents(seed, START_MS, Schedule(rate), disorder)


def times(source: AdEvents, count: int) -> list[int]:
    return [json.loads(value)["event_time"] for _, value in source.between(0, count)]


def how_far_back(disorder: Disorder, count: int = 5_000) -> list[int]:
    stamped, scheduled = times(events(disorder=disorder), count), times(events(), count)
    return [due - at for at, due in zip(stamped, scheduled, strict=True)]


def test_the_seed_alone_gives_the_bytes_wherever_a_stretch_begins() -> None:
    made = list(events(seed=3).between(0, 1_000))
    assert list(events(seed=3).between(0, 1_000)) == made
    assert list(events(seed=3).between(400, 1_000)) == made[400:]
    assert list(events(seed=4).between(0, 10)) != made[:10]


def test_the_bytes_of_seed_zero_stay_as_they_are() -> None:
    key, value = AdEvents(0, 0, Schedule(500), IN_ORDER).event(0)
    assert key == b"ad-869"
    assert value == (
        b'{"user_id":"user-43408","page_id":"page-1886","ad_id":"ad-869","ad_type":"banner",'
        b'"event_type":"view","event_time":0,"ip_address":"10.52.42.14"}'
    )


def test_the_key_is_the_ad_and_every_ad_appears() -> None:
    made = list(events().between(0, 20_000))
    assert all(json.loads(value)["ad_id"].encode() == key for key, value in made)
    assert {key.decode() for key, _ in made} == {ad_name(ad) for ad in range(ADS)}


def test_an_event_carries_its_scheduled_time() -> None:
    assert times(events(rate=250), 5) == [START_MS, START_MS + 4, START_MS + 8, START_MS + 12, START_MS + 16]


def test_disorder_is_bounded_and_hits_its_share() -> None:
    back = how_far_back(Disorder(share=0.2, seconds=3))
    assert all(0 <= milliseconds < 3_000 for milliseconds in back)
    assert 0.15 < sum(milliseconds > 0 for milliseconds in back) / len(back) < 0.25


def test_late_events_are_beyond_the_disorder() -> None:
    back = how_far_back(Disorder(share=0.0, seconds=4, late_share=0.1, late_seconds=30))
    late = [milliseconds for milliseconds in back if milliseconds]
    assert 0.07 < len(late) / len(back) < 0.13
    assert all(4_000 <= milliseconds < 30_000 for milliseconds in late)


def test_default_disorder_stays_within_the_watermark_of_the_counts() -> None:
    assert max(how_far_back(Disorder())) < 10_000


schedules = st.builds(
    Schedule,
    rate=st.floats(0.1, 100_000),
    start=st.floats(0, 100_000),
    ramp_seconds=st.sampled_from([0.0, 0.5, 10.0, 600.0]),
)


@given(schedules, st.integers(0, 1_000_000))
def test_due_times_never_go_back(schedule: Schedule, n: int) -> None:
    due = [schedule.due_seconds(n + i) for i in range(10)]
    assert all(earlier <= later for earlier, later in pairwise(due))


@given(schedules, st.floats(0, 3_600))
def test_the_count_is_of_the_events_that_are_due(schedule: Schedule, seconds: float) -> None:
    count = schedule.due_count(seconds)
    assert schedule.due_seconds(count + 1) >= seconds - 1e-6
    assert schedule.due_seconds(max(count - 2, 0)) <= seconds + 1e-6


def test_a_ramp_rises_linearly_to_the_rate() -> None:
    ramp = Schedule(rate=1000, start=0, ramp_seconds=10)
    assert ramp.due_seconds(5_000) == pytest.approx(10)
    assert ramp.due_seconds(1_250) == pytest.approx(5)
    assert ramp.due_seconds(6_000) == pytest.approx(11)


def test_a_schedule_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="rate must be above 0 events per second, not 0"):
        Schedule(rate=0)
    with pytest.raises(ValueError, match="cannot start at -1"):
        Schedule(rate=1, start=-1)


def test_shares_above_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must lie in 0..1 together, not 0.7 and 0.5"):
        Disorder(share=0.7, late_share=0.5)
    with pytest.raises(ValueError, match=r"late events .* must be later than 4.0 s"):
        Disorder(late_share=0.1, late_seconds=1)


def test_a_duration_is_a_number_of_events() -> None:
    assert arguments(["--brokers", "b:1", "--rate", "50", "--duration", "10"]).count == 500


def test_a_bad_option_ends_with_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        arguments(["--brokers", "b:1", "--rate", "-5"])
    assert "rate must be above 0" in capsys.readouterr().err


def test_event_times_may_run_faster_than_the_schedule() -> None:
    fast = times(AdEvents(7, START_MS, Schedule(1000), IN_ORDER, speed=6), 1_000)
    assert [at - START_MS for at in fast] == [6 * (at - START_MS) for at in times(events(), 1_000)]
