"""What was seen of the events stands in each status, and goes on after a crash."""

from __future__ import annotations

import pytest

from loadtest.memory import MemorySource
from tests.support.workers import SPEC, Bench
from twinstream.checkpoints import format as checkpoint
from twinstream.core.events import Side

START = "start: {at: event_time, field: n, from: "
EVENTS = [("a", n) for n in range(30)]
TWO_KINDS = f"{SPEC}kinds: {{refund: {{where: {{k: r}}}}, sale: {{}}}}\nidentity: [n]\n"
MAY_LACK = TWO_KINDS.replace("seconds: 0", "seconds: 0, may_be_absent: [refund]")


def test_an_equivalent_says_what_it_does_not_rest_on() -> None:
    bench = Bench(spec=MAY_LACK)
    bench.write_both(*EVENTS)
    status = bench.run(bench.started())
    assert status.verdict == "EQUIVALENT"
    assert status.coverage.notes == [
        "nothing of kind `refund` has matched",
        "all events are of one key",
        "`k` never varied",
    ]
    assert status.coverage.kinds["sale"].varied == ["n"]
    assert (status.coverage.events, status.coverage.keys) == (60, 1)


def test_what_was_seen_before_a_crash_is_known_after_it(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    before = bench.run(bench.started()).coverage
    worker = bench.restarted()
    assert bench.run(worker).coverage == before
    bench.write_both(("b", 1))
    after = bench.run(worker).coverage
    assert (after.events, after.keys, after.kinds["event"].constant) == (62, 2, [])


def test_what_is_kept_of_values_is_keyed_with_the_secret_of_the_masks() -> None:
    benches = [Bench(), Bench()]
    seen = []
    for bench in benches:
        bench.write_both(*EVENTS)
        bench.run(bench.started())
        seen.append(checkpoint.decode(bench.storage.stored.head)["seen"])
    one, other = seen
    assert one["fields"]["event"].keys() == other["fields"]["event"].keys()
    assert one["fields"]["event"]["k"] != other["fields"]["event"]["k"]
    assert not set(one["keys"]) & set(other["keys"])


def test_a_record_of_the_past_among_others_is_no_evidence_of_the_time_since_then() -> None:
    bench = Bench(spec=SPEC.replace("seconds: 0", "seconds: 3600"))
    now_ms = int(bench.clock.now().timestamp() * 1000)
    for number in range(30):
        bench.write_both(("a", number), at_ms=now_ms - 7_200_000 * (number == 10))
    assert bench.run(bench.started()).verdict == "PENDING"
    worker = bench.restarted()
    bench.write_both(("a", 30), at_ms=now_ms - 7_200_000)
    assert bench.run(worker).verdict == "PENDING"


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("more", "first"),
    [
        ("undecodable: {budget: 2}", b"no JSON"),
        ("kinds: {beat: {where: {k: beat}, ignore: true}, event: {}}", b'{"k": "beat", "n": 1}'),
        (f"{START}200, warm_up: 10}}", b'{"k": "a", "n": 100}'),
    ],
)
def test_the_time_that_was_compared_begins_behind_what_is_not_compared(
    more: str, first: bytes, restarts: bool
) -> None:
    bench = Bench(spec=f"{SPEC.replace('seconds: 0', 'seconds: 300')}{more}\n")
    now_ms = int(bench.clock.now().timestamp() * 1000)
    for side in Side:
        bench.source.append(side, 0, first, now_ms - 3_600_000)
    bench.run(bench.started())
    if restarts:
        bench.restarted()
    bench.write_both(*((("a", 300 + number)) for number in range(200)), at_ms=now_ms - 200_000)
    assert bench.run().verdict == "PENDING"
    bench.write_both(("a", 500), at_ms=now_ms + 100_000)
    bench.clock.advance(100)
    assert bench.run().verdict == "EQUIVALENT"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_partition_begins_with_its_first_event_that_is_compared_also_beside_others(restarts: bool) -> None:
    spec = f"{SPEC.replace('seconds: 0', 'seconds: 900')}undecodable: {{budget: 2}}\n"
    bench = Bench(spec=spec, source=MemorySource(2))
    now_ms = int(bench.clock.now().timestamp() * 1000)

    def write(partition: int, record: bytes, seconds: int) -> None:
        for side in Side:
            bench.source.append(side, partition, record, now_ms + 1000 * seconds)

    write(1, b"no JSON", -1000)
    write(0, b'{"k": "b", "n": 0}', -500)
    bench.run(bench.started())
    if restarts:
        bench.restarted()
    write(1, b'{"k": "a", "n": 0}', -990)
    write(0, b'{"k": "b", "n": 1}', 0)
    write(1, b'{"k": "a", "n": 1}', 0)
    assert bench.run().verdict == "EQUIVALENT", bench.status().reason


def test_a_record_of_the_future_is_no_evidence_of_the_time_until_then() -> None:
    bench = Bench(spec=SPEC.replace("seconds: 0", "seconds: 3600"))
    now_ms = int(bench.clock.now().timestamp() * 1000)
    for second in range(30):
        bench.write_both(("a", second), at_ms=now_ms + second * 1000)
    bench.write_both(("a", 30), at_ms=now_ms + 5_400_000)
    status = bench.run(bench.started())
    assert status.verdict == "PENDING"
    assert "of 3,600 s of Kafka time" in status.reason
    bench.clock.advance(3600)
    bench.write_both(("a", 31), at_ms=now_ms + 3_600_000)
    assert bench.run().verdict == "EQUIVALENT"
