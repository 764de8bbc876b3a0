"""Certainty: what was checked, and what is proven of it.

A difference counts where all that proves it was checked, and is what was to be compared (see `core.proofs`).
So there are three doubts: a *hole* in the input, from its place on; a batch that may be written again, until
it is closed; what nobody has vouched for yet. `proven` tells of the last two.
"""

from __future__ import annotations

from typing import Any

from twinstream.core.accounting.proven import EVERYTHING, Proven
from twinstream.core.accounts import Hole
from twinstream.core.arrivals.retries import NotAgreed, Retries
from twinstream.core.events import Side
from twinstream.core.order import Epochs
from twinstream.core.proofs import NOTHING, Needs, Proof, Starts, UncheckedFrom
from twinstream.core.rules import Rules

HOLES_LIMIT = 100
UNCLEAR_LIMIT = 50
"""Holes that taint nothing leave room for those that do."""


class Certainty:
    """The holes and the proofs of one comparison.

    `moment` is the driver's count of what was fed. `unchecked` is from where on something was not checked. So
    many of the holes are `unclear`: single events of which it is not known whether they are copies, which
    taint nothing else. `beginning` is what may be gone behind the start: while it is given, a difference is
    this hole. `retries` tells what is written again, where the comparison file declares that.
    """

    def __init__(self, rules: Rules) -> None:
        self.moment = 0
        self.holes: list[Hole] = []
        self.unclear = 0
        self.unchecked = UncheckedFrom()
        self.beginning: Hole | None = None
        self.proven = Proven()
        horizon = rules.replay_horizon
        self.retries = None if horizon is None else Retries(horizon, copied=rules.copied)
        order = rules.order
        self._has_copies = isinstance(order, Epochs) and order.copies

    @property
    def tainted(self) -> bool:
        """Whether something was not checked, so that what hangs on everything decides nothing."""
        return len(self.holes) > self.unclear

    def doubts_nothing(self) -> bool:
        """Whether all was checked so far, and nothing of it may be written again."""
        return not self.tainted and not self.needs(None)

    def is_checked(self, proof: Proof | None) -> bool:
        """Whether nothing that proves a difference lies behind a hole; None stands for everything."""
        return not self.tainted or (proof is not None and self.unchecked.spares(proof))

    def needs(self, proof: Proof | None) -> Needs:
        """The open batches that a difference has to wait for, of which these events are the proof."""
        return NOTHING if self.retries is None else self.retries.needs(proof)

    def note(self, hole: Hole, starts: Starts | None = None) -> None:
        """Note that something was not checked. The first are kept: one decides, and more help nobody.

        It is what stands at or behind the `starts` in its side; without them it may be anything. Where
        barriers have copies a partition ends an epoch of the others, so nothing in it is its own matter.
        """
        self.unchecked.note(hole.side, {} if self._has_copies else starts or {})
        if len(self.holes) < HOLES_LIMIT:
            self.holes.append(hole)

    def note_unclear(self, hole: Hole) -> None:
        """Note that it is not known what one event is; all else was checked."""
        if self.unclear < UNCLEAR_LIMIT:
            self.unclear += 1
            self.holes.append(hole)

    def prove(self, moment: int, needs: Needs | None) -> Needs:
        """A difference was proven at a moment: the batches that it waits for, none where it counts.

        Without `needs` it waits for all open ones, and never for one that is closed.
        """
        waits_for = self.needs(None)
        if needs is not None:
            waits_for &= needs
        self.proven.prove(moment, waits_for)
        return waits_for

    def settle_batches(self, side: Side) -> tuple[list[int], list[NotAgreed]]:
        """Take in what closed batches of a side decide.

        Returns the numbers of differences that decide nothing, and what was not checked.
        """
        assert self.retries is not None, "batches are told"
        withdrawn: list[int] = []
        holes = self.retries.take_holes(side)
        for batch, hole in self.retries.take_closed(side):
            if hole is None:
                self.proven.agree(batch)
            else:
                holes.append(hole)
                withdrawn += self.proven.withdraw(batch)
        return withdrawn, holes

    # -- state ---------------------------------------------------------------------------------------------

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The state as plain data; unless `whole`, of replays what has changed."""
        replays = {} if self.retries is None else self.retries.state(whole=whole)
        return {
            "holes": [list(hole) for hole in self.holes],
            "unclear": self.unclear,
            "doubts": {
                "vouched_at": self.proven.vouched_at,
                "not_vouched_for": self.proven.unvouched(),
                "beginning": None if self.beginning is None else list(self.beginning),
                "unchecked": self.unchecked.state(),
            },
            "replays": replays and {**replays, "held": self.proven.waiting()},
        }

    def restore(self, state: dict[str, Any], proven_at: int | None) -> None:
        """Take over the `state`; `proven_at` is since when a proof counts."""
        self.holes = list(map(Hole.of, state["holes"]))
        self.unclear = state.get("unclear", 0)
        doubts = state.get("doubts", {})
        beginning = doubts.get("beginning")
        self.beginning = None if beginning is None else Hole.of(beginning)
        self.unchecked.restore(doubts.get("unchecked", (self.tainted, (), ())))
        replays = state.get("replays") or {}
        if self.retries is not None and replays:
            self.retries.restore(replays)
        self.proven.vouched_at = doubts.get("vouched_at", EVERYTHING)
        self.proven.restore(proven_at, _waiting(replays), doubts.get("not_vouched_for", ()))


def _waiting(replays: dict[str, Any]) -> list[list[Any]]:
    """What waits for batches; an older version let all wait for the same ones."""
    if replays.get("held_at") is not None:
        return [[replays["held_for"], replays["held_at"], []]]
    waiting: list[list[Any]] = replays.get("held", [])
    return waiting
