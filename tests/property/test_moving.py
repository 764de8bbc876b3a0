"""A comparison that is divided over shards by key, and joined again, ends as one that nobody touched."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.streams import record
from tests.support.worlds import World, worlds
from twinstream.checkpoints import format as checkpoint
from twinstream.core.accounting.halves import Divergence
from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.state.dividing import divided, joined
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import snapshot
from twinstream.explain.divergence import Explainer
from twinstream.explain.masking import EVERYTHING
from twinstream.reporting.accounts import account_of
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.addresses import Addresses
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.sharding import refusal_by_key

IDENTITIES = st.sampled_from([None, ["k"], ["k", "n"], ["k", "n", "type", "j"]])
MOVES = st.lists(st.tuples(st.integers(0, 25), st.integers(1, 5)), max_size=4)
"""Where it is moved, and to how many shards."""


@dataclass
class Owner:
    """One comparison, with the divergences that it has told, by number."""

    comparison: Comparison
    closed: dict[int, Divergence] = field(default_factory=dict)

    def note(self) -> None:
        self.closed.update((found.number, found) for found in self.comparison.take_closed())
        for number in self.comparison.take_tainted():
            self.closed[number] = self.closed[number]._replace(tainted=True)


class Moved:
    """A comparison in one or more shards by key; `rest` are divergences that no later event changes."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.codec = spec, Codec(spec)
        self.rules = rules_of(spec, self.codec)
        self.owners = [Owner(Comparison(self.rules))]
        self.rest: list[Divergence] = []
        self.moment = 0

    def feed(self, side: Side, record: bytes, offset: int) -> None:
        (number,) = Addresses(self.codec, len(self.owners)).of([record], side)
        forms, refused = self.codec.forms([record], side)
        assert not refused
        comparison = self.owners[number].comparison
        self.moment += 1
        comparison.certainty.moment += 1
        comparison.feed(side, Run(forms, 0, [offset], [self.moment * 10], 0.0))

    def end(self, side: Side) -> None:
        for owner in self.owners:
            owner.comparison.end(side)

    def review(self) -> None:
        for owner in self.owners:
            owner.comparison.review()

    def move(self, shards: int) -> None:
        """From one to several, or back, through the bytes of checkpoints."""
        for owner in self.owners:
            owner.note()
        whole = self._join()
        parts = divided(whole, Addresses(self.codec, shards).of_stored, shards)
        (before,) = self.owners
        named = {old for part in parts for old in part.numbers}
        self.rest += [one for number, one in before.closed.items() if number not in named]
        self.owners = []
        for part in parts:
            told = {new: before.closed[old]._replace(number=new) for old, new in part.numbers.items()}
            self.owners.append(Owner(self._restored(part.state), told))

    def _join(self) -> dict[str, Any]:
        states = [_saved(owner.comparison) for owner in self.owners]
        whole, added = joined(states)
        told = {
            number + more: one
            for owner, more in zip(self.owners, added, strict=True)
            for number, one in owner.closed.items()
        }
        assert len(told) == sum(len(owner.closed) for owner in self.owners)
        self.owners = [Owner(self._restored(whole), told)]
        return _saved(self.owners[0].comparison)

    def _restored(self, state: dict[str, Any]) -> Comparison:
        comparison = Comparison(self.rules)
        restore(comparison, state, self.codec.form_again, 0.0)
        return comparison

    def answer(self) -> dict[str, Any]:
        """What must be the same however it was moved."""
        report = Explainer(self.spec, self.codec, EVERYTHING).report
        for owner in self.owners:
            owner.note()
        comparisons = [owner.comparison for owner in self.owners]
        told = [*self.rest, *(one for owner in self.owners for one in owner.closed.values())]
        told += [one for comparison in comparisons for one in comparison.provisional()]
        accounts = [Counter[str](), Counter[str]()]
        for comparison in comparisons:
            for side in Side:
                accounts[side].update(account_of(comparison, side))
        found = Counter[str]()
        for comparison in comparisons:
            found.update(comparison.differences.closed_by_kind)
        return {
            "diverged": any(comparison.diverged for comparison in comparisons),
            "holes": any(comparison.holes for comparison in comparisons),
            "matched": sum(comparison.matched for comparison in comparisons),
            "by_kind": sum((comparison.ledger.matched_by_kind for comparison in comparisons), Counter()),
            "accounts": accounts,
            "closed": +found,
            "divergences": Counter((report(one)["id"], one.finding.kind, one.tainted) for one in told),
        }


def _saved(comparison: Comparison) -> dict[str, Any]:
    return checkpoint.decode(checkpoint.encode(snapshot(comparison)))


def run(spec: Spec, world: World, moves: list[tuple[int, int]], reviews: bool) -> dict[str, Any]:
    """The answer about a world, moved at some steps."""
    moved, offsets = Moved(spec), [0, 0]
    for number, step in enumerate(world.steps):
        for at, shards in moves:
            if at == number:
                moved.move(shards)
        if step.event is None:
            moved.end(step.side)
        else:
            moved.feed(step.side, record(step.event, step.style), offsets[step.side])
            offsets[step.side] += 1
        if reviews:
            moved.review()
    for side in Side:
        if not moved.owners[0].comparison.ended[side]:
            moved.end(side)
    moved.review()
    return moved.answer()


@examples(200)
@given(worlds(most=20), MOVES, IDENTITIES, st.booleans())
def test_a_comparison_moved_to_shards_and_back_ends_as_if_never_moved(
    world: World, moves: list[tuple[int, int]], identity: list[str] | None, reviews: bool
) -> None:
    spec = world.driver(**({} if identity is None else {"identity": identity})).spec
    assume(all(refusal_by_key(spec, shards) is None for _, shards in moves))
    assert run(spec, world, moves, reviews) == run(spec, world, [], reviews)
