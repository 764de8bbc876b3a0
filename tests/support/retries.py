"""Pipelines that retry: what they write, with marks, and a comparison that reads it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from loadtest.memory import ManualClock
from tests.support.streams import saved_again, spec
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.state.restore import restore
from twinstream.explain.coverage import SeenEvents
from twinstream.intake.intake import Intake
from twinstream.ports import Batch
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.decode.headers import Headers, attempt_headers

Value = dict[str, Any]


class Row(NamedTuple):
    """One record that a pipeline has written."""

    attempt: Attempt | None
    value: Value
    partition: int = 0

    @property
    def headers(self) -> Headers:
        """The marks of what wrote it."""
        return [] if self.attempt is None else attempt_headers(self.attempt)


def replays(order: str = "unordered", horizon: int = 10, more: str = "") -> str:
    """A comparison file in which retries are told."""
    return f"{order}\nduplicates: {{policy: replays, horizon: {horizon}}}\n{more}"


def attempt(marks: str, query: str = "q") -> Attempt:
    """What wrote a record, from ``BATCH/EXECUTION/TASK.ATTEMPT``: ``7/e/0.1``."""
    batch, execution, rest = marks.split("/")
    task, number = rest.split(".")
    return Attempt(query, int(batch), execution, int(task), int(number))


def rows(text: str, query: str = "q") -> list[Row]:
    """Rows from words ``MARKS:NAMES`` or, without marks, ``:NAMES``; ``@1`` behind them is the partition.

    >>> [(row.attempt.task, row.value, row.partition) for row in rows("7/e/3.0:ab@1")]
    [(3, {'k': 'a'}, 1), (3, {'k': 'b'}, 1)]
    """
    found = []
    for word in text.split():
        marks, _, rest = word.partition(":")
        names, _, partition = rest.partition("@")
        wrote = attempt(marks, query) if marks else None
        found += [Row(wrote, {"k": name}, int(partition or 0)) for name in names]
    return found


@dataclass
class Reader:
    """A comparison behind an intake, which reads rows and may be restarted."""

    order: str
    partitions: int = 1
    known: bool = True
    saved: list[bytes] = field(default_factory=list)
    comparison: Comparison = field(init=False)
    intake: Intake = field(init=False)

    def __post_init__(self) -> None:
        self.spec = spec(self.order)
        self.codec = Codec(self.spec)
        self._fresh({side: dict.fromkeys(range(self.partitions), 0) for side in Side})

    def _fresh(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        self.comparison = Comparison(rules_of(self.spec, self.codec))
        seen, budget = SeenEvents(self.spec, self.codec), self.spec.undecodable.budget
        self.intake = Intake(self.codec, self.comparison, ManualClock(), budget, seen)
        self.intake.begin(positions if self.known else {side: {} for side in Side})

    def read(self, side: Side, written: Iterable[Row]) -> None:
        """Take rows of a side, those of one partition that follow each other in one batch."""
        run: list[Row] = []
        for row in written:
            if run and run[-1].partition != row.partition:
                self._take(side, run)
                run = []
            run.append(row)
        if run:
            self._take(side, run)

    def _take(self, side: Side, run: Sequence[Row]) -> None:
        partition = run[0].partition
        first = self.intake.positions[side].get(partition, 0)
        self.intake.take(
            Batch(
                side,
                partition,
                [orjson.dumps(row.value) for row in run],
                range(first, first + len(run)),
                [0] * len(run),
                [row.headers for row in run],
            )
        )
        check_accounts(self.comparison)

    def restart(self) -> None:
        """Go on with a new comparison that knows only what the bytes of checkpoints kept."""
        state = saved_again(self.saved, self.comparison)
        self._fresh(self.intake.positions)
        restore(self.comparison, state, self.codec.form, 0.0)

    def end(self) -> None:
        """Both sides end."""
        for side in Side:
            self.comparison.end(side)
        self.comparison.review()
        check_accounts(self.comparison)

    def replayed(self, side: Side) -> int:
        """How many records of a side were written before."""
        return self.comparison.accounts[side].replayed

    def reasons(self) -> list[str]:
        """What was not checked."""
        return [hole.reason for hole in self.comparison.holes]


def check_accounts(comparison: Comparison) -> None:
    """Every event that was fed is in one account."""
    for side in Side:
        accounts = dict(vars(comparison.accounts[side]))
        consumed = accounts.pop("consumed")
        assert consumed == comparison.matched + sum(accounts.values()) + comparison.unmatched(side)
        assert comparison.unmatched(side) >= 0


# -- pipelines ---------------------------------------------------------------------------------------------

Order = Callable[[random.Random, Sequence[Value]], list[Value]]
"""In which order a task writes its rows."""


def any_order(rng: random.Random, values: Sequence[Value]) -> list[Value]:
    return rng.sample(values, len(values))


def order_by_key(rng: random.Random, values: Sequence[Value]) -> list[Value]:
    """Keys in any order among each other, each by itself as it is."""
    keys = [value["k"] for value in values]
    queues = {key: iter([value for value in values if value["k"] == key]) for key in keys}
    return [next(queues[key]) for key in rng.sample(keys, len(keys))]


@dataclass
class Pipeline:
    """A query that writes batches with retries: whatever it does, all is written at least once.

    `late` are rows of killed attempts that arrive later, by the batch before which they do.
    """

    rng: random.Random
    order: Order
    horizon: int
    partitions: int
    keyed: bool
    log: list[Row] = field(default_factory=list)
    late: dict[int, list[Row]] = field(default_factory=dict)

    def write(self, number: int, values: Sequence[Value]) -> None:
        """Write one batch: executions that are killed, and one that is not."""
        for place in range(self.rng.choice([0, 0, 0, 1, 2])):
            written = self.execution(number, f"e{place}", values)
            self.straggle(number, written[: self.rng.randrange(len(written) + 1)])
        self.log += self.execution(number, "last", values)
        self.log += self.late.pop(number, [])

    def straggle(self, number: int, written: Sequence[Row]) -> None:
        """Rows of what is killed are written now, but for the last ones, which may come much later."""
        cut = self.rng.randrange(len(written) + 1)
        self.log += written[:cut]
        if self.rng.random() < 0.3:
            when = number + self.rng.randrange(self.horizon)
            self.late.setdefault(when, []).extend(written[cut:])

    def execution(self, number: int, name: str, values: Sequence[Value]) -> list[Row]:
        """One execution: its tasks write at the same time, and some are tried several times."""
        tasks = self.rng.randrange(1, 4)
        shift = self.rng.randrange(tasks)
        shares: list[list[Value]] = [[] for _ in range(tasks)]
        for place, value in enumerate(values):
            shares[((value["k"] if self.keyed else place) + shift) % tasks].append(value)
        writing = [
            list(self.task(Attempt("q", number, name, task, 0), share)) for task, share in enumerate(shares)
        ]
        return list(self.together(writing))

    def task(self, first: Attempt, share: Sequence[Value]) -> Iterator[Row]:
        """One task: attempts that are killed, and one that is not."""
        killed = self.rng.choice([0, 0, 1, 2])
        for number in range(killed + 1):
            values = self.order(self.rng, share)
            cut = len(values) if number == killed else self.rng.randrange(len(values) + 1)
            for value in values[:cut]:
                yield Row(first._replace(attempt=number), value, self.partition(value))

    def partition(self, value: Value) -> int:
        return value["k"] % self.partitions if self.keyed else self.rng.randrange(self.partitions)

    def together(self, writing: list[list[Row]]) -> Iterator[Row]:
        """What several write at the same time, each in its order."""
        turns = [place for place, part in enumerate(writing) for _ in part]
        parts = [iter(part) for part in writing]
        return (next(parts[place]) for place in self.rng.sample(turns, len(turns)))


def reading(rng: random.Random, logs: Mapping[Side, Sequence[Row]]) -> Iterator[tuple[Side, list[Row]]]:
    """Both topics as a source delivers them: partitions in any order, each by itself in its own."""
    queues = {
        (side, partition): [row for row in log if row.partition == partition]
        for side, log in logs.items()
        for partition in {row.partition for row in log}
    }
    while queues:
        key = rng.choice(sorted(queues))
        count = rng.randrange(1, 6)
        yield key[0], queues[key][:count]
        queues[key] = queues[key][count:]
        if not queues[key]:
            del queues[key]
