"""Proofs: the differences that were proven, their moments, and the conditions before they count.

A difference is proven at a moment of the driver. It may have to wait for two things:

- *batches* that may be written again: their attempts must agree (see `core.proofs`). If they do when a batch
  is closed, no proof waits for it any more; if not, the proofs that wait for it are *withdrawn*;
- a look at the topics that *vouches* for the events fed up to a moment. A look that finds that other topics
  have replaced the compared ones withdraws every proof behind that moment.

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
"""The most differences with the same conditions that can be tainted one by one."""
NEVER = 1 << 62
"""The moment of a difference that only an end decided, later than any other."""
EVERYTHING = NEVER
"""The vouched moment where nobody doubts the input: all of it is vouched for."""


@dataclass
class _Proofs:
    """Proofs that wait for the same batches: the first one's moment, and the booked moments and numbers."""

    moment: int
    booked: list[tuple[int, int]] = field(default_factory=list)


class Proven:
    """The proofs of one comparison, by the batches that they wait for.

    `vouched_at` is the moment up to which the input is vouched for. The number of a difference is that under
    which it was booked.

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
        """Note that a difference was proven at a moment, and waits for these batches."""
        self._join(needs, _Proofs(moment))

    def note(self, needs: Needs, moment: int, number: int) -> None:
        """Note the number of the difference that such a proof belongs to."""
        booked = self._by_needs[needs].booked
        if (needs or moment > self.vouched_at) and len(booked) < NUMBERS_KEPT:
            booked.append((moment, number))

    def _join(self, needs: Needs, proofs: _Proofs) -> None:
        known = self._by_needs.setdefault(needs, _Proofs(proofs.moment))
        known.moment = min(known.moment, proofs.moment)
        known.booked += proofs.booked

    # -- the two ends --------------------------------------------------------------------------------------

    def agree(self, batch: MicroBatchId) -> None:
        """Note that the attempts of a batch agree, so no proof waits for it any more."""
        for needs in self._waiting_for(batch):
            self._join(needs - {batch}, self._by_needs.pop(needs))
        self._forget_vouched()

    def withdraw(self, batch: MicroBatchId) -> list[int]:
        """Withdraw the proofs that wait for a batch whose attempts disagree; returns their numbers."""
        gone = [self._by_needs.pop(needs) for needs in self._waiting_for(batch)]
        return [number for proofs in gone for _, number in proofs.booked]

    def _waiting_for(self, batch: MicroBatchId) -> list[Needs]:
        return [needs for needs in self._by_needs if batch in needs]

    def vouch(self, moment: int) -> None:
        """Vouch for the input up to a moment: it is the input to be compared."""
        self.vouched_at = moment
        self._forget_vouched()

    def _forget_vouched(self) -> None:
        """Forget the numbers of proofs that count, since these are never withdrawn."""
        if (counting := self._by_needs.get(NOTHING)) is not None:
            counting.booked = list(self._unvouched(counting))

    def disown(self) -> list[int]:
        """Withdraw the proofs that are not vouched for; returns their numbers."""
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
        """The numbers of the differences that may still be withdrawn."""
        return {number for proofs in self._by_needs.values() for _, number in proofs.booked}

    # -- state ---------------------------------------------------------------------------------------------

    def waiting(self) -> list[list[Any]]:
        """The proofs that wait for batches, as plain data."""
        return [
            [list(map(list, sorted(needs))), proofs.moment, [number for _, number in proofs.booked]]
            for needs, proofs in self._by_needs.items()
            if needs
        ]

    def unvouched(self) -> list[list[int]]:
        """The moments and numbers of the proofs that are not vouched for, as plain data."""
        proofs = self._by_needs.values()
        return [list(one) for each in proofs for one in self._unvouched(each)]

    def restore(
        self, at: int | None, waiting: Iterable[Sequence[Any]], unvouched: Iterable[Sequence[int]]
    ) -> None:
        """Take over the state: the moment of the first proof without batches, `waiting` and `unvouched`."""
        moments = {number: moment for moment, number in unvouched}
        if at is not None:
            self._by_needs[NOTHING] = _Proofs(at)
        for rows, moment, numbers in waiting:
            needs = frozenset((Side(side), name, number) for side, name, number in rows)
            booked = [(moments.pop(number, moment), number) for number in numbers]
            self._by_needs[needs] = _Proofs(moment, booked)
        if at is not None:
            self._by_needs[NOTHING].booked = [(moment, number) for number, moment in moments.items()]
