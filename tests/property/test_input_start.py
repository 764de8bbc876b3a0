"""However two versions began: only what both have consumed is compared, and all of it.

The start is held against its definition: by partition of the input the larger of the first offsets that the
versions have consumed, where control records tell these; else it is not later than the ends of first batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

from hypothesis import given
from hypothesis import strategies as st

from tests.support.beginners import LEFT, LENGTH, RIGHT, SPEC, World
from tests.support.searching import examples
from tests.support.workers import Bench
from twinstream.matcher.worker import BEAT_SECONDS, Worker
from twinstream.status.comparison import ComparisonStatus

STEPS = 16
"""So many rounds read everything that the world has, and look at it twice."""


def run(bench: Bench, rounds: Iterator[None]) -> ComparisonStatus:
    """Let a worker work beside the world and behind its end."""
    worker: Worker | None = None
    for _ in chain(rounds, repeat(None, STEPS)):
        if worker is None:
            bench.storage.lease = None
            worker = bench.worker()
            worker = worker if worker.start() else None
        if worker is not None:
            worker.step()
        bench.clock.advance(BEAT_SECONDS / 2)
    for _ in range(STEPS) if worker is not None else ():
        worker.step()
        bench.clock.advance(BEAT_SECONDS)
    return bench.status()


seeds = st.integers(0, 2**32)


@examples(60)
@given(seeds, st.booleans(), st.booleans())
def test_exactly_what_both_have_consumed_is_compared(seed: int, tells: bool, losing: bool) -> None:
    world = World(seed, tells, losing)
    bench = Bench(spec=SPEC, source=world.source)
    status = run(bench, world.steps())
    cut = world.cut()
    behind = {(place, n) for place, first in cut.items() for n in range(first, LENGTH)}
    lost = world.versions[RIGHT].lost & behind
    assert status.hole_count == 0, status.holes
    assert world.found(bench) == lost
    assert (status.matched, status.divergences.total) == (len(behind) - len(lost), len(lost))
    assert status.verdict == ("DIVERGED" if lost else "EQUIVALENT")
    assert status.unmatched.reference == status.unmatched.candidate == 0


@examples(60)
@given(seeds, st.booleans(), st.integers(0, 60), st.integers(0, 60))
def test_whatever_retention_has_taken_nothing_is_found_that_is_not_there(
    seed: int, tells: bool, left: int, right: int
) -> None:
    world = World(seed, tells, losing=True)
    rest = world.steps()
    for _ in range(world.rng.randrange(8)):
        next(rest, None)
    for side, count in ((LEFT, left), (RIGHT, right)):
        for partition, end in world.source.ends()[side].items():
            world.source.retain(side, partition, min(count, end))
    bench = Bench(spec=SPEC, source=world.source)
    status = run(bench, rest)
    assert status.hole_count == 0, status.holes
    assert world.found(bench) <= {(p, n) for p, n in world.versions[RIGHT].lost if n >= world.cut()[p]}
