"""Seeds that several processes run are told as if one did."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.simulation.many import Died, Runners
from tests.simulation.run import Failure
from tests.support.waiting import eventually


@pytest.fixture
def runners() -> Iterator[Runners]:
    with Runners(2) as found:
        yield found


def _nothing_breaks(folder: Path, seed: int) -> Failure | None:
    (folder / str(seed)).touch()
    return None


def _later_ones_are_faster(folder: Path, seed: int) -> Failure | None:
    """Seeds 3 and 4 break something, and the later one has done so first."""
    if seed == 4:
        (folder / "broke").touch()
    if seed == 3:
        eventually((folder / "broke").exists, what="the later one has broken something")
    return Failure(seed, "it broke") if seed in (3, 4) else None


def _dies(seed: int) -> Failure | None:
    if seed == 7:
        os._exit(9)
    return None


def _never_ends(_: int) -> Failure | None:
    while True:
        pass


def test_all_seeds_are_run(runners: Runners, tmp_path: Path) -> None:
    assert runners.first_failure(range(30), partial(_nothing_breaks, tmp_path)) is None
    assert {int(file.name) for file in tmp_path.iterdir()} == set(range(30))


def test_the_first_seed_is_told_that_breaks_something_and_not_the_one_that_is_found_first(
    runners: Runners, tmp_path: Path
) -> None:
    run = partial(_later_ones_are_faster, tmp_path)
    assert runners.first_failure(range(30), run) == Failure(3, "it broke")
    assert runners.first_failure(range(5, 30), run) is None, "they go on"


def test_a_process_that_dies_is_told_with_the_seeds_in_one_of_which_it_was(runners: Runners) -> None:
    with pytest.raises(Died, match=r"in one of the seeds range\([0-7], 30\)"):
        runners.first_failure(range(30), _dies)


def test_a_seed_that_never_ends_is_ended_with_the_others(tmp_path: Path) -> None:
    with Runners(2) as runners:
        running = runners._pool.submit(_never_ends, 0)
        assert runners.first_failure(range(3), partial(_nothing_breaks, tmp_path)) is None
    assert running.exception() is not None
