"""A day of two pipelines, made up as it is read: bounded disorder, retries, and a bug now and then.

Pair n is a function of n alone. The reference writes pairs in their order. The candidate writes each
block of 4,000 key by key, and runs behind by up to five blocks, more and less in turn. Keys live for 100,000
pairs. Each block is a micro-batch of four tasks, one for each partition. In some a task of either side is cut
off in the middle and run again: its rows come twice. In some the candidate has a bug: it drops an event,
writes one twice, changes one, or lets two of a key change places.

Kafka's time goes on by one second in 580 pairs, so fifty million of them are a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from loadtest.generated import PARTITIONS, START_MS, Stream
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.diagnosis.findings import Kind
from twinstream.core.events import Side
from twinstream.ports import Batch
from twinstream.spec.decode.headers import attempt_headers

SPEC = """
version: 1
name: growth
reference: {topic: reference}
candidate: {topic: candidate}
order: {per_key: [ad_id]}
identity: [number]
duplicates: {policy: replays, horizon: 10}
limits: {kept_divergences: 200}
"""
PAIRS_A_SECOND = 580
KEYS = 1000
BLOCK = 4 * KEYS
LIFE_BLOCKS = 25
"""Keys are new ones after so many blocks."""
BUGS: dict[int, int] = {3: 0, 12: 1}
"""In which blocks of a life the candidate has a bug: early enough for its key to be seen to go on."""
BUG_KINDS: tuple[Kind, ...] = ("missing", "duplicate", "changed", "reordered")
RETRIED = 8
"""In one of so many blocks a task is run again."""
MOST_BLOCKS_BEHIND = 5


def record(number: int, fare: int = 0) -> bytes:
    """An event of pair `number`: 108 bytes and a few."""
    life = number // (BLOCK * LIFE_BLOCKS)
    return (
        b'{"ad_id":"ad-%010x","campaign":"campaign-%02d","event_time":%d,"fare":%d,"kind":"view","number":%d}'
        % (life * KEYS + number % KEYS, number % 100, time_ms(number), fare or number % 9973, number)
    )


def time_ms(number: int) -> int:
    """Kafka's time of a pair."""
    return START_MS + number * 1000 // PAIRS_A_SECOND


def planted(blocks: int) -> Counter[Kind]:
    """The differences in so many blocks."""
    return Counter(kind for block in range(blocks) if (kind := _bug(block)) is not None)


def reference(blocks: int) -> Stream:
    """The reference's batches."""
    offsets = [0] * PARTITIONS
    for block in range(blocks):
        for partition in range(PARTITIONS):
            numbers = range(block * BLOCK + partition, (block + 1) * BLOCK, PARTITIONS)
            yield from _written(Side.LEFT, block, partition, list(map(record, numbers)), offsets)


def candidate(blocks: int) -> Stream:
    """The candidate's batches. While it is to fall further behind it has nothing."""
    offsets = [0] * PARTITIONS
    for block in range(blocks):
        for _ in range(_falls_back(block) * PARTITIONS):
            yield None
        for partition in range(PARTITIONS):
            records = _by_key(block, partition)
            if partition == block % PARTITIONS:
                _spoil(records, _bug(block), block)
            yield from _written(Side.RIGHT, block, partition, records, offsets)


def _falls_back(block: int) -> int:
    """For how long the candidate pauses before a block: it catches up by itself."""
    return block % MOST_BLOCKS_BEHIND + 1 if block % (2 * MOST_BLOCKS_BEHIND) == 0 else 0


def _by_key(block: int, partition: int) -> list[bytes]:
    first = block * BLOCK
    return [
        record(number)
        for key in range(partition, KEYS, PARTITIONS)
        for number in range(first + key, first + BLOCK, KEYS)
    ]


def _bug(block: int) -> Kind | None:
    life, at = divmod(block, LIFE_BLOCKS)
    return BUG_KINDS[(len(BUGS) * life + BUGS[at]) % len(BUG_KINDS)] if at in BUGS else None


def _spoil(records: list[bytes], kind: Kind | None, block: int) -> None:
    """Let a bug of this kind happen to the first key of the partition."""
    if kind == "missing":
        del records[0]
    elif kind == "duplicate":
        records.insert(0, records[0])
    elif kind == "changed":
        records[0] = record(block * BLOCK + block % PARTITIONS, fare=10_000)
    elif kind == "reordered":
        records[0], records[1] = records[1], records[0]


def _written(
    side: Side, block: int, partition: int, records: list[bytes], offsets: list[int]
) -> Iterator[Batch]:
    """What a task writes, after a half of it where it was cut off at first."""
    attempts: Iterable[list[bytes]] = [records]
    if block % RETRIED == side * 3 and partition == block // RETRIED % PARTITIONS:
        attempts = [records[: len(records) // 2], records]
    for number, rows in enumerate(attempts):
        marks = attempt_headers(Attempt("query", block, "run", partition, number))
        first = offsets[partition]
        offsets[partition] += len(rows)
        times = [time_ms(block * BLOCK)] * len(rows)
        yield Batch(side, partition, rows, range(first, first + len(rows)), times, [marks] * len(rows))
