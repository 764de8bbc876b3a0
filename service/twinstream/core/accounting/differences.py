"""The differences of a comparison: each is a known one, the other half of an earlier one, or new.

A difference is booked once, under its kind at that time. A leftover of one side may be *completed*: an event
that moved further than a scope reaches is found twice, where it is missing and where it is surplus. A
difference is *in dispute* as long as its kind may change to one that a known difference covers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twinstream.core.accounting.certainty import Certainty
from twinstream.core.accounting.event_rows import EventReader
from twinstream.core.accounting.halves import Divergence, Half, Reach, halves_of, state_of, tainted
from twinstream.core.accounting.ledger import Ledger
from twinstream.core.accounting.unpaired import Lookups, Unpaired
from twinstream.core.accounts import Hole
from twinstream.core.arrivals.replays import NotAgreed
from twinstream.core.diagnosis.findings import Finding, Kind, Witness
from twinstream.core.diagnosis.known_differences import KnownDifferences
from twinstream.core.events import (
    FORM,
    OFFSET,
    PARTITION,
    RECORD,
    ROUTE,
    TIMESTAMP_MS,
    Event,
    Exact,
    Side,
    place_in_side,
)
from twinstream.core.order import Epochs, Pairwise, Ruled, nodes, ordered_class
from twinstream.core.proofs import Needs, Starts
from twinstream.core.rules import Rules

EXPLAINED_LIMIT, EXPLAINED_BYTES = 100_000, 256 << 20
"""Explained leftovers of a side that are kept for another half: ten times `REACH`."""
LEFTOVERS = {"strays": "unpaired", "lone": "independent", "disputed": "disputed", "explained": "explained"}
"""The stores of leftovers whose other half may come."""
NOT_KEPT = (
    "a row has come on one side only, and the other table's row of its key is not kept: only that one "
    "would tell whether the difference is a known one"
)


class Differences:
    """The differences of one comparison.

    `unpaired` are leftovers that may have changed places, `independent` those that depend on nothing and
    may be late. `disputed` are differences that may be known ones once their kind is final, and are not
    settled before; `explained` are leftovers that are known ones, unless another half comes.
    `found_by_kind` counts differences by the kind first found and never falls, `closed_by_kind` by their
    kind now. `halted`: there was a difference, and by the rules nothing after it counts.

    Under rules or a function, or where a clock proves, the order of reading may decide whether both halves
    of an event that changed are found together. So known differences take them for one if they are not, too.
    """

    def __init__(self, rules: Rules, ledger: Ledger, certainty: Certainty) -> None:
        self._rules, self.ledger, self.certainty = rules, ledger, certainty
        self.halted = False
        self.known = KnownDifferences(rules.known)
        by_rules = any(isinstance(order, Ruled | Pairwise) for order, _ in nodes(rules.order))
        self._by_name = rules.identity is not None and (rules.proves or by_rules)
        self.unpaired = Unpaired()
        self.independent = Unpaired()
        self.disputed = Unpaired(rules.unmatched_limit, rules.unmatched_bytes)
        self.explained = Unpaired(EXPLAINED_LIMIT, EXPLAINED_BYTES)
        self.closed_by_kind: Counter[Kind] = Counter()
        self.found_by_kind: Counter[Kind] = Counter()
        self._closed: list[Divergence] = []
        self._tainted: list[int] = []

    def halt_by_rules(self) -> None:
        """Halt after a difference, if the rules let nothing count after one."""
        self.halted = self.halted or self._rules.halt

    # -- holes and proofs ----------------------------------------------------------------------------------

    def hole(self, hole: Hole, starts: Starts | None = None) -> None:
        """Note a hole that begins at the `starts` (see `certainty`).

        A difference in dispute is not proven yet, and its cause may be in the hole.
        """
        self.certainty.note(hole, starts)
        if self.disputed:
            self.disputed.amend(tainted)

    def diverge(self, moment: int, needs: Needs | None = None) -> Needs | None:
        """Note a proof at a moment; returns the batches that the difference waits for, empty if it counts.

        Returns None if it decides nothing, since lost events may have caused it.
        """
        beginning = self.certainty.beginning
        if beginning is None:
            return self.certainty.prove(moment, needs)
        if beginning not in self.certainty.holes:
            self.hole(beginning)
        return None

    def settle_batches(self, side: Side) -> list[NotAgreed]:
        """Apply the results of closed batches of a side; returns their holes, for the caller to note."""
        withdrawn, holes = self.certainty.settle_batches(side)
        self._taint(withdrawn)
        return holes

    def disown(self) -> None:
        """Taint the differences found in input that is not vouched for, since it was not to be compared."""
        self._taint(self.certainty.proven.disown())

    def _taint(self, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        self._tainted += numbers
        gone = set(numbers)

        def known(divergence: Divergence) -> Divergence:
            return divergence._replace(tainted=True) if divergence.number in gone else divergence

        self._closed = list(map(known, self._closed))
        for leftovers in (self.unpaired, self.independent):
            leftovers.amend(lambda half: half._replace(divergence=known(half.divergence)))

    def take_tainted(self) -> list[int]:
        """The numbers of differences that were tainted since the last call."""
        tainted, self._tainted = self._tainted, []
        return tainted

    # -- settling ------------------------------------------------------------------------------------------

    def settle(
        self,
        finding: Finding,
        moment: int,
        *,
        tainted: bool,
        needs: Needs | None = None,
        reach: Reach | None = None,
    ) -> None:
        """Settle a difference that was proven at a moment: as a new one, or as the other half of another.

        It counts when the batches agree that it `needs`: all open ones if that is None. Its other half, if
        there is one, comes within `reach`. A difference that is not a known one, but may become one under
        the kind that its other half gives it, is not booked before that half can have come.
        """
        self._leave(finding)
        found = Half(Divergence(finding, tainted, finding), moment, reach)
        if finding.partner is None:
            if self._came_late(finding):
                return
            if (other := self._take_half(found)) is not None:
                found = self._whole(other, found)
            elif self._joins(found) and (earlier := self._claim_named(found)) is not None:
                self._count(found, needs, earlier)
                return
        if reach is None or not self._settle_known(found):
            self._book(found, needs)

    def settle_apart(self, finding: Finding, moment: int, *, tainted: bool) -> None:
        """Settle a difference of rows that never went to matching, so no event is its other half."""
        self._leave(finding)
        if self.known.explain(finding, self.ledger.matched) is not None:
            self._count_explained(finding, 1)
            return
        self._count_divergent(finding)
        decides = not tainted and not self._lacks_a_row(finding)
        half = Half(Divergence(finding, tainted, finding), moment)
        self._add(half, self.diverge(moment) if decides else None)

    def _lacks_a_row(self, finding: Finding) -> bool:
        """Whether a row that is not kept decides if a difference is known; if so, it is noted as a hole.

        All other input was checked, so the hole taints nothing else.
        """
        if finding.is_whole or not self.known.may_turn_out(finding, self.ledger.matched):
            return False
        self.certainty.note_unclear(Hole.at(place_in_side(finding.event), finding.side, NOT_KEPT))
        return True

    def _leave(self, finding: Finding) -> None:
        """Take the events of a finding from the unmatched ones."""
        for side, event in finding.events:
            if event is not None:
                self.ledger.give_up(side, event)
                self.ledger.held[side].left((event,))

    def _settle_known(self, half: Half) -> bool:
        """Settle a difference that is a known one, or may still become one; returns whether it is either."""
        finding = half.finding
        one_sided = finding.partner is None
        if self.known.explain(finding, self.ledger.matched) is not None:
            self._count_explained(finding, 1)
            if one_sided and (self._hangs_on_its_name(half) or not self._depends(finding.event)):
                self.explained.note(finding.side, self.keys_of(finding), half)
        elif (
            (one_sided and self._may_be_known(half))
            or self.known.over_share(finding, self.ledger.matched)
            or self._awaits_room(finding)
        ):
            self.disputed.note(finding.side, self.keys_of(finding), half)
        else:
            return False
        return True

    def _take_half(self, half: Half) -> Half | None:
        """Take the other half of a leftover, if it is not booked; it is no longer disputed or explained.

        An equal event comes before one that only has its identity.
        """
        finding = half.finding
        side, keys = finding.side.other, self.keys_of(finding)
        for claim in (Unpaired.claim_equal, *([Unpaired.claim_named] if self._joins(half) else [])):
            fits = half.is_named_with if claim is Unpaired.claim_named else lambda one: one.fits(finding)
            if (other := claim(self.disputed, side, keys, fits)) is not None:
                return other
            if (other := claim(self.explained, side, keys, fits)) is not None:
                self.known.take_back(other.finding)
                self._count_explained(other.finding, -1)
                return other
        return None

    def _joins(self, half: Half) -> bool:
        """Whether rules see a leftover and a later one of its identity as one event that has changed."""
        return self._by_name and half.reach is not None

    def _whole(self, one: Half, other: Half) -> Half:
        """The one difference that two halves make, of which none is booked."""
        finding = self._joined(one, other.finding)
        tainted = one.divergence.tainted or other.divergence.tainted
        return Half(Divergence(finding, tainted, finding), min(one.moment, other.moment), other.reach)

    def _count_explained(self, finding: Finding, count: int) -> None:
        for side, event in finding.events:
            self.ledger.accounts[side].explained += 0 if event is None else count

    def settle_disputed(self, done: Callable[[Half], bool] = lambda _: True) -> None:
        """Book the disputed differences whose kind is final, and forget the leftovers explained for good.

        A difference also waits while one of these leftovers may make room for it under a ceiling.
        """
        for side in Side:
            for half in self.explained.take(side, done):
                if not self._depends(half.finding.event):
                    self.independent.note(side, self.keys_of(half.finding), half)
        for side in Side:
            ready = self.disputed.take(side, lambda half: done(half) and not self._awaits_room(half.finding))
            for half in ready:
                self._book(half)

    def may_be_known(self) -> bool:
        """Whether a difference that is found now may be a known one.

        Even if no rule has room, it may be the other half of one that a rule covers already.
        """
        return self.known.open(self.ledger.matched) or len(self.explained) > 0

    def _hangs_on_its_name(self, half: Half) -> bool:
        """Whether an explained leftover may be explained differently once its other half comes."""
        finding = half.finding
        other: tuple[Kind, ...] = ("extra", "duplicate") if finding.kind == "missing" else ("missing",)
        kinds = (*self._names_of(half), *other)
        return self._joins(half) or any(self.known.speaks_of(finding._replace(kind=kind)) for kind in kinds)

    def _may_be_known(self, half: Half) -> bool:
        """Whether a known difference may cover a leftover under the name that its other half gives it."""
        named = (half.finding._replace(kind=kind) for kind in self._names_of(half))
        return any(self.known.may_cover(finding, self.ledger.matched) for finding in named)

    def _names_of(self, half: Half) -> Iterator[Kind]:
        """What a leftover may turn out to be."""
        if self._depends(half.finding.event):
            yield "reordered"
        if self._joins(half):
            yield "changed"

    def _awaits_room(self, finding: Finding) -> bool:
        """Whether a ceiling keeps rules from covering a difference, and may yet have room for it.

        It has once a leftover that counts against it turns out to be another difference.
        """
        return len(self.explained) > 0 and self.known.names(finding)

    def _book(self, half: Half, needs: Needs | None = None) -> None:
        """Book a difference under its kind: as a known one, as part of an earlier one, or as new."""
        finding = half.finding
        if self.known.explain(finding, self.ledger.matched) is not None:
            self._count_explained(finding, 1)
        else:
            earlier = self._claim_unpaired(half) if finding.partner is None else None
            self._count(half, needs, earlier)

    def _count(self, half: Half, needs: Needs | None, earlier: Half | None) -> None:
        """Count a difference: as the other half of an `earlier` one, or as new."""
        finding = half.finding
        self._count_divergent(finding)
        tainted = half.divergence.tainted or (earlier is None and self._is_unclear(finding))
        awaited = None if tainted else self.diverge(half.moment, needs)
        if earlier is not None:
            self._complete(earlier, finding)
            return
        divergence = self._add(half, awaited)
        if finding.left is None or finding.right is None:
            leftovers = self.unpaired if self._depends(finding.event) else self.independent
            leftovers.note(finding.side, self.keys_of(finding), half._replace(divergence=divergence))

    def _count_divergent(self, finding: Finding) -> None:
        for side, event in finding.events:
            self.ledger.accounts[side].divergent += 0 if event is None else 1

    def _add(self, half: Half, awaited: Needs | None) -> Divergence:
        """Book a new difference; it waits for the `awaited` batches, and decides nothing if that is None."""
        finding = half.finding
        divergence = Divergence(finding, awaited is None, finding, self.found_by_kind.total())
        self.closed_by_kind[finding.kind] += 1
        self.found_by_kind[finding.kind] += 1
        self.halt_by_rules()
        self._closed.append(divergence)
        if awaited is not None:
            self.certainty.proven.note(awaited, half.moment, divergence.number)
        return divergence

    def _is_unclear(self, finding: Finding) -> bool:
        """Whether a surplus event may be a copy that a rule covers; if so, it is noted as a hole.

        All other input was checked, so the hole taints nothing else.
        """
        if finding.kind != "extra" or self.ledger.repeats is None:
            return False
        copy = finding._replace(kind="duplicate")
        if not (
            self.known.covers([copy], self.ledger.matched) or self.known.over_share(copy, self.ledger.matched)
        ):
            return False
        event = finding.event
        reason = self.ledger.repeats.doubt(event)
        if reason is not None:
            self.certainty.note_unclear(Hole.at(place_in_side(event), Side.RIGHT, reason))
        return reason is not None

    # -- one event that is found twice ---------------------------------------------------------------------

    def _depends(self, event: Event) -> bool:
        """Whether an event depends on any other; all depend on barriers, also on those with copies."""
        order = self._rules.order
        return isinstance(order, Epochs) or ordered_class(order, event[FORM][ROUTE]) is not None

    def _complete(self, earlier: Half, other: Finding) -> None:
        """Complete an earlier leftover with its other half."""
        joined = self._joined(earlier, other)
        self.closed_by_kind[earlier.finding.kind] -= 1
        self.closed_by_kind[joined.kind] += 1
        self._closed.append(earlier.divergence._replace(finding=joined))

    def _claim_unpaired(self, half: Half) -> Half | None:
        """Take the other half of a leftover, if it is booked: an equal event, else one of its identity."""
        finding = half.finding
        side, keys = finding.side.other, self.keys_of(finding)
        found = self.unpaired.claim_equal(side, keys, lambda one: one.fits(finding))
        return found or self._claim_named(half)

    def _claim_named(self, half: Half) -> Half | None:
        """Take the booked leftover of the other side that has the identity of a leftover."""
        finding = half.finding
        lone = self.unpaired if self._depends(finding.event) else self.independent
        return lone.claim_named(finding.side.other, self.keys_of(finding), half.is_named_with)

    def _joined(self, half: Half, other: Finding) -> Finding:
        """The one difference that two halves make."""
        one = half.finding
        left, right = other.left or one.left, other.right or one.right
        witnesses = [half.witness for half in (one, other) if half.witness]
        kind: Kind = "changed"
        if self._rules.equal(one.event, other.event):
            kind = "reordered"
            witnesses = [witness for witness in witnesses if _proves_a_move(witness, left, right)]
        return Finding(kind, left, right, next(iter(witnesses), ()))

    def keys_of(self, finding: Finding) -> Lookups:
        """The keys under which a difference is looked up; empty if it has both halves."""
        if finding.partner is not None:
            return Lookups(Exact(b""))
        event, identity = finding.event, self._rules.identity
        return Lookups(self._rules.letter(event), None if identity is None else identity(event[FORM][RECORD]))

    def _came_late(self, finding: Finding) -> bool:
        """Whether a leftover is the late partner of an event that depends on nothing; settles it if so.

        The difference stays, or stays a known one: the partner was not there when it had to be.
        """
        event, side = finding.event, finding.side
        if self._depends(event) or (half := self._missed(finding)) is None:
            return False
        if half.divergence.number < 0:
            self._count_explained(finding, 1)
            return True
        self.ledger.accounts[side].divergent += 1
        late_ms = max(0, event[TIMESTAMP_MS] - half.finding.event[TIMESTAMP_MS])
        self._closed.append(half.divergence._replace(late=late_ms / 1000))
        return True

    def _missed(self, finding: Finding) -> Half | None:
        """Take the difference whose event a leftover equals; one that is in dispute stays so."""
        side, keys = finding.side.other, self.keys_of(finding)
        for store in (self.independent, self.explained, self.disputed):
            if (half := store.claim_equal(side, keys, lambda _: True)) is not None:
                if store is self.disputed:
                    store.note(side, keys, half)
                return half
        return None

    def take_closed(self) -> list[Divergence]:
        """The divergences booked since the last call; one found again keeps its number."""
        closed, self._closed = self._closed, []
        return closed

    # -- state ---------------------------------------------------------------------------------------------

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The state as plain data; unless `whole`, only those stores of leftovers that have changed."""
        return {
            "known_ceilings": self.known.state(),
            "halted": self.halted,
            "closed_by_kind": dict(self.closed_by_kind),
            "found_by_kind": dict(self.found_by_kind),
            **{name: _state_of(getattr(self, part), whole=whole) for name, part in LEFTOVERS.items()},
        }

    def restore(self, state: dict[str, Any], reader: EventReader) -> None:
        """Take over the `state`."""
        self.known.restore(state["known_ceilings"])
        self.halted = state["halted"]
        self.closed_by_kind = Counter(state["closed_by_kind"])
        self.found_by_kind = Counter(state["found_by_kind"])
        for name, part in LEFTOVERS.items():
            for side, columns in zip(Side, state[name], strict=True):
                for half in halves_of(side, columns, reader):
                    getattr(self, part).note(side, self.keys_of(half.finding), half)


def _proves_a_move(witness: Witness, left: Event | None, right: Event | None) -> bool:
    """Whether a pair stands behind an event on one side only, as far as offsets tell that.

    The pair that proved a half stands behind it. It may stand behind the other half, too; then it tells
    nothing of the move from one place to the other.
    """
    behind = []
    for (_, of_pair), event in zip(witness, (left, right), strict=True):
        if event is None or event[PARTITION] != of_pair[PARTITION]:
            return True
        behind.append(of_pair[OFFSET] > event[OFFSET])
    return behind[0] != behind[1]


def _state_of(halves: Unpaired, *, whole: bool) -> list[dict[str, Any]] | None:
    """The leftovers of both sides as plain data; None if they have not changed, unless `whole`."""
    changed = halves.take_changed()
    return [state_of(list(halves.all(side))) for side in Side] if whole or changed else None
