"""However often barriers with copies are dealt to other shards, what follows is as if they never were."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.streams import spec
from twinstream.core.comparison import Comparison
from twinstream.core.dealing import dealt
from twinstream.core.events import Side
from twinstream.core.orders import BARRIER
from twinstream.core.run import Run
from twinstream.core.sharding import Undealt
from twinstream.core.snapshot import restore, snapshot
from twinstream.runtime.accounts import account_of
from twinstream.runtime.checkpoint import decode, encode
from twinstream.spec.compile import rules_of
from twinstream.spec.keeping import codec_of

PARTITIONS = 4
KINDS = "kinds: {day: {where: {t: day}}, ride: {}}\n"
INNER = ["unordered", "{per_key: [k]}", "{by_key: [k], inner: unordered}"]
Streams = dict[tuple[Side, int], list[bytes]]
Step = tuple[Side, int, int] | int
"""To read so many events of a partition of a side, or to go on with so many shards."""


def streams(
    epochs: Sequence[Sequence[tuple[int, int]]], changes: Sequence[tuple[str, int]], days: Sequence[int]
) -> Streams:
    """Both sides, the candidate changed a little; each event in the partition of its key, a day in each."""
    found: Streams = {(side, partition): [] for side in Side for partition in range(PARTITIONS)}
    for side in Side:
        for number, epoch in enumerate(epochs):
            rides = [json.dumps({"t": "ride", "k": key, "n": n}).encode() for key, n in epoch]
            for change, at in changes if side else ():
                if at % len(epochs) == number and rides:
                    place = at % len(rides)
                    if change == "drop":
                        del rides[place]
                    elif change == "twice":
                        rides.insert(place, rides[place])
                    else:
                        rides[place : place + 2] = reversed(rides[place : place + 2])
            for ride in rides:
                found[side, json.loads(ride)["k"] % PARTITIONS].append(ride)
            for partition in range(PARTITIONS):
                found[side, partition].append(json.dumps({"t": "day", "n": days[number]}).encode())
    return found


class Shards:
    """A comparison that any number of shards share."""

    def __init__(self, inner: str) -> None:
        self._spec = spec(f"{{barrier: day, inner: {inner}, copies: per_partition}}", KINDS)
        self._codec, self._moment = codec_of(self._spec), 0
        self._rules = rules_of(self._spec, self._codec)
        self.shards, self.refused = [Comparison(self._rules)], list[str]()
        self._expect()

    def _expect(self) -> None:
        for number, shard in enumerate(self.shards):
            for side in Side:
                shard.expect_partitions(side, range(number, PARTITIONS, len(self.shards)))

    def _letter_of(self, record: bytes) -> bytes | None:
        form = self._codec.form(record)
        return self._codec.canonical(form[1]) if form[0] is BARRIER else None

    def deal(self, count: int) -> None:
        """Go on with so many shards, unless the state is refused for now."""
        states = [decode(encode(snapshot(shard))) for shard in self.shards]
        try:
            shares = dealt(states, count, lambda _, partition: partition % count, self._letter_of)
        except Undealt as why:
            self.refused.append(str(why))
            return
        self.shards = [Comparison(self._rules) for _ in shares]
        for shard, share in zip(self.shards, shares, strict=True):
            restore(shard, decode(encode(share)), self._codec.form, 0.0)
        self._expect()
        self.check()

    def feed(self, side: Side, partition: int, offset: int, records: Sequence[bytes]) -> None:
        """Read some records of a partition."""
        self._moment += 1
        shard = self.shards[partition % len(self.shards)]
        shard.moment = self._moment
        forms, _ = self._codec.forms(records)
        offsets = range(offset, offset + len(records))
        shard.feed(side, Run(forms, partition, offsets, offsets, 0.0))
        shard.review()

    def check(self) -> None:
        """What waits is what the accounts say, and nothing is counted below zero."""
        for shard in self.shards:
            for side in Side:
                account = account_of(shard, side)
                assert len(shard.waiting_events(side)) == account["unmatched"] == shard.unmatched(side)
                assert account["consumed"] == sum(account.values()) - account["consumed"]
        totals = [sum((Counter(account_of(one, side)) for one in self.shards), Counter()) for side in Side]
        assert all(count >= 0 for total in totals for count in total.values())

    def run(self, source: Streams, steps: Sequence[Step]) -> None:
        """Read in some order, then all the rest."""
        read = dict.fromkeys(source, 0)
        rest = [(*place, len(source[place])) for _ in range(2) for place in source]
        for step in [*steps, *rest]:
            if isinstance(step, int):
                self.deal(step)
                continue
            side, partition, count = step
            start = read[side, partition]
            records = source[side, partition][start : start + count]
            if records:
                read[side, partition] += len(records)
                self.feed(side, partition, start, records)

    def told(self) -> dict[str, Any]:
        """What does not depend on how the work is and was divided; a day counts once in each shard."""
        for shard in self.shards:
            for side in Side:
                shard.end(side)
        self.check()
        accounts = [sum((Counter(account_of(one, side)) for one in self.shards), Counter()) for side in Side]
        ledgers = [shard.ledger for shard in self.shards]
        kinds = sum((Counter(ledger.matched_by_kind) for ledger in ledgers), Counter())
        return {
            "consumed": [account["consumed"] for account in accounts],
            "divergent": [account["divergent"] for account in accounts],
            "unmatched": [account["unmatched"] for account in accounts],
            "days": [account["ignored"] + kinds["day"] for account in accounts],
            "rides": kinds["ride"],
            "found": +sum((Counter(ledger.closed_by_kind) for ledger in ledgers), Counter()),
            "diverged": any(shard.diverged for shard in self.shards),
            "holes": {hole.reason for ledger in ledgers for hole in ledger.holes},
        }


epochs = st.lists(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), max_size=8), min_size=1, max_size=8
)
changes = st.lists(st.tuples(st.sampled_from(["drop", "twice", "swap"]), st.integers(0, 40)), max_size=1)
reads = st.tuples(st.sampled_from(list(Side)), st.integers(0, PARTITIONS - 1), st.integers(1, 9))
steps = st.lists(st.one_of(reads, reads, reads, st.integers(1, PARTITIONS)), max_size=60)


@given(st.sampled_from(INNER), epochs, changes, steps)
def test_barriers_with_copies_are_dealt_at_any_moment(
    inner: str, epochs: list[Any], changes: list[Any], steps: list[Step]
) -> None:
    source = streams(epochs, changes, range(len(epochs)))
    whole, parts = Shards(inner), Shards(inner)
    whole.run(source, [step for step in steps if not isinstance(step, int)])
    parts.run(source, steps)
    assert parts.told() == whole.told()


def days(*numbers: int) -> list[bytes]:
    return [json.dumps({"t": "day", "n": number}).encode() for number in numbers]


def test_shards_that_are_far_apart_are_dealt_when_they_have_come_nearer() -> None:
    shards = Shards("unordered")
    shards.deal(2)
    for side in Side:
        for partition in (1, 3):
            shards.feed(side, partition, 0, days(*range(21)))
    shards.deal(1)
    assert shards.refused == ["its shards are more than 20 barriers apart"]
    for side in Side:
        for partition in (0, 2):
            shards.feed(side, partition, 0, days(0))
    shards.deal(1)
    assert len(shards.shards) == 1
    for side in Side:
        for partition in (0, 2):
            shards.feed(side, partition, 1, days(*range(1, 21)))
    told = shards.told()
    assert (told["days"], told["divergent"], told["unmatched"]) == ([84, 84], [0, 0], [0, 0])


def test_copies_that_are_not_equal_in_two_shards_are_not_dealt_to_one() -> None:
    shards = Shards("unordered")
    shards.deal(2)
    for partition in range(PARTITIONS):
        shards.feed(Side.LEFT, partition, 0, days(partition % 2))
    shards.deal(1)
    assert shards.refused == ["the copies of one barrier in its shards are not equal"]


def test_a_copy_that_is_not_equal_to_one_that_another_shard_had_is_a_hole() -> None:
    shards = Shards("unordered")
    shards.deal(2)
    for partition in (0, 2):
        shards.feed(Side.LEFT, partition, 0, days(7))
    shards.deal(1)
    shards.feed(Side.LEFT, 1, 0, days(8))
    (hole,) = shards.shards[0].holes
    assert "the copies of one barrier" in hole.reason
    assert (hole.side, hole.partition, hole.offset) == (Side.LEFT, 1, 0)


def ride(number: int, key: int) -> bytes:
    return json.dumps({"t": "ride", "k": key, "n": number}).encode()


def test_a_difference_that_is_open_behind_a_barrier_waits_until_all_shards_have_come_there() -> None:
    shards = Shards("{per_key: [k]}")
    shards.deal(2)
    for side in Side:
        for partition in (1, 3):
            shards.feed(side, partition, 0, days(0))
    swapped = [ride(1, key=1), ride(2, key=1)]
    shards.feed(Side.LEFT, 1, 1, swapped)
    shards.feed(Side.RIGHT, 1, 1, swapped[::-1])
    shards.deal(1)
    assert shards.refused == ["a difference is open in it, and not all shards have come to that barrier"]
    for side in Side:
        for partition in (0, 2):
            shards.feed(side, partition, 0, days(0))
    shards.deal(1)
    assert len(shards.shards) == 1
    assert shards.told()["found"] == {"reordered": 1}


def test_a_barrier_that_is_missing_is_dealt_when_all_shards_have_settled_it() -> None:
    shards = Shards("{per_key: [k]}")
    shards.deal(2)
    numbers = (0, 1, 2, 3, 4), (0, 2, 3, 4)

    def write(*partitions: int) -> None:
        for partition in partitions:
            for side in Side:
                records = [one for n in numbers[side] for one in (*days(n), ride(n, key=partition))]
                shards.feed(side, partition, 0, records)

    write(0, 2)
    shards.deal(1)
    assert shards.refused == ["not all of its shards have settled the same differences between barriers"]
    write(1, 3)
    shards.deal(1)
    assert (len(shards.shards), len(shards.refused)) == (1, 1)
    assert shards.told()["found"]["missing"] == 2 + 4
