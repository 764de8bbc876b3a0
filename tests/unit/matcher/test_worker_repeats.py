"""What the service calls a copy where a rule explains copies: one answer for any restarts."""

from __future__ import annotations

import pytest

from loadtest.memory import MemorySource
from tests.support.workers import SPEC, Bench
from twinstream.checkpoints.plan import MOST_DELTAS
from twinstream.core.events import Side
from twinstream.matcher.worker import BEAT_SECONDS, Worker

RULE = "{id: DUP, when: {divergences: [duplicate]}, owner: me, expires: 2099-01-01, ceiling: {count: 100}}"
LIMITS = "limits: {recent_matches: %s, duplicate_horizon: 50}\n"


def ruled(order: str = "{per_key: [k]}", recent_matches: int = 0) -> str:
    spec = SPEC.replace("{per_key: [k]}", order) + LIMITS % recent_matches
    return f"{spec}known_differences: [{RULE}]\n"


def again(bench: Bench, worker: Worker, *, clean: bool) -> Worker:
    """The service is started again, after a stop or a crash."""
    if clean:
        worker.stop()
    return bench.restarted()


def followed(bench: Bench, worker: Worker) -> Bench:
    """All keys meet again and go on for longer than another half may take, and all of it is saved."""
    for number in range(100, 130):
        bench.write_both(*((key, number) for key in "abcd"), at_ms=number * 1000)
    for number in range(130, 150):
        bench.write_both(*((key, number) for key in "abcd"), at_ms=number * 10_000)
    bench.settled(worker)
    return bench


@pytest.mark.parametrize("order", ["total", "{per_key: [k]}"])
def test_restarts_at_every_beat_leave_a_new_event_new_and_a_copy_a_copy(order: str) -> None:
    outcomes = []
    for every in (0, 1, 3):
        bench = Bench(spec=ruled(order), source=MemorySource(batch=3))
        worker = bench.started()
        bench.write_both(*(("a", number) for number in range(10)))
        bench.write(Side.RIGHT, ("a", 9), ("a", 77))
        for number in range(10, 40):
            bench.write_both(("a", number), at_ms=number * 10_000)
        for step in range(60):
            if every and step % every == 0:
                worker = again(bench, worker, clean=step % 2 == 0)
            bench.clock.advance(BEAT_SECONDS)
            worker.step()
        status = bench.settled(worker)
        outcomes.append((status.verdict, status.explained_by_rule, status.accounts, status.divergences))
    assert outcomes[0][:2] == ("DIVERGED", {"DUP": 1})
    assert outcomes == [outcomes[0]] * 3


def test_what_waits_is_known_as_a_copy_when_all_that_was_saved_with_it_is_replaced() -> None:
    bench = Bench(spec=ruled().replace("duplicate_horizon: 50", "duplicate_horizon: 3"))
    worker = bench.started()
    bench.write_both(("a", 1))
    bench.write(Side.RIGHT, ("a", 1))
    bench.settled(worker)
    first = set(bench.storage.stored.bodies)
    for number in range(3 * MOST_DELTAS):
        bench.write_both(("b", number))
        bench.clock.advance(BEAT_SECONDS)
        worker.step()
    assert not first & set(bench.storage.stored.bodies)
    worker = again(bench, worker, clean=False)
    status = followed(bench, worker).status()
    assert (status.verdict, status.explained_by_rule) == ("EQUIVALENT", {"DUP": 1})
    assert "; known differences explain the one difference." in status.reason
