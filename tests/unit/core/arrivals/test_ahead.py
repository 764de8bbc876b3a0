"""Runs ahead of the index have the facts of their events, however they are bundled between looks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from twinstream.core.arrivals.ahead import RunsAhead
from twinstream.core.arrivals.run import Run
from twinstream.core.events import OFFSET, PARTITION, Event, Form, PartitionOffset

PARTITIONS = 2


def run_of(number: int, partition: int, first: int, times_ms: list[int]) -> Run:
    forms = [Form("", b"%d" % number, "", b"%d" % number) for _ in times_ms]
    return Run(forms, partition, range(first, first + len(times_ms)), times_ms, float(number))


class Plain:
    """The same, event by event: `runs` in the order of their coming, and the places that a checkpoint has."""

    def __init__(self) -> None:
        self.ahead = RunsAhead()
        self.runs: list[list[Event]] = []
        self.saved: set[PartitionOffset] = set()
        self.offsets = [0] * PARTITIONS
        self.came = 0

    def append(self, random: Random) -> None:
        self.came += 1
        partition = random.randrange(PARTITIONS)
        times_ms = [random.randrange(40) for _ in range(random.randint(1, 5))]
        run = run_of(self.came, partition, self.offsets[partition], times_ms)
        self.offsets[partition] += len(times_ms) + random.randrange(2)
        self.runs.append(list(map(Event._make, run.events())))
        self.ahead.append(run)

    def oldest(self, partition: int) -> list[Event]:
        return next(run for run in self.runs if run[0].partition == partition)

    def drop(self, run: list[Event], count: int) -> list[Event]:
        dropped = run[:count]
        del run[:count]
        self.runs = [run for run in self.runs if run]
        return dropped

    def take(self, random: Random) -> None:
        if self.runs:
            run = self.oldest(random.choice(self.ahead.partitions()))
            partition, count = run[0].partition, random.randint(1, len(run))
            assert list(self.ahead.take(partition, count).events()) == self.drop(run, count)

    def enter(self, random: Random) -> None:
        if self.runs:
            run = self.oldest(random.choice(self.ahead.partitions()))
            entered, saved = self.ahead.enter(run[0].partition)
            assert saved is (place(run[0]) in self.saved)
            self.saved -= set(map(place, run))
            assert list(entered.events()) == self.drop(run, len(run))

    def save(self, random: Random) -> None:
        self.ahead.look()
        if random.random() < 0.5:
            waiting = {place(event) for run in self.runs for event in run}
            added, removed = self.ahead.take_changes()
            assert {place(event) for event in added} == waiting - self.saved
            assert set(removed) == self.saved - waiting
            self.saved = waiting

    def sweep(self, random: Random) -> None:
        """Begin a sweep, while another may go on, and see that it meets each saved event that stays, once."""
        self.ahead.begin_sweep()
        self.ahead.sweep(random.randrange(3))
        self.ahead.begin_sweep()
        swept: list[Event] = []
        while self.ahead.sweeping:
            some = self.ahead.sweep(random.randint(1, 6))
            swept += some
            random.choice([self.append, self.take])(random)
        stay = {place(event) for run in self.runs for event in run} & self.saved
        assert stay <= set(map(place, swept)) <= self.saved | stay
        assert len(swept) == len(set(map(place, swept)))

    def agree(self, random: Random) -> None:
        ahead, events = self.ahead, [event for run in self.runs for event in run]
        moment_ms = random.randrange(45)
        assert list(ahead) == events
        assert len(ahead) == len(events)
        assert ahead.oldest_ms() == min((event.timestamp_ms for event in events), default=None)
        assert ahead.until(moment_ms) == sum(event.timestamp_ms <= moment_ms for event in events)
        first: dict[int, int] = {}
        for event in events:
            first.setdefault(event.partition, event.offset)
        assert ahead.first_open() == first
        for partition in range(PARTITIONS):
            own = [run for run in self.runs if run[0].partition == partition]
            assert [list(run.events()) for run in ahead.runs(partition)] == own
            assert ahead.waiting(partition) == sum(map(len, own))


def place(event: Event) -> PartitionOffset:
    return event[PARTITION], event[OFFSET]


@pytest.mark.parametrize("seed", range(40))
def test_every_fact_of_runs_ahead_is_that_of_their_events(seed: int) -> None:
    random, plain = Random(seed), Plain()
    steps: list[Callable[[Random], None]] = [plain.append] * 6 + [plain.take] * 3 + [plain.enter]
    for _ in range(120):
        random.choice([*steps, plain.save, plain.sweep])(random)
        plain.agree(random)


def test_the_size_is_that_of_the_records_seen_at_a_look() -> None:
    ahead = RunsAhead()
    for number in range(3):
        ahead.append(run_of(number, 0, 10 * number, [5, 6]))
    assert ahead.size_bytes == 0
    ahead.look()
    assert ahead.size_bytes == 6
    ahead.append(run_of(7, 0, 40, [5]))
    ahead.append(run_of(8, 1, 0, [5, 6]))
    ahead.take(0, 1)
    ahead.enter(0)
    ahead.take(1, 1)
    assert ahead.size_bytes == 4
