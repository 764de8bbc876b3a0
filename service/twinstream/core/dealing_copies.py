"""Copies of barriers, dealt with their partitions to another number of shards (see `copies` and `dealing`).

Each shard unites the copies of its own partitions, so some shards are past a barrier that others have still
to pass. The barriers of a side have numbers: the first that a partition delivers is 0, whatever the shard. Of
each partition it is known how many of its copies were *united* with others and so went to matching, and how
many of these are *settled*, as matched or as different, together with those of the other side. So the epoch
of everything that waits is known, too.

A new shard begins behind the barriers that are settled in all of its partitions. What waits of that epoch is
in its index. All else waits in line to go to matching, in its partition behind copies that were united
before: they are `copies.SETTLED` now. What they were is known from the latest barriers of the old shards, as
many as `copies.LATEST`, and from those that wait. Shards further apart are not dealt.

Where all partitions of a new shard are past a barrier that is not settled, one copy of it waits again. So of
one that waited there may be several after that, or none; copies that were settled as ignored make up for it,
and the accounts add up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from twinstream.core.columns import Row, columns_of, rows_of
from twinstream.core.copies import LATEST, SETTLED
from twinstream.core.events import Side
from twinstream.core.sharding import Undealt

State = dict[str, Any]
LetterOf = Callable[[bytes], bytes | None]
"""The canonical form of a barrier, from its record; None for other events."""
_PLACE = itemgetter(1, 2)


class Dealt(NamedTuple):
    """By shard and side what waits there and what is kept of copies; by side how many copies wait no more."""

    held: list[list[list[Row]]]
    copies: list[list[State]]
    settled: list[int]


def dealt_copies(states: Sequence[State], count: int, letter_of: LetterOf) -> Dealt:
    """What waits, and the copies, of so many shards. Raises Undealt. Complexity: O(n) in what waits."""
    shards = [[_Stream(state, side, letter_of) for side in Side] for state in states]
    if len({left.settled - right.settled for left, right in shards}) > 1:
        raise Undealt("not all of its shards have settled the same differences between barriers")
    found = Dealt([], [], [sum(len(shard[side].barriers) for shard in shards) for side in Side])
    for number in range(count):
        parts = [_Part([shard[side] for shard in shards], number, count, letter_of) for side in Side]
        for state, (left, _) in zip(states, shards, strict=True):
            if _open_difference(state, number, count) and left.settled != parts[0].settled:
                raise Undealt("a difference is open in it, and not all shards have come to that barrier")
        found.held.append([part.rows() for part in parts])
        found.copies.append([part.state() for part in parts])
        for side in Side:
            found.settled[side] -= len(parts[side].barriers)
    return found


def _open_difference(state: State, number: int, count: int) -> bool:
    """Whether one is open that goes to a shard: in the epoch that both sides are in, and in no later one."""
    if any(scope["order"] == 0 for scope in state["scopes"]):
        raise Undealt("a difference at a barrier is open in it")
    return any(scope["example"]["partitions"][0] % count == number for scope in state["scopes"])


class _Stream:
    """One side of one shard as it was.

    `barriers` are those that wait in its index, `settled` those before them; `known` are barriers by their
    numbers.
    """

    def __init__(self, state: State, side: Side, letter_of: LetterOf) -> None:
        copies = state["copies"][side]
        rows = {_PLACE(row): row for row in rows_of(state["held"][side])}
        self.partitions: list[int] = copies["expected"]
        self._united: int = copies["united"]
        self.barriers: list[Row] = []
        self._behind: dict[int, list[Row | None]] = defaultdict(list)
        for partition, offset, *home in copies["places"]:
            row = SETTLED if offset is None else rows.pop((home[0] if home else partition, offset))
            self._behind[partition].append(row)
        scoped = {tuple(place) for scope in state["scopes"] for place in scope["places"][side]}
        epochs = []
        for place, row in rows.items():
            if place not in scoped and letter_of(row[0]) is not None:
                self.barriers.append(row)
            else:
                epochs.append((0 if place in scoped else len(self.barriers), row))
        self.settled: int = self._united - len(self.barriers)
        self._waiting = [(self.settled + epoch, row) for epoch, row in epochs]
        self._settled_of: dict[int, int] = dict(copies.get("settled", ()))
        latest, given = (
            list(rows_of(copies[name])) if copies.get(name) else [] for name in ("latest", "given")
        )
        self.known = dict(enumerate(latest, self._united - len(latest)))
        self.known.update(enumerate([*self.barriers, *given], self.settled))

    def settled_of(self, partition: int) -> int:
        """How many barriers are settled for a partition."""
        return max(self.settled, self._settled_of.get(partition, 0))

    def united_of(self, partition: int) -> int:
        """How many copies of a partition were united with others."""
        return self._united + sum(row is SETTLED for row in self._behind[partition])

    def of(self, partition: int, settled: int) -> tuple[list[Row], list[Row | None]]:
        """What waits of a partition in the index of a shard that begins behind so many barriers, and in line.

        What was in an index stays in one if its epoch is still that of both sides; all else goes to matching
        once more.
        """
        epochs = defaultdict(list)
        for epoch, row in self._waiting:
            if row[1] == partition:
                epochs[epoch].append(row)
        stays = epochs.pop(settled, []) if self.settled == settled else []
        line: list[Row | None] = []
        for number in range(min(settled, self.settled), self._united + 1):
            line += [*epochs[number], *[SETTLED] * (number < self._united)]
        line += self._behind[partition]
        for _ in range(settled - self.settled):
            line.remove(SETTLED)
        return stays, line


class _Part:
    """One side of one new shard, made of its partitions of old ones. `barriers` wait in it again."""

    def __init__(self, old: Sequence[_Stream], number: int, count: int, letter_of: LetterOf) -> None:
        own = sorted((p, one) for one in old for p in one.partitions if p % count == number)
        self._partitions = [partition for partition, _ in own]
        self.settled = min(one.settled_of(partition) for partition, one in own)
        self._settled_of = [[p, n] for p, one in own if (n := one.settled_of(p)) > self.settled]
        found = {partition: one.of(partition, self.settled) for partition, one in own}
        self._open = [row for stays, _ in found.values() for row in stays]
        self._behind = {partition: line for partition, (_, line) in found.items()}
        united = [one.united_of(partition) for partition, one in own]
        self._known = _known([one for _, one in own], letter_of)
        if any(barrier not in self._known for barrier in range(self.settled, max(united))):
            raise Undealt(f"its shards are more than {LATEST} barriers apart")
        self._given = [self._known[barrier] for barrier in range(self.settled, max(united))]
        self.barriers = self._given[: min(united) - self.settled]
        self._let_wait(self.barriers)

    def _let_wait(self, barriers: Sequence[Row]) -> None:
        """Put barriers in the place of copies that are settled, if possible in their own partition."""
        places = {
            partition: [place for place, row in enumerate(rows) if row is SETTLED]
            for partition, rows in self._behind.items()
        }
        for number, row in enumerate(barriers):
            partition = row[1] if row[1] in self._behind else self._partitions[0]
            self._behind[partition][places[partition][number]] = row

    def rows(self) -> list[Row]:
        """What waits, in the order of matching, and behind it what waits for copies."""
        behind = chain.from_iterable(self._behind.values())
        return [*sorted(self._open, key=_PLACE), *(row for row in behind if row is not SETTLED)]

    def state(self) -> State:
        """What is kept of copies."""
        latest: list[Row] = []
        while len(latest) < LATEST and (number := self.settled - len(latest) - 1) in self._known:
            latest.append(self._known[number])
        return {
            "places": [_place(partition, row) for partition, rows in self._behind.items() for row in rows],
            "expected": self._partitions,
            "united": self.settled,
            "settled": self._settled_of,
            "given": columns_of(self._given),
            "latest": columns_of(reversed(latest)),
        }


def _known(old: Sequence[_Stream], letter_of: LetterOf) -> dict[int, Row]:
    """The barriers that old shards know, which are equal where several do."""
    found: dict[int, Row] = {}
    for number, row in chain.from_iterable(one.known.items() for one in old):
        if letter_of(found.setdefault(number, row)[0]) != letter_of(row[0]):
            raise Undealt("the copies of one barrier in its shards are not equal")
    return found


def _place(partition: int, row: Row | None) -> list[int | None]:
    """As in a snapshot: the partition that it waits in, its offset, and its own partition if another."""
    if row is SETTLED:
        return [partition, None]
    return [partition, row[2]] if row[1] == partition else [partition, row[2], row[1]]
