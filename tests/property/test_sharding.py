"""Of co-partitioned topics the shards of a comparison add up to what one matcher finds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from twinstream.adapters.memory import ManualClock
from twinstream.core.arrivals.sharding import WHOLE, Shard
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.explain.coverage import SeenEvents
from twinstream.intake.intake import Intake
from twinstream.ports import Batch
from twinstream.reporting.accounts import account_of
from twinstream.spec.codec.digests import codec_of
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.sharding import refusal
from twinstream.spec.load import loads

BOTH = {"reference": {"topic": "r"}, "candidate": {"topic": "c"}}
KINDS = {
    "a": {"where": {"t": "a"}},
    "b": {"where": {"t": "b"}},
    "left out": {"where": {"t": "x"}, "ignore": True},
}
ORDERS: list[Any] = [
    "unordered",
    {"per_key": ["k"]},
    {"by_key": ["k"], "inner": {"barrier": "b", "inner": "unordered"}},
    {"parallel": {"p": {"kinds": ["a"], "order": {"per_key": ["k"]}},
                  "q": {"kinds": ["b"], "order": "unordered"}}},
    {"dependent": [{"pair": ["a", "b"], "same": ["k"]}]},
]  # fmt: skip


def spec_of(order: Any, keep: str = "records") -> Spec:
    values = {
        "version": 1,
        "name": "t",
        **BOTH,
        "kinds": KINDS,
        "order": order,
        "keep": keep,
        "undecodable": {"budget": 999},
        "co_partitioned": True,
    }
    return loads(json.dumps(values))


class Trace(NamedTuple):
    """What both sides wrote, in the order in which it is read: side, partition, records."""

    reads: list[tuple[Side, int, list[bytes]]]


def record(kind: str, key: int, number: int) -> bytes:
    if kind == "?":
        return b"no event %d" % number
    return json.dumps({"t": kind, "k": key, "n": number}).encode()


events = st.tuples(st.sampled_from("aaaabbx?"), st.integers(0, 5), st.integers(0, 2))
changes = st.lists(st.tuples(st.sampled_from(["drop", "twice", "swap"]), st.integers(0, 60)), max_size=3)


@st.composite
def traces(draw: st.DrawFn, partitions: int = 4) -> Trace:
    """Two sides, the second one changed a little; each event in the partition of its key."""
    written = draw(st.lists(events, max_size=50))
    other = list(written)
    for change, at in draw(changes):
        if at < len(other):
            match change:
                case "drop":
                    del other[at]
                case "twice":
                    other.insert(at, other[at])
                case _:
                    other[at : at + 2] = reversed(other[at : at + 2])
    reads = []
    for side, own in ((Side.LEFT, written), (Side.RIGHT, other)):
        for start in range(0, len(own), 7):
            parts: dict[int, list[bytes]] = {}
            for event in own[start : start + 7]:
                partition = crc32(b"%d" % event[1]) % partitions
                parts.setdefault(partition, []).append(record(*event))
            reads += [(side, partition, records) for partition, records in parts.items()]
    order = draw(st.permutations(range(len(reads)))) if draw(st.booleans()) else range(len(reads))
    return Trace(_in_turn(reads, order))


def _in_turn(
    reads: Sequence[tuple[Side, int, list[bytes]]], order: Sequence[int]
) -> list[tuple[Side, int, list[bytes]]]:
    """The reads in another order, but those of one partition of a side in theirs."""
    waiting = {at: [read for read in reads if read[:2] == at] for at in {read[:2] for read in reads}}
    return [waiting[reads[number][:2]].pop(0) for number in order]


class Matcher:
    """One shard, or all of a comparison."""

    def __init__(self, spec: Spec, shard: Shard) -> None:
        codec = codec_of(spec)
        self.comparison = Comparison(rules_of(spec, codec))
        self.intake = Intake(codec, self.comparison, ManualClock(), 999, SeenEvents(spec, codec))
        self.reads = shard.has
        self.found: list[Any] = []

    def run(self, trace: Trace) -> Matcher:
        ends: Counter[tuple[Side, int]] = Counter()
        contents: dict[tuple[Side, int, int], bytes] = {}
        for moment, (side, partition, records) in enumerate(trace.reads):
            start = ends[side, partition]
            ends[side, partition] += len(records)
            contents |= {(side, partition, start + n): one for n, one in enumerate(records)}
            if self.reads(partition):
                offsets = range(start, start + len(records))
                self.intake.take(Batch(side, partition, records, offsets, [moment] * len(records)))
                self.comparison.review()
        for side in Side:
            self.comparison.end(side)
        # Which of several equal events is told is no matter: they are interchangeable.
        self.found = [
            (
                found.finding.kind,
                *(event and json.loads(contents[side, *event[1:3]]) for side, event in found.finding.events),
            )
            for found in self.comparison.take_closed()
        ]
        return self


def summed(matchers: Sequence[Matcher]) -> dict[str, Any]:
    accounts: list[Counter[str]] = [Counter(), Counter()]
    for matcher in matchers:
        for side in Side:
            accounts[side].update(account_of(matcher.comparison, side))
    comparisons = [matcher.comparison for matcher in matchers]
    return {
        "accounts": accounts,
        "kinds": sum((one.ledger.matched_by_kind for one in comparisons), Counter()),
        "diverged": any(one.diverged for one in comparisons),
        "holes": [hole for one in comparisons for hole in one.holes],
        "found": sorted(map(repr, (found for matcher in matchers for found in matcher.found))),
    }


@given(traces(), st.sampled_from(ORDERS), st.integers(1, 4), st.sampled_from(["records", "hashes"]))
def test_the_shards_of_a_comparison_add_up_to_the_whole(
    trace: Trace, order: Any, shards: int, keep: str
) -> None:
    spec = spec_of(order, keep)
    assert refusal(spec, shards) is None
    whole = Matcher(spec_of(order), WHOLE).run(trace)
    parts = [Matcher(spec, Shard(number, shards)).run(trace) for number in range(shards)]
    assert summed(parts) == summed([whole])
