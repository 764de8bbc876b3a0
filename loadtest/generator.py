"""Writes the advertising events to Kafka at a set rate: ``python -m loadtest.generator --brokers …``.

The events and their times come from `ad_events` and `schedule`, which are pure; this module keeps to the
schedule and talks to Kafka. Between two ticks it sleeps; when it cannot keep up it says so, on standard error
while it runs and in the summary, one JSON object on standard output, at the end.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from threading import Event as Flag

from confluent_kafka import KafkaError, Message, Producer

from loadtest.ad_events import AdEvents, Disorder
from loadtest.schedule import Schedule

TICK_SECONDS = 0.01
CHUNK_EVENTS = 2_000
"""Sent between two looks at the clock, at the delivery reports and at the stop flag."""
BEHIND_SECONDS = 1.0
"""Worth a word on standard error; less than this is the jitter of a busy machine."""
REPORT_SECONDS = 5.0
FLUSH_SECONDS = 30.0


@dataclass(slots=True)
class Summary:
    """What a run did. `failed` records were refused by the broker or not delivered in time."""

    seed: int
    start_ms: int
    events: int = 0
    failed: int = 0
    seconds: float = 0.0
    events_per_second: float = 0.0
    max_behind_seconds: float = 0.0


class Run:
    """One run of the generator: feed the producer from the schedule until the end, or until stopped."""

    def __init__(
        self, events: AdEvents, brokers: str, topic: str, count: int | None, paced: bool = True
    ) -> None:
        self._events = events
        self._producer = producer(brokers, self._failed)
        self._topic = topic
        self._count = count
        self._paced = paced
        self._stopped = Flag()
        self._summary = Summary(seed=events.seed, start_ms=events.start_ms)
        self._last_report = 0.0

    def stop(self) -> None:
        """End the run after the current chunk; safe to call from a signal handler, and twice."""
        self._stopped.set()

    def run(self) -> Summary:
        """Write the events at their times, wait until the broker has them, and say what was done."""
        began = time.monotonic()
        while not self._stopped.is_set() and self._summary.events != self._count:
            elapsed = time.monotonic() - began
            self._send(self._due(elapsed))
            self._watch(time.monotonic() - began)
            self._sleep(began)
        self._summary.failed += self._producer.flush(FLUSH_SECONDS)
        self._summary.seconds = round(time.monotonic() - began, 3)
        self._summary.events_per_second = round(self._summary.events / max(self._summary.seconds, 1e-3), 1)
        return self._summary

    def _failed(self, _error: KafkaError | None, _message: Message) -> None:
        """Count a record that the broker did not take (the producer reports failures only)."""
        self._summary.failed += 1

    def _due(self, elapsed: float) -> int:
        """The number of the event to stop before in this tick."""
        chunk = self._summary.events + CHUNK_EVENTS
        due = min(self._events.schedule.due_count(elapsed), chunk) if self._paced else chunk
        return due if self._count is None else min(due, self._count)

    def _send(self, last: int) -> None:
        for key, value in self._events.between(self._summary.events, last):
            self._produce(key, value)
        self._summary.events = max(last, self._summary.events)
        self._producer.poll(0)

    def _produce(self, key: bytes, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, key)
                return
            except BufferError:  # the local queue is full: the broker is slower than the schedule
                self._producer.poll(TICK_SECONDS)

    def _watch(self, elapsed: float) -> None:
        """Remember, and now and then say, how far the run is behind its schedule."""
        if self._summary.events == self._count or not self._paced:
            return
        behind = elapsed - self._events.schedule.due_seconds(self._summary.events)
        self._summary.max_behind_seconds = round(max(behind, self._summary.max_behind_seconds), 3)
        if elapsed - self._last_report < REPORT_SECONDS:
            return
        self._last_report = elapsed
        late = f", {behind:.1f} s behind its schedule" if behind > BEHIND_SECONDS else ""
        print(
            f"generator: {self._summary.events} events in {elapsed:.0f} s{late}", file=sys.stderr, flush=True
        )

    def _sleep(self, began: float) -> None:
        """Sleep to the next event's time, at least one tick; not at all while behind by a chunk."""
        if self._summary.events == self._count or not self._paced:
            return
        wait = began + self._events.schedule.due_seconds(self._summary.events) - time.monotonic()
        if self._summary.events + CHUNK_EVENTS > self._events.schedule.due_count(time.monotonic() - began):
            self._stopped.wait(min(max(wait, TICK_SECONDS), REPORT_SECONDS))


def producer(brokers: str, failed: Callable[[KafkaError | None, Message], None]) -> Producer:
    """A producer that puts a key where Spark's own clients would put it, and keeps a key's order."""
    return Producer(
        {
            "bootstrap.servers": brokers,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "linger.ms": 10,
            "queue.buffering.max.messages": 200_000,
            "delivery.report.only.error": True,
            "on_delivery": failed,
        }
    )


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; a value that makes no sense ends the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m loadtest.generator", description=__doc__.split("\n\n")[0], allow_abbrev=False
    )
    parser.add_argument("--brokers", required=True, help="Kafka bootstrap servers, host:port[,…]")
    parser.add_argument("--topic", default="ads.events", help="topic to write to (%(default)s)")
    parser.add_argument("--rate", type=float, default=500.0, help="events per second (%(default)s)")
    parser.add_argument("--ramp", type=float, default=0.0, help="seconds in which the rate rises to --rate")
    parser.add_argument(
        "--ramp-from", type=float, default=0.0, help="rate at which the ramp starts (%(default)s)"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--duration", type=float, help="stop after this many seconds of schedule")
    length.add_argument("--count", type=int, help="stop after this many events")
    parser.add_argument("--unpaced", action="store_true", help="as fast as possible; times as scheduled")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same events (%(default)s)")
    parser.add_argument("--start-time", type=int, help="event time of the start, ms since 1970 (now)")
    parser.add_argument(
        "--speed", type=float, default=1.0, help="how many times as fast event times run (%(default)s)"
    )
    parser.add_argument(
        "--disorder", type=float, default=0.1, help="share of events out of order (%(default)s)"
    )
    parser.add_argument(
        "--disorder-seconds", type=float, default=4.0, help="by at most this much (%(default)s)"
    )
    parser.add_argument("--late", type=float, default=0.0, help="share of events beyond that (%(default)s)")
    parser.add_argument("--late-seconds", type=float, default=60.0, help="by at most this much (%(default)s)")
    options = parser.parse_args(argv)
    if options.unpaced and options.count is None and options.duration is None:
        parser.error("--unpaced writes without end: give --count or --duration")
    try:
        options.schedule = Schedule(options.rate, options.ramp_from, options.ramp)
        options.disorder = Disorder(
            options.disorder, options.disorder_seconds, options.late, options.late_seconds
        )
    except ValueError as error:
        parser.error(str(error))
    if options.duration is not None:
        options.count = options.schedule.due_count(options.duration) - 1
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the generator from the command line; 1 if the broker did not take every record."""
    options = arguments(argv)
    start_ms = options.start_time if options.start_time is not None else time.time_ns() // 1_000_000
    events = AdEvents(options.seed, start_ms, options.schedule, options.disorder, options.speed)
    run = Run(events, options.brokers, options.topic, options.count, paced=not options.unpaced)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: run.stop())
    summary = run.run()
    print(json.dumps(asdict(summary)), flush=True)
    return 1 if summary.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
