"""Certainty: the holes in the input, and the proofs of differences.

A difference counts if the events of its proof were checked, and are of the topics to be compared (see
`core.proofs`). So there are three doubts: a *hole* in the input, from its place on; a batch that may be
written again, until it is closed; input that is not vouched for yet. `proven` handles the last two.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from twinstream.core.accounting.proven import Proven
from twinstream.core.accounts import Hole
from twinstream.core.arrivals.replays import NotAgreed, Replays
from twinstream.core.events import Side
from twinstream.core.proofs import NOTHING, Needs, Proof, Starts, UncheckedFrom, needs_of
from twinstream.core.rules import Rules

HOLES_LIMIT = 100
UNCLEAR_LIMIT = 50
"""The most holes that taint nothing, so that there is room for those that do."""


class Certainty:
    """The holes and the proofs of one comparison.

    `moment` is the number of events fed, as the driver counts them. `unchecked` are the places where holes
    begin. `unclear` is the number of holes that are single events which may or may not be copies; they taint
    nothing else. `tainting` are the other holes. `beginning` is a hole for events that may be lost behind the
    start: while it is set, a difference only adds this hole. `retries` finds the replays of each side, where
    the file declares them.
    """

    def __init__(self, rules: Rules) -> None:
        self.moment = 0
        self.holes: list[Hole] = []
        self.unclear = 0
        self.tainting: list[Hole] = []
        self.unchecked = UncheckedFrom()
        self.beginning: Hole | None = None
        self.proven = Proven()
        horizon = rules.replay_horizon
        self.retries = None if horizon is None else tuple(Replays(side, horizon) for side in Side)
        self._has_copies = rules.copied

    @property
    def tainted(self) -> bool:
        """Whether a hole taints differences, so that one whose proof is unknown decides nothing."""
        return len(self.holes) > self.unclear

    def doubts_nothing(self) -> bool:
        """Whether all input so far was checked, and none of it may be written again."""
        return not self.tainted and not self.needs(None)

    def is_checked(self, proof: Proof | None) -> bool:
        """Whether no event of a proof lies behind a hole; None stands for all events."""
        return not self.tainted or (proof is not None and self.unchecked.spares(proof))

    def needs(self, proof: Proof | None) -> Needs:
        """The open batches that a difference with this proof has to wait for. O(b) in the open batches."""
        if self.retries is None:
            return NOTHING
        return needs_of(proof, chain.from_iterable(replays.open() for replays in self.retries))

    def note(self, hole: Hole, starts: Starts | None = None) -> None:
        """Note a hole. Only the first ones are kept: one decides, and more do not help anybody.

        It begins at the `starts` in its side; without them it may be anywhere. Where barriers have copies, a
        partition ends the epochs of the others, so a hole in it is a hole in all.
        """
        self.unchecked.note(hole.side, {} if self._has_copies else starts or {})
        if len(self.holes) < HOLES_LIMIT:
            self.holes.append(hole)
            self.tainting.append(hole)

    def note_unclear(self, hole: Hole) -> None:
        """Note a hole that is one event, a copy or not; all other input was checked."""
        if self.unclear < UNCLEAR_LIMIT:
            self.unclear += 1
            self.holes.append(hole)

    def prove(self, moment: int, needs: Needs | None) -> Needs:
        """Note a proof at a moment; returns the batches that its difference waits for, none if it counts.

        Without `needs` it waits for all open batches, and never for a closed one.
        """
        waits_for = self.needs(None)
        if needs is not None:
            waits_for &= needs
        self.proven.prove(moment, waits_for)
        return waits_for

    def settle_batches(self, side: Side) -> tuple[list[int], list[NotAgreed]]:
        """Apply the results of closed batches of a side.

        Returns the numbers of differences that decide nothing, and the batches that are holes.
        """
        assert self.retries is not None, "batches are told"
        agreed, holes = self.retries[side].take_closed()
        for batch in agreed:
            self.proven.agree(batch)
        withdrawn = [number for hole in holes if hole.batch for number in self.proven.withdraw(hole.batch)]
        return withdrawn, holes

    # -- state ---------------------------------------------------------------------------------------------

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The state as plain data; unless `whole`, replays only as far as they have changed."""
        replays: dict[str, Any] = {}
        if self.retries is not None:
            replays = {"sides": [one.state(whole=whole) for one in self.retries]}
        return {
            "holes": [list(hole) for hole in self.holes],
            "unclear": self.unclear,
            "tainting": [list(hole) for hole in self.tainting],
            "doubts": {
                "vouched_at": self.proven.vouched_at,
                "not_vouched_for": self.proven.unvouched(),
                "beginning": None if self.beginning is None else list(self.beginning),
                "unchecked": self.unchecked.state(),
            },
            "replays": replays and {**replays, "held": self.proven.waiting()},
        }

    def restore(self, state: dict[str, Any], proven_at: int | None) -> None:
        """Take over the `state`; `proven_at` is the moment of the earliest proof that waits for no batch."""
        self.holes += map(Hole.of, state["holes"])
        self.unclear = state["unclear"]
        self.tainting += map(Hole.of, state.get("tainting", state["holes"]))  # An earlier version saved none.
        doubts, replays = state["doubts"], state["replays"]
        beginning = doubts["beginning"]
        self.beginning = None if beginning is None else Hole.of(beginning)
        self.unchecked.restore(doubts["unchecked"])
        for of_side, kept in zip(self.retries or (), replays and replays["sides"], strict=True):
            of_side.restore(kept)
        self.proven.vouched_at = doubts["vouched_at"]
        self.proven.restore(proven_at, replays["held"] if replays else (), doubts["not_vouched_for"])
