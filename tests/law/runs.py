"""One way to feed a trace, and the answer at the end of both sides.

A *plan* says how the sides interleave, in which batches they come, where the matcher is restarted, how often
it reviews and surveys. By the law of the answer none of this may show in the outcome. What a plan does at a
row depends on the row's number alone, so that it does the same to what is left when a trace is shrunk.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from tests.law.declarations import Declaration
from tests.law.traces import Row, Trace
from tests.support.streams import Driver, record
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.verdict import verdict_of
from twinstream.reporting.accounts import account_of

INTERLEAVINGS = ("alternate", "reference_first", "candidate_first", "random", "bursts")
WHOLE = 1_000_000
"""A batch of all rows of a side."""
SECOND_MS = 1000
Queue = tuple[Side, int]
"""A partition of a side."""
Time = tuple[float, float]
BEFORE_ALL, BEHIND_ALL = (-1.0, 0.0), (2.0 * WHOLE, 0.0)


@dataclass(frozen=True)
class Plan:
    """How a trace is fed.

    A restart comes behind each batch with the chance `restarts`, a review behind each so many (`reviews`),
    and with `surveys` a look at all that waits. `ends_early`: a side ends with its last row, else both do at
    the end.
    """

    interleaving: str = "alternate"
    batch: int = 1
    restarts: float = 0.0
    reviews: int = 1
    surveys: bool = False
    ends_early: bool = False
    seed: int = 0


PLAIN = Plan()
"""What all other plans are held against."""


RESTARTS = 12
"""About how often a run of a long trace is restarted at most: each costs as much as a hundred events."""


REVIEWS = 100
"""About how often a long trace is reviewed at most, which where much differs costs as much."""


def plans(rng: random.Random, count: int, rows: int) -> list[Plan]:
    """Random plans for so many rows of both sides; both extremes of the interleaving are among them."""
    often = min(1.0, RESTARTS / max(1, rows))
    fixed = [
        Plan("reference_first", WHOLE),
        Plan("candidate_first", 1, restarts=rng.choice([0.0, often]), reviews=max(1, rows // REVIEWS)),
    ]
    return [*fixed, *(_plan(rng, rows) for _ in range(count - len(fixed)))]


def _plan(rng: random.Random, rows: int) -> Plan:
    batch = rng.choice([1, 1, 3, 7, 100, WHOLE])
    often = min(1.0, RESTARTS * batch / max(1, rows))
    return Plan(
        rng.choice(INTERLEAVINGS),
        batch,
        restarts=rng.choice([0.0, 0.0, 0.0, often / 4, often / 2, often]),
        reviews=max(rng.choice([1, 1, 5, WHOLE]), rows // (REVIEWS * batch)),
        surveys=rng.random() < 0.25,
        ends_early=rng.random() < 0.5,
        seed=rng.randrange(1 << 16),
    )


class Chunk(NamedTuple):
    """Rows of one partition that are fed in one batch; without rows, the end of the side."""

    side: Side
    rows: tuple[Row, ...]
    restarts: bool = False


def chunks(plan: Plan, trace: Trace) -> Iterator[Chunk]:
    """The batches of a trace, as a plan has them come, each side's end among them."""
    timed: list[tuple[Time, Chunk]] = []
    for side in Side:
        queues: dict[int, list[Row]] = defaultdict(list)
        for row in trace[side]:
            queues[row.partition].append(row)
        came = [one for partition, rows in queues.items() for one in _timed(plan, (side, partition), rows)]
        last = max(came, key=itemgetter(0))[0] if came else BEFORE_ALL
        timed += [*came, ((last[0], last[1] + 0.5) if plan.ends_early else BEHIND_ALL, Chunk(side, ()))]
    return (chunk for _, chunk in sorted(timed, key=itemgetter(0)))


def _timed(plan: Plan, queue: Queue, rows: list[Row]) -> Iterator[tuple[Time, Chunk]]:
    """The batches of one partition, with the times at which they come."""
    for number, batch in groupby(rows, lambda row: row.number // plan.batch):
        restarts = _chance(plan.seed, queue, number) < plan.restarts
        yield _when(plan, queue, number), Chunk(queue[0], tuple(batch), restarts)


def _when(plan: Plan, queue: Queue, number: int) -> Time:
    """When a batch of a partition comes."""
    side, partition = queue
    match plan.interleaving:
        case "alternate":
            return float(number), side + partition / 100
        case "reference_first" | "candidate_first":
            first = Side.LEFT if plan.interleaving == "reference_first" else Side.RIGHT
            return float(side is not first), number + partition / 100
    return _clock(plan.seed, queue, plan.interleaving == "bursts")[min(number, 999)], float(side)


@cache
def _chance(seed: int, queue: Queue, number: int) -> float:
    return random.Random(f"{seed} {queue} {number}").random()


@cache
def _clock(seed: int, queue: Queue, bursts: bool) -> list[float]:
    """Rising random times for the batches of a partition; with bursts it stands still now and then."""
    rng = random.Random(f"{seed} {queue}")
    now, times = 0.0, []
    for _ in range(1000):
        now += rng.expovariate(1) * (rng.choice([0.05] * 9 + [20]) if bursts else 1)
        times.append(now)
    return times


class Outcome(NamedTuple):
    """The answer at the end of both sides; what is 0 is left out."""

    verdict: str
    reference: dict[str, int]
    candidate: dict[str, int]
    kinds: dict[str, int]
    explained: dict[str, int]


def outcome(declaration: Declaration, trace: Trace, plan: Plan) -> Outcome:
    """Feed a trace by a plan, and answer as `check` does at the end."""
    driver = Driver(declaration.spec())
    for side in Side:
        driver.comparison.expect_partitions(side, range(trace.partitions))
    for count, chunk in enumerate(chunks(plan, trace), 1):
        _take(driver, declaration, chunk)
        if count % plan.reviews == 0:
            driver.comparison.review()
            if plan.surveys:
                driver.look(float(count))
        if chunk.restarts:
            driver.findings()
            driver.restart()
    driver.comparison.review()
    driver.comparison.refresh()
    return _answer(driver)


def _take(driver: Driver, declaration: Declaration, chunk: Chunk) -> None:
    if not chunk.rows:
        driver.comparison.end(chunk.side)
        return
    records = [record(row.event, row.style) for row in chunk.rows]
    attempts = [row.attempt for row in chunk.rows] if declaration.replays else None
    times = [row.number * SECOND_MS for row in chunk.rows]
    driver.comparison.certainty.moment += 1
    driver.feed(chunk.side, records, times, chunk.rows[0].partition, attempts=attempts)


def _answer(driver: Driver) -> Outcome:
    comparison = driver.comparison
    accounts = [_nonzero(account_of(comparison, side)) for side in Side]
    for account in accounts:
        assert 2 * account.get("consumed", 0) == sum(account.values()), "each event is in one account"
    found = [*driver.findings(), *comparison.provisional()]
    kinds: Counter[str] = Counter(divergence.finding.kind for divergence in found)
    explained = comparison.differences.known.counts
    kinds_found: dict[str, int] = dict(sorted(kinds.items()))
    return Outcome(_verdict(comparison), accounts[0], accounts[1], kinds_found, _nonzero(explained))


def _verdict(comparison: Comparison) -> str:
    doubts = bool(comparison.holes) or comparison.in_dispute or comparison.proven.waits_for_batches
    lacking = bool(comparison.disagreeing_batches) or any(comparison.unmatched(side) for side in Side)
    return verdict_of(diverged=comparison.diverged, doubts=doubts, lacking=lacking).value


def _nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
