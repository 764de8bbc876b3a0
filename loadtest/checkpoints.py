"""What a checkpoint costs: encoding and decoding of a base of many events.

    .venv/bin/python -m loadtest.checkpoints [--events 1000000]

The events are those of a side that waits: records of about 150 bytes of JSON, over four partitions; once in
the order in which they came, and once in no order, which is the worst case.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

from loadtest.measuring import apart, environment, peak_mib, report_text, yardstick_ns
from twinstream.runtime.checkpoint import decode, encode

Result = TypeVar("Result")


def base(events: int, *, shuffled: bool) -> dict[str, Any]:
    """A state with so many waiting events."""
    rng = random.Random(1)
    numbers = list(range(events))
    if shuffled:
        rng.shuffle(numbers)
    timestamps = [1_700_000_000_000 + number // 30 for number in numbers]
    return {
        "waiting": {
            "records": [_record(rng, number) for number in numbers],
            "partitions": [number % 4 for number in numbers],
            "offsets": [number // 4 for number in numbers],
            "timestamps_ms": timestamps,
            "marks": [None] * events,
            "since_ms": list(timestamps),
        }
    }


def _record(rng: random.Random, number: int) -> bytes:
    return (
        b'{"ad_id":"%016x","campaign":"%08x","event_time":%d,"fare":%d,"user":"%016x","kind":"view","page":"%06x"}'
        % (rng.getrandbits(64), number % 1000, 1_700_000_000_000 + number // 30, rng.randrange(10_000),
           rng.getrandbits(64), rng.randrange(10**6))
    )  # fmt: skip


def measured(events: int, shuffled: bool) -> dict[str, Any]:
    """Seconds of the processor, bytes an event, and how much memory encoding takes at its peak."""
    state = base(events, shuffled=shuffled)
    payload = sum(map(len, state["waiting"]["records"])) / events
    before_mib = peak_mib()
    data, encode_seconds = _timed(lambda: encode(state))
    after_mib = peak_mib()
    decoded, decode_seconds = _timed(lambda: decode(data))
    if decoded != state:
        raise AssertionError("what was decoded is something else")
    return {
        "events": events,
        "shuffled": shuffled,
        "payload_bytes_an_event": round(payload, 1),
        "stored_bytes_an_event": round(len(data) / events, 1),
        "encode_seconds": round(encode_seconds, 3),
        "decode_seconds": round(decode_seconds, 3),
        "encode_peak_mib": round(after_mib - before_mib),
        "yardstick_ns": yardstick_ns(),
    }


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def main() -> None:
    """Measure both orders, each in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    events = parser.parse_args().events
    rows = [apart(measured, events, shuffled) for shuffled in (False, True)]
    sys.stdout.buffer.write(report_text({"environment": environment(), "checkpoints": rows}))


if __name__ == "__main__":
    main()
