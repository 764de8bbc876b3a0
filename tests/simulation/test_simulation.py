"""Thousands of disturbed runs end as the undisturbed one, and planted bugs are found.

A failure prints the command that replays its seed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.simulation import planted
from tests.simulation.finding import RECORD, recorded, search
from tests.simulation.many import Runners
from tests.simulation.run import logged
from tests.support.marks import one_a_change

SEEDS = 150
NIGHTLY_SEEDS = 2_000


@pytest.fixture(scope="module")
def runners() -> Iterator[Runners]:
    with Runners() as found:
        yield found


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seeds",
    one_a_change([range(SEEDS), range(SEEDS, NIGHTLY_SEEDS)]),
    ids=["each change", "each night"],
)
def test_whatever_happens_a_run_ends_as_if_nothing_had(runners: Runners, seeds: range) -> None:
    failure = runners.first_failure(seeds)
    assert failure is None, str(failure)


def test_a_planted_bug_alters_what_is_there() -> None:
    plants = [one for one in vars(planted).values() if getattr(one, "__module__", "") == planted.__name__]
    altered = [(one, name) for one in plants if isinstance(one, type) for name in vars(one)]
    lost = [f"{one.__name__}.{name}" for one, name in altered if not hasattr(one.__base__, name)]
    assert not lost


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", planted.ALL)
def test_a_planted_bug_is_found(
    runners: Runners, name: str, record_property: Callable[[str, object], None]
) -> None:
    seed = recorded().get(name)
    failure = None if seed is None else planted.find(name, seed)
    if failure is None:
        # What seeds mean has changed. The bug is found all the same, but the next run would search, too.
        failure = search(runners, name)
        finds = "none" if failure is None else failure.seed
        record_property("note", f"{name} is found by seed {finds}, and not by {seed}: {RECORD}")
    assert failure is not None
    assert re.search(planted.ALL[name].told, failure.what)
    print(f"found: {failure}")


def test_a_seed_is_recorded_of_each_planted_bug_and_of_no_other() -> None:
    assert recorded().keys() == planted.ALL.keys(), RECORD


def test_a_seed_decides_everything() -> None:
    first, second = logged(7), logged(7)
    assert first == second
    assert len(first[0]) > 10
