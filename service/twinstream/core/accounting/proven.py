"""Proofs: each difference that was proven, when, and what it waits for before it counts.

A difference is proven at a moment of the driver. It may have to wait for two things:

- *batches* that may be written again: their attempts have to agree (see `core.proofs`). When a batch is
  closed they do, and nothing waits for it any more; or they do not, and what waits for it is *withdrawn*;
- a look at the topics that *vouches* for the events fed up to a moment. A look that finds that other topics
  took the place of those that are compared withdraws everything proven behind that moment.

A proof that waits for nothing *counts*: it decides the verdict, and nothing weakens it. One that is withdrawn
decides nothing, and the difference that was booked for it is tainted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinstream.core.events import Side
from twinstream.core.proofs import NOTHING, MicroBatchId, Needs

NUMBERS_KEPT = 10_000
"""Of so many differences that wait for the same it is told one by one that they decide nothing."""
NEVER = 1 << 62
"""The moment of what only an end decided, later than any other."""
EVERYTHING = NEVER
"""The moment up to which all is vouched for where nobody doubts what is fed."""


@dataclass
class _Proofs:
    """Those that wait for the same batches: the first one's moment; moment and number of what is booked."""

    moment: int
    booked: list[tuple[int, int]] = field(default_factory=list)

    def join(self, other: _Proofs) -> None:
        self.moment = min(self.moment, other.moment)
        self.booked += other.booked


class Proven:
    """The proofs of one comparison, by the batches that they wait for.

    `vouched_at` is the moment up to which what was fed is vouched for. The number of a difference is that
    under which it was booked.

    >>> proven, batch = Proven(), (Side.LEFT, "query", 3)
    >>> proven.prove(7, frozenset({batch})), proven.at
    (None, None)
    >>> proven.agree(batch), proven.at, proven.for_sure
    (None, 7, True)
    """

    def __init__(self) -> None:
        self.vouched_at = EVERYTHING
        self._by_needs: dict[Needs, _Proofs] = {}

    @property
    def at(self) -> int | None:
        """The earliest moment of a proof that waits for no batch; None without one."""
        first = self._by_needs.get(NOTHING)
        return None if first is None else first.moment

    @property
    def for_sure(self) -> bool:
        """Whether a proof counts: it waits for nothing."""
        return self.at is not None and self.at <= self.vouched_at

    @property
    def waits_for_batches(self) -> bool:
        """Whether a proof waits for batches."""
        return any(self._by_needs)

    def prove(self, moment: int, needs: Needs = NOTHING) -> None:
        """A difference was proven at a moment, and waits for these batches."""
        self._join(needs, _Proofs(moment))

    def note(self, needs: Needs, moment: int, number: int) -> None:
        """Note the number of the difference of such a proof."""
        booked = self._by_needs[needs].booked
        if (needs or moment > self.vouched_at) and len(booked) < NUMBERS_KEPT:
            booked.append((moment, number))

    def _join(self, needs: Needs, proofs: _Proofs) -> None:
        self._by_needs.setdefault(needs, _Proofs(proofs.moment)).join(proofs)

    # -- the two ends --------------------------------------------------------------------------------------

    def agree(self, batch: MicroBatchId) -> None:
        """The attempts of a batch agree: nothing waits for it any more."""
        for needs in self._waiting_for(batch):
            self._join(needs - {batch}, self._by_needs.pop(needs))
        self._forget_vouched()

    def withdraw(self, batch: MicroBatchId) -> list[int]:
        """The attempts of a batch do not agree: what waits for it decides nothing; its numbers."""
        gone = [self._by_needs.pop(needs) for needs in self._waiting_for(batch)]
        return [number for proofs in gone for _, number in proofs.booked]

    def _waiting_for(self, batch: MicroBatchId) -> list[Needs]:
        return [needs for needs in self._by_needs if batch in needs]

    def vouch(self, moment: int) -> None:
        """What was fed up to a moment is what was to be compared."""
        self.vouched_at = moment
        self._forget_vouched()

    def _forget_vouched(self) -> None:
        """What counts stays so: only its moment matters."""
        if (counting := self._by_needs.get(NOTHING)) is not None:
            counting.booked = list(self._unvouched(counting))

    def disown(self) -> list[int]:
        """Nothing that nobody has vouched for was to be compared: it decides nothing; its numbers."""
        gone = [number for proofs in self._by_needs.values() for _, number in self._unvouched(proofs)]
        for needs, proofs in tuple(self._by_needs.items()):
            proofs.booked = [one for one in proofs.booked if one[0] <= self.vouched_at]
            if proofs.moment > self.vouched_at:
                del self._by_needs[needs]
        return gone

    def _unvouched(self, proofs: _Proofs) -> Iterator[tuple[int, int]]:
        return (one for one in proofs.booked if one[0] > self.vouched_at)

    @property
    def doubted(self) -> set[int]:
        """The numbers of the differences that may be withdrawn yet."""
        return {number for proofs in self._by_needs.values() for _, number in proofs.booked}

    # -- state ---------------------------------------------------------------------------------------------

    def waiting(self) -> list[list[Any]]:
        """What waits for batches, as plain data."""
        return [
            [list(map(list, sorted(needs))), proofs.moment, [number for _, number in proofs.booked]]
            for needs, proofs in self._by_needs.items()
            if needs
        ]

    def unvouched(self) -> list[list[int]]:
        """The moments and numbers of what nobody has vouched for, as plain data."""
        proofs = self._by_needs.values()
        return [list(one) for each in proofs for one in self._unvouched(each)]

    def restore(
        self, at: int | None, waiting: Iterable[Sequence[Any]], unvouched: Iterable[Sequence[int]]
    ) -> None:
        """Take over the state: what counts since a moment, and `waiting` and `unvouched`."""
        moments = {number: moment for moment, number in unvouched}
        if at is not None:
            self._by_needs[NOTHING] = _Proofs(at)
        for rows, moment, numbers in waiting:
            needs = frozenset((Side(side), name, number) for side, name, number in rows)
            booked = [(moments.pop(number, moment), number) for number in numbers]
            self._by_needs[needs] = _Proofs(moment, booked)
        if at is not None:
            self._by_needs[NOTHING].booked = [(moment, number) for number, moment in moments.items()]
