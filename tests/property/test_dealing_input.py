"""A comparison by the progress of its input is the same in a Spark job of any number of shards.

The job runs without Spark: the real dealer and workers, over batches of any size, ends of processes and
batches that are tried again. The answer is held against the definition of the start.
"""

from __future__ import annotations

import random
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.support.beginners import LENGTH, RIGHT, SPEC, World
from tests.support.searching import examples
from tests.support.spark_tasks import MemoryLookout, Tasks
from twinstream.core.start.input_start import opened_of, state_of
from twinstream.spark.matcher import job as jobs
from twinstream.spark.matcher.job import start_found
from twinstream.spec.lint.sharding import refusal_by_key
from twinstream.spec.load import loads
from twinstream.starting.input_start import Found

KEPT = st.sampled_from(["", "keep: hashes\n"])
LAST = 5
"""So many batches read everything that the world has, and look at it twice."""


class NoStart(Exception):  # noqa: N818 - an answer
    """The versions have not said enough yet."""


def found_now(world: World, text: str) -> Found | None:
    """The start, if the driver of a job finds it now."""

    def wait(_reason: str) -> None:
        raise NoStart

    with patch.object(jobs, "START_SECONDS", 0):
        try:
            return start_found(loads(text), MemoryLookout(world.source), wait)
        except NoStart:
            return None


@examples(20)
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.integers(1, 3), KEPT)
def test_any_number_of_shards_compares_exactly_what_both_have_consumed(
    seed: int, tells: bool, losing: bool, shards: int, kept: str
) -> None:
    world, rng, text = World(seed, tells, losing), random.Random(seed), SPEC + kept
    assert refusal_by_key(loads(text), shards) is None
    tasks: Tasks | None = None
    for _ in world.steps():
        if tasks is None and (found := found_now(world, text)) is not None:
            found = Found.of(found.state())
            tasks = Tasks.of(text, world.source, f"{seed}", shards, found=found)
        if tasks is not None and rng.random() < 0.5:
            tasks.batch((rng.randrange(8), rng.randrange(8)))
            if rng.random() < 0.2:
                tasks.lose_processes()
    if tasks is None:
        tasks = Tasks.of(text, world.source, f"{seed}", shards, found=found_now(world, text))
    for _ in range(LAST):
        tasks.batch((8, 8))
    tasks.lose_processes()
    status = tasks.status()
    cut = world.cut()
    behind = {(place, n) for place, first in cut.items() for n in range(first, LENGTH)}
    lost = world.versions[RIGHT].lost & behind
    assert status.hole_count == 0, status.holes
    rows = [report["reference"] or report["candidate"] for report in tasks.reports.values()]
    assert {(row["p"], row["n"]) for row in rows} == lost
    assert (status.matched, status.divergences.total) == (len(behind) - len(lost), len(lost))
    assert status.verdict == ("DIVERGED" if lost else "EQUIVALENT"), status.reason
    assert status.unmatched.reference == status.unmatched.candidate == 0


@examples(20)
@given(st.integers(0, 2**32), st.booleans())
def test_a_start_that_was_kept_is_the_start_that_was_found(seed: int, tells: bool) -> None:
    world = World(seed, tells, losing=False)
    for _ in world.steps():
        if (found := found_now(world, SPEC)) is not None:
            assert opened_of(state_of(found.opened)) == found.opened
