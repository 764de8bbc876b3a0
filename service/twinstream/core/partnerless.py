"""Events that have no partner, settled as differences.

That an event has none is known when both sides have ended, or where a clock proves it (see `judging`). Two of
one identity, one of each side, are one event that has changed (see `findings`).
"""

from __future__ import annotations

from collections import Counter

from twinstream.core.aside import Aside
from twinstream.core.events import Event, Side
from twinstream.core.findings import Finding, Identity, explain_partnerless
from twinstream.core.index import Index
from twinstream.core.ledger import Divergence, Ledger
from twinstream.core.rules import Rules

Pieces = tuple[list[Event], list[Event]]
"""Events by side."""


class Partnerless:
    """What waits in the index and in scopes, and has no partner.

    `at_end` counts, by side, the events that were left when the input ended.
    """

    def __init__(self, rules: Rules, ledger: Ledger, index: Index, aside: Aside) -> None:
        self._rules, self._ledger, self._index, self._aside = rules, ledger, index, aside
        self.at_end = [0, 0]

    def settle(self, proven: Pieces) -> list[Finding]:
        """Settle unmatched events by side, which are proven now to have no partner.

        Each goes with an unmatched event of its identity on the other side, if there is one.
        """
        identity = self._rules.identity
        gone = proven if identity is None else self._with_identity(proven, identity)
        return self._settle(gone, self._ledger.moment)

    def settle_facing(self, side: Side) -> None:
        """Settle what waits of a side, since the other has ended."""
        self._count(self.settle(self._facing(side)))

    def settle_rest(self, moment: int) -> None:
        """Both sides have ended: settle everything that waits, also what is set aside, as of a moment."""
        for scope in tuple(self._aside.scopes):
            if not scope.lost and scope in self._aside.scopes:
                explanation = self._aside.explain(scope, whole=True)
                self._count(explanation.findings)
                self._aside.close(scope, explanation, self._index)
        self._count(self._settle((self._waiting(Side.LEFT), self._waiting(Side.RIGHT)), moment))

    def facing(self, side: Side) -> list[Divergence]:
        """What waits of a side of which the other has ended, as differences that are provisional."""
        findings = explain_partnerless(*self._facing(side), None, self._ledger.recent.has)
        return [Divergence(finding, self._ledger.tainted, finding) for finding in findings]

    def _facing(self, side: Side) -> Pieces:
        waiting = self._waiting(side)
        return (waiting, []) if side is Side.LEFT else ([], waiting)

    def _waiting(self, side: Side) -> list[Event]:
        return [event for event, _ in self._index.unmatched(side)]

    def _with_identity(self, proven: Pieces, identity: Identity) -> Pieces:
        gone = (list(proven[0]), list(proven[1]))
        for side in Side:
            wanted = Counter(identity(event[0][3]) for event in proven[side.other])
            wanted.subtract(Counter(identity(event[0][3]) for event in proven[side]))
            taken = {id(event) for event in proven[side]}
            for event in self._waiting(side) if +wanted else ():
                name = identity(event[0][3])
                if wanted[name] > 0 and id(event) not in taken:
                    wanted[name] -= 1
                    gone[side].append(event)
        return gone

    def _settle(self, gone: Pieces, moment: int) -> list[Finding]:
        ledger = self._ledger
        for side in Side:
            self._index.remove(side, gone[side])
        findings = explain_partnerless(*gone, self._rules.identity, ledger.recent.has)
        for finding in findings:
            ledger.settle(finding, moment, tainted=ledger.tainted)
        return findings

    def _count(self, findings: list[Finding]) -> None:
        for finding in findings:
            if finding.kind != "reordered":
                self.at_end[Side.LEFT] += finding.left is not None
                self.at_end[Side.RIGHT] += finding.right is not None
