"""Whether places are spread as noise spreads them."""

from __future__ import annotations

from random import Random

import pytest

from twinstream.calibration.spread import confined

COUNT = 1000
RUN = range(COUNT)
KEYS = {"taxi": [f"t{number % 5}" for number in RUN]}


@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
def test_noise_is_spread(share: float) -> None:
    for seed in range(30):
        random = Random(seed)
        places = [number for number in RUN if random.random() < share]
        assert confined(KEYS, places, RUN) is None, f"seed {seed}"


@pytest.mark.parametrize("part", [0.01, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("start", [0, 0.2, 0.4])
def test_a_stretch_of_time_is_no_noise_however_long(start: float, part: float) -> None:
    places = range(int(start * COUNT), int((start + part) * COUNT))
    part = confined(KEYS, places, RUN)
    assert part is not None
    assert "stretches of the run, and noise would show all the time" in part.why
    assert set(places) <= part.region


def test_bursts_at_two_times_are_no_noise() -> None:
    places = [*range(100), *range(900, COUNT)]
    assert confined({}, places, RUN) is not None


@pytest.mark.parametrize("taxis", [{"t1"}, {"t1", "t3"}, {"t0", "t1", "t2"}])
def test_what_shows_for_some_keys_alone_is_no_noise(taxis: set[str]) -> None:
    places = [number for number in RUN if KEYS["taxi"][number] in taxis]
    part = confined(KEYS, places, RUN)
    assert part is not None
    assert f"{len(taxis)} of the 5 values of `taxi`" in part.why
    assert part.region == set(places)
    assert confined(KEYS, places, RUN, by_key=False) is None
    assert confined(KEYS, places, RUN, own="taxi") is None


def test_only_the_events_that_have_a_field_count_for_it() -> None:
    there = [number for number in RUN if KEYS["taxi"][number] == "t1"]
    assert confined(KEYS, there, there) is None


def test_many_keys_of_few_events_need_not_all_show() -> None:
    random = Random(1)
    keys = {"flight": [random.randrange(200) for _ in RUN]}
    assert confined(keys, random.sample(RUN, 30), RUN) is None
    one = [number for number in RUN if keys["flight"][number] < 4]
    assert confined(keys, one, RUN) is not None
