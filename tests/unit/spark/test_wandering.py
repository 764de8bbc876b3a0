"""A shard whose batches go to any Python worker of an executor, as Spark gives them to an idle one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any
from unittest.mock import patch

import orjson
import pytest

from loadtest.memory import ManualClock, MemorySource
from tests.support import spark_tasks
from tests.support.retries import rows
from tests.support.saying import VERSIONS, finish
from tests.support.spark_tasks import AT_INPUT, MemoryLookout, Tasks
from twinstream.core.arrivals.replays import Replays
from twinstream.core.events import Side
from twinstream.errors import SourceError
from twinstream.intake.topic_monitor import PATIENCE_SECONDS
from twinstream.ports import Topic, TopicsLook
from twinstream.spark.matcher import processor
from twinstream.spark.matcher.job import start_found
from twinstream.spec.decode.headers import input_header
from twinstream.spec.load import loads
from twinstream.status.comparison import ComparisonStatus

LEFT, RIGHT = Side
AFTER = 10
SPEC = VERSIONS + (
    "order: unordered\nshow: [n]\nevidence: {matched: 1, seconds: 0}\nequality: {ignore: [t]}\n"
    f"overdue: {{clock: arrival, after: {AFTER}s, proves: true}}\n"
)
BY_EVENT_TIME = VERSIONS + (
    "order: unordered\nshow: [n]\nevidence: {matched: 1, seconds: 0}\n"
    f"overdue: {{clock: event_time, field: t, unit: ms, after: {AFTER}s, idle_after: 10s, proves: true}}\n"
)
BY_KEY = VERSIONS + (
    "order: {per_key: [k]}\nshow: [n]\nevidence: {matched: 1, seconds: 0}\nequality: {ignore: [t]}\n"
    f"overdue: {{clock: arrival, after: {AFTER}s}}\n"
)
DISPUTED = BY_KEY + (
    "known_differences:\n- {id: moved, when: {divergences: [reordered], where: {k: [a]}}, owner: me, "
    "expires: 2036-12-31, ceiling: {count: 5}}\n"
)
RETRIED = VERSIONS + (
    "order: unordered\nduplicates: {policy: replays}\nshow: [k]\nevidence: {matched: 1, seconds: 0}\n"
    f"overdue: {{clock: arrival, after: {AFTER}s}}\n"
)
BEGINS_MS = 1_700_000_000_000
AT_EVENT_TIME = VERSIONS + (
    "order: {per_key: [k]}\nshow: [n]\nevidence: {matched: 1, seconds: 0}\n"
    f"start: {{at: event_time, field: t, from: {BEGINS_MS}}}\n"
)
BATCH_SECONDS = 2


class Executor:
    """Some Python workers of one executor, which have one clock and take the batches of a shard in turns."""

    def __init__(self, text: str, source: MemorySource, workers: int) -> None:
        self.clock, self.source = ManualClock(), source
        self.tasks = Tasks.of(text, source, "run", 1)
        self._pools: list[dict[Any, Any]] = [{} for _ in range(workers)]
        self.lookouts = [_Watch(source) for _ in range(workers)]
        self._clocks: list[ManualClock] = [self.clock] * workers
        self._names: list[str | None] = ["host"] * workers
        self._taken = 0

    def on_hosts(self, ahead: int) -> None:
        """Give each worker a host of its own, whose monotonic clock is ahead of that of the one before."""
        self._names = [f"host {number}" for number in range(len(self._pools))]
        self._clocks = [_Ahead(self.clock, number * ahead) for number in range(len(self._pools))]

    def name_clocks(self, *names: str | None) -> None:
        """Give the clock another name for each worker."""
        self._names = list(names)

    def lose_processes(self) -> None:
        """All workers end; others take the next batches."""
        for pool in self._pools:
            pool.clear()

    def write(self, side: Side, partition: int = 0, ahead_ms: int = 0, **record: Any) -> None:
        at_ms = int(self.clock.now().timestamp() * 1000) + ahead_ms
        self.source.append(side, partition, orjson.dumps({**record, "t": at_ms}), at_ms)

    def batch(self, polls: tuple[int, int], worker: int | None = None) -> ComparisonStatus:
        """A batch, by the next worker or this one; then time passes."""
        at = self._taken % len(self._pools) if worker is None else worker
        self._taken += 1
        with (
            patch.object(processor, "_alive", self._pools[at]),
            patch.object(processor, "SystemClock", lambda: self._clocks[at]),
            patch.object(processor, "shared_clock", lambda: self._names[at]),
            patch.object(spark_tasks, "MemoryLookout", lambda _: self.lookouts[at]),
        ):
            try:
                self.tasks.batch(polls)
            finally:
                self.clock.advance(BATCH_SECONDS)
        return self.tasks.status()


class _Ahead(ManualClock):
    def __init__(self, clock: ManualClock, ahead: int) -> None:
        super().__init__()
        self._clock, self._ahead = clock, ahead
        self.now = clock.now  # type: ignore[method-assign]

    def monotonic(self) -> float:
        return self._clock.monotonic() + self._ahead


class _Watch(MemoryLookout):
    """That of one worker: it looks when it is asked, so what it has seen is as old as that.

    While it is `away`, a worker cannot be restored.
    """

    def __init__(self, source: MemorySource) -> None:
        super().__init__(source)
        self.away = False
        self._watched = reader = source.reader()
        reader.assign({side: {} for side in Side})
        self._last = TopicsLook(0, {}, {}, {})
        self.seen = lambda: self._last
        self.topics, self.look = self._topics, self._look

    def _topics(self) -> Mapping[Side, Topic]:
        if self.away:
            raise SourceError("kafka is away")
        return self._watched.topics()

    def _look(self) -> int:
        number = self._watched.look()
        self._last = self._watched.seen()
        return number


def seconds_until_diverged(executor: Executor, partitions: int = 1) -> int:
    """The seconds from the loss of an event to its difference, while both topics go on."""
    for second in range(0, 300, BATCH_SECONDS):
        executor.write(LEFT, partitions - 1, n=second)
        if second != 20:
            executor.write(RIGHT, partitions - 1, n=second)
        if executor.batch((partitions, partitions)).verdict == "DIVERGED":
            return second - 20
    pytest.fail("the loss is never found")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_lost_event_is_a_difference_in_time_whichever_worker_takes_a_batch(workers: int) -> None:
    executor = Executor(SPEC, MemorySource(), workers)
    assert seconds_until_diverged(executor) <= AFTER + 4 * BATCH_SECONDS


@pytest.mark.parametrize("workers", [1, 3])
def test_a_dispute_ends_in_time_whichever_worker_takes_a_batch(workers: int) -> None:
    executor = Executor(DISPUTED, MemorySource(), workers)
    for number in range(40):
        executor.write(LEFT, k="a", n=number)
        if number != 5:
            executor.write(RIGHT, k="a", n=number)
    verdicts = []
    for number in range(2 * AFTER // BATCH_SECONDS):
        executor.write(LEFT, k="b", n=number)
        verdicts.append(executor.batch((1, 1)).verdict)
    assert verdicts[-1] == "DIVERGED"


@pytest.mark.parametrize("workers", [1, 3])
def test_a_partition_that_is_behind_is_waited_for_no_longer_whichever_worker_takes_a_batch(
    workers: int,
) -> None:
    executor = Executor(BY_KEY, MemorySource(2, batch=3), workers)
    for number in range(600):
        for side in Side:
            executor.write(side, 1, k="behind", n=number)
    executor.clock.advance(300)
    seconds = iter(range(0, 200, BATCH_SECONDS))
    verdict = ""
    while verdict != "DIVERGED":
        second = next(seconds)
        for number in range(3 * second, 3 * second + 3):
            executor.write(LEFT, 0, k="a", n=number)
            executor.write(RIGHT, 0, k="a", n=-1 if number == 31 else number)
        verdict = executor.batch((1, 1) if second % 10 else (2, 2)).verdict
    assert second <= 2 * PATIENCE_SECONDS


@pytest.mark.parametrize("lost", [False, True])
def test_the_time_in_which_a_job_is_down_is_no_time_in_which_a_partition_was_waited_for(lost: bool) -> None:
    """The candidate's first event of a key is in another partition, and is read after the job was down."""
    executor = Executor(BY_KEY, MemorySource(2, batch=3), 1)
    for side in Side:
        for number in range(31):
            executor.write(side, 1, k="behind", n=number)
        executor.write(side, 0, k="x", n=0)
    executor.batch((2, 2))
    executor.write(LEFT, 0, k="a", n=0)
    executor.write(RIGHT, 1, k="a", n=0)
    for number in range(1, 20):
        for side in Side:
            executor.write(side, 0, k="a", n=number)
    verdicts = [executor.batch((1, 1)).verdict for _ in range(8)]
    executor.clock.advance(600)
    if lost:
        executor.lose_processes()
    verdicts += [executor.batch((2, 2)).verdict for _ in range(30)]
    assert "DIVERGED" not in verdicts


@pytest.mark.parametrize("restarts", [False, True])
def test_looks_of_an_earlier_version_close_no_batch_of_which_rows_are_read_later(restarts: bool) -> None:
    """It saved what was read by when, but not which looks a batch of a query waits for."""
    executor = Executor(RETRIED, MemorySource(3), 1)

    def write(side: Side, text: str) -> None:
        for row in rows(text):
            executor.source.append(side, row.partition, orjson.dumps(row.value), 0, row.headers)

    def earlier(replays: Replays, *, whole: bool = True) -> dict[str, Any]:
        state = saved(replays, whole=whole)
        del state["requested"]
        for query in state["queries"]:
            del query["requests"]
        return state

    for side in Side:
        write(side, "0/e/0.0:z@0 0/e/1.0:y@1 0/e/2.0:c@2")
    saved = Replays.state
    with patch.object(Replays, "state", earlier if restarts else saved):
        for _ in range(8):
            executor.batch((3, 3))
    if restarts:
        executor.lose_processes()
    write(LEFT, "1/e/0.0:xw@0 1/e/1.0:v@1 2/e/0.0:u@0 3/e/0.0:t@0")
    write(RIGHT, "1/e/0.0:x@0 1/f/0.0:w@0 1/f/0.0:x@1 1/f/1.0:v@1 2/e/0.0:u@0 3/e/0.0:t@0")
    statuses = [executor.batch(polls) for polls in ((0, 1), *[(3, 3)] * 5)]
    assert [status.holes for status in statuses] == [[]] * 6
    assert statuses[-1].matched == 8


@pytest.mark.parametrize("workers", [1, 3])
def test_a_partition_rests_on_the_clock_of_event_time_whichever_worker_looks(workers: int) -> None:
    executor = Executor(BY_EVENT_TIME, MemorySource(2), workers)
    for side in Side:
        for number in range(2):
            executor.write(side, 0, n=-1 - number)
    assert seconds_until_diverged(executor, 2) <= 2 * AFTER + 5 * BATCH_SECONDS


def test_what_is_verified_goes_on_with_each_batch_whichever_worker_takes_it() -> None:
    executor = Executor(SPEC, MemorySource(), 3)
    for number in range(30):
        for side in Side:
            executor.write(side, n=number)
        status = executor.batch((1, 1))
        if number > 5:
            assert status.verified_through is not None
            assert executor.clock.now() - status.verified_through <= timedelta(seconds=4 * BATCH_SECONDS)
    assert status.verdict == "EQUIVALENT", status.reason


def test_where_no_clock_has_a_name_each_worker_begins_with_times_of_its_own() -> None:
    """As with the state of an earlier version: it says nothing of what was read by when."""
    executor = Executor(SPEC, MemorySource(), 2)
    executor.name_clocks(None, "host")
    for number in range(2 * AFTER):
        executor.write(LEFT, n=number)
        if number != 3:
            executor.write(RIGHT, n=number)
        status = executor.batch((1, 1))
    assert (status.verdict, status.matched) == ("EQUIVALENT", 2 * AFTER - 1), status.reason
    found = [executor.batch((1, 1), 1).verdict for _ in range(AFTER)]
    assert found[-1] == "DIVERGED", "it goes on from its own times"


@pytest.mark.parametrize("hosts", [1, 3])
def test_a_time_in_the_future_proves_nothing_of_what_is_on_its_way(hosts: int) -> None:
    """Events wait for almost as long as they may: also where the clock of another host tells more."""
    executor = Executor(SPEC, MemorySource(), 3)
    if hosts > 1:
        executor.on_hosts(1000)
    for side in Side:
        executor.write(side, n="first")
    executor.batch((1, 1))
    late = AFTER // BATCH_SECONDS - 1
    for number in range(60):
        executor.write(LEFT, n=number)
        for side in Side:
            executor.write(side, ahead_ms=3_600_000, n=-1 - number)
        if number >= late:
            executor.write(RIGHT, n=number - late)
        status = executor.batch((1, 1))
        assert status.verdict != "DIVERGED", status.reason
    assert status.matched == 121 - late


@pytest.mark.parametrize("seed", range(4))
def test_equal_outputs_of_which_a_partition_is_read_late_are_never_a_difference(seed: int) -> None:
    """Workers take any number of batches in a row; some cannot be restored, and the batch is taken again."""
    random = Random(seed)
    executor = Executor(SPEC, MemorySource(2), 3)
    worker = late = 0
    for number in range(150):
        for side in Side:
            for partition in range(2):
                executor.write(side, partition, n=[partition, number])
        if random.random() < 0.3:
            worker = random.randrange(3)
        if random.random() < 0.1:
            late = random.randrange(4)
        for lookout in executor.lookouts:
            lookout.away = random.random() < 0.1
        try:  # Of a side that is late only the first partition is read.
            status = executor.batch((1 if late == 1 else 2, 1 if late == 2 else 2), worker)
        except SourceError:
            continue
        assert status.verdict != "DIVERGED", status.reason
    for lookout in executor.lookouts:
        lookout.away = False
    for _ in range(5):
        status = executor.batch((4, 4))
    assert (status.verdict, status.matched) == ("EQUIVALENT", 300), status.reason


def write_since_start(source: MemorySource, side: Side, partition: int, key: str, number: int) -> None:
    """An event so many milliseconds behind the start at an event time."""
    at_ms = BEGINS_MS + number
    source.append(side, partition, orjson.dumps({"k": key, "n": number, "t": at_ms}), at_ms)


def batches_on(executor: Executor, *, fails: bool) -> list[ComparisonStatus]:
    """The next batch, and four more with equal events; if it `fails`, all processes end before each."""
    statuses = [executor.batch((3, 3))]
    for number in range(20, 24):
        if fails:
            executor.lose_processes()
        for side in Side:
            write_since_start(executor.source, side, 0, "a", number)
        statuses.append(executor.batch((3, 3)))
    return statuses


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fails", [False, True])
def test_a_shard_that_has_found_that_no_start_is_safe_compares_nothing_more_in_any_worker(
    workers: int, *, fails: bool
) -> None:
    source = MemorySource(2)
    write = partial(write_since_start, source)
    write(LEFT, 1, "old", -10_000)
    source.retain(LEFT, 1, 1)
    executor = Executor(AT_EVENT_TIME, source, workers)
    for side in Side:
        write(side, 0, "a", -5)
        write(side, 0, "a", 5)
    assert executor.batch((3, 3)).verdict == "EQUIVALENT"
    write(LEFT, 0, "a", 6)  # The candidate never writes it.
    for side in Side:
        write(side, 1, "b", 10)  # Nothing of this partition shows any more what came before the start.
    statuses = batches_on(executor, fails=fails)
    assert {one.verdict for one in statuses} == {"PENDING"}
    assert all("no safe start" in str(one.waiting_for) for one in statuses)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fails", [False, True])
def test_what_the_batch_has_proven_in_which_no_start_is_safe_is_left_out_in_any_worker(
    workers: int, *, fails: bool
) -> None:
    source = MemorySource(2)
    write = partial(write_since_start, source)
    for _ in range(9):
        write(LEFT, 1, "old", -10_000)
    source.retain(LEFT, 1, 9)
    executor = Executor(AT_EVENT_TIME, source, workers)
    for side in Side:
        write(side, 0, "a", 5)
    assert executor.batch((3, 3)).verdict == "EQUIVALENT"
    write(LEFT, 0, "a", 6)
    write(RIGHT, 0, "a", 7)
    for side in Side:
        write(side, 0, "a", 8)
    write(LEFT, 1, "b", 10)  # It is read last, and shows nothing of what came before the start.
    statuses = batches_on(executor, fails=fails)
    assert {(one.verdict, one.divergences.total, one.matched) for one in statuses} == {("PENDING", 0, 1)}
    assert {one.reason for one in statuses} == {statuses[0].reason}
    assert not any(one.difference_awaits for one in statuses)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_event_that_names_no_input_ends_the_comparison_of_its_shard_with_the_reason(workers: int) -> None:
    source = MemorySource()

    def write(*offsets: int, sides: tuple[Side, ...] = (LEFT, RIGHT)) -> None:
        for side in sides:
            for offset in offsets:
                source.append(side, 0, orjson.dumps({"n": offset}), 0, [input_header("in", 0, offset)])

    def finished(batch: int, consumed: int) -> None:
        for side in Side:
            finish(source, side, batch, {0: consumed}, since={})

    write(0, 1)
    finished(0, 2)
    found = start_found(loads(AT_INPUT), MemoryLookout(source), pytest.fail)
    executor = Executor(AT_INPUT, source, workers)
    executor.tasks = Tasks.of(AT_INPUT, source, "run", 1, found=found)
    write(2)
    for _ in range(2):
        assert executor.batch((1, 1)).verdict == "EQUIVALENT"
    for side in Side:
        source.append(side, 0, orjson.dumps({"n": "sum"}), 0, [])
    statuses = [executor.batch((1, 1))]
    write(*range(3, 20), sides=(LEFT,))
    finished(1, 20)
    statuses += [executor.batch((1, 1)) for _ in range(4)]
    assert {one.verdict for one in statuses} == {"PENDING"}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_cannot_start_at_once_waits_for_what_it_lacks(workers: int) -> None:
    executor = Executor(BY_KEY, MemorySource(), workers)
    begins_ms, refusals = executor.lookouts[0].begins_ms, ["it begins with an open transaction"]

    def refused_once() -> Any:
        if refusals:
            raise SourceError(refusals.pop())
        return begins_ms()

    with patch.object(executor.lookouts[0], "begins_ms", refused_once):
        for number in range(4):
            for side in Side:
                executor.write(side, k="a", n=number)
            status = executor.batch((1, 1))
    assert (refusals, status.verdict, status.matched) == ([], "EQUIVALENT", 4)
