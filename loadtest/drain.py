"""How fast a million waiting events leave, and what memory stays behind them.

    python -m loadtest.drain [--events 1000000] [--order per_key|unordered] [--rounds 5] [--json FILE]

The reference is read so many events ahead of the candidate, then the candidate catches up. Batches are made
in memory as Kafka brings them; what is measured is `Intake.take`, with a look at everything, and the changes
for a checkpoint, once in `LOOK` events. The times are processor time of one thread, in nanoseconds an event:

- *few*: both sides in turn, a batch each;
- *grow* and *drain*: the reference alone, then the candidate alone;
- *ratio*: the rate of the drain against that with few waiting.

Memory is that of the process beyond what it had with few waiting: with all of them, and after as many events
of both sides again, in turn. Each round runs in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from statistics import median
from typing import Any

import click

from loadtest.bench import ORDERS, PARTITIONS, event, spec_text
from loadtest.measuring import apart, environment, write_report
from twinstream.adapters.clocks import SystemClock
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.explain.coverage import SeenEvents
from twinstream.intake.intake import Intake
from twinstream.matcher.memory import FreedMemory, collect_rarely, resident_bytes
from twinstream.ports import Batch
from twinstream.spec.codec.digests import codec_of
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.load import loads

BATCH, LOOK = 1000, 200_000
WARM, FEW = 50, 200
"""Batches of each side before anything is measured, and for *few*."""
START_MS = 1_700_000_000_000


def batches(side: Side) -> Iterator[Batch]:
    """The batches of one side, partition by partition, with bytes of its own; a key is in one partition."""
    for number in range(10**9):
        partition, first = number % PARTITIONS, number // PARTITIONS * BATCH
        numbers = [PARTITIONS * place + partition for place in range(first, first + BATCH)]
        records = [bytes(bytearray(event(one, side.name, "all")[1])) for one in numbers]
        times = [START_MS + one // 100 for one in numbers]
        yield Batch(side, partition, records, range(first, first + BATCH), times)


class Matcher:
    """An intake with its comparison, and the processor time that it takes."""

    def __init__(self, order: str) -> None:
        spec = loads(spec_text("drain", ["reference", "candidate"], order, "all"))
        codec = codec_of(spec)
        self.comparison = Comparison(rules_of(spec, codec))
        self._seen = SeenEvents(spec, codec)
        self._intake = Intake(codec, self.comparison, SystemClock(), 0, self._seen)
        self._intake.begin({side: dict.fromkeys(range(PARTITIONS), 0) for side in Side})
        self._freed = FreedMemory()
        self._since_look = 0
        self.longest_look_ms = 0.0

    def take(self, some: Iterator[Batch]) -> float:
        """Take batches; returns the nanoseconds an event."""
        spent, events = 0.0, 0
        for batch in some:
            started = time.thread_time()
            self._intake.take(batch)
            self.comparison.review()
            self._look(len(batch.records))
            spent += time.thread_time() - started
            events += len(batch.records)
        return 1e9 * spent / events

    def _look(self, events: int) -> None:
        self._since_look += events
        if self._since_look >= LOOK:
            self._since_look, started = 0, time.thread_time()
            self._intake.survey((False, False))
            for side in Side:
                self.comparison.ledger.held[side].take_changes()
            self._freed.look(self.comparison, self._seen)
            self.longest_look_ms = max(self.longest_look_ms, 1e3 * (time.thread_time() - started))


def measured(order: str, events: int) -> dict[str, float]:
    """One round."""
    collect_rarely()  # as in a matcher
    matcher, left, right = Matcher(order), batches(Side.LEFT), batches(Side.RIGHT)

    def in_turn(count: int) -> Iterator[Batch]:
        for _ in range(count):
            yield next(left)
            yield next(right)

    matcher.take(in_turn(WARM))
    few, before = matcher.take(in_turn(FEW)), resident_bytes()
    grow = matcher.take(islice(left, events // BATCH))
    with_all = resident_bytes()
    drain = matcher.take(islice(right, events // BATCH))
    assert matcher.comparison.unmatched(Side.LEFT) == 0, "all have left"
    assert not matcher.comparison.holes, "all of it was compared"
    matcher.take(in_turn(events // BATCH))
    return {
        "few_ns": few,
        "grow_ns": grow,
        "drain_ns": drain,
        "ratio": few / drain,
        "longest_look_ms": matcher.longest_look_ms,
        "mib_with_all": (with_all - before) / 2**20,
        "mib_after": (resident_bytes() - before) / 2**20,
    }


@click.command(help=__doc__)
@click.option("--events", default=1_000_000, show_default=True)
@click.option("--order", type=click.Choice(list(ORDERS)), default="per_key", show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--json", "file", type=click.Path(dir_okay=False), help="Write there, not to stdout.")
def main(events: int, order: str, rounds: int, file: str | None) -> None:
    """Measure, and write the medians."""
    found = [apart(measured, order, events) for _ in range(rounds)]
    medians: dict[str, Any] = {name: round(median(one[name] for one in found), 2) for name in found[0]}
    write_report({**environment(), "events": events, "order": order, "rounds": rounds, **medians}, file)


if __name__ == "__main__":
    main()
