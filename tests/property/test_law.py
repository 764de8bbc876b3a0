"""The law of the answer: verdict, accounts and kinds are a function of the two sequences of each partition.

Never of how the sides interleave, of batches, of how often the matcher looks, or of restarts. The command
`python -m tests.law` looks for what breaks it among many more cases. A failure here prints a small case, and
the command that shows it again.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from tests.law.cases import Level, held_against, smallest, told
from tests.law.declarations import FEATURES
from tests.support.searching import EXAMPLES, PROFILE
from tests.support.streams import Driver
from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.events import Event, Side

TRACES = 12 * EXAMPLES[PROFILE]
"""So many cases in all: they follow the profile of Hypothesis, although it does not draw them."""
SEED = 20_000


class Holds(NamedTuple):
    """What holds, for declarations with any of these features and no others."""

    what: Level
    features: frozenset[str]


def holds(what: Level, features: str) -> Holds:
    return Holds(what, frozenset(features.split()))


HOLDS = {
    "bags": holds("all", "unordered by_key ignore quantum identity"),
    "sequences": holds("all", "total per_key unordered by_key parallel ignore quantum tolerance"),
    "everything, but for what a copy is called": Holds("counts", FEATURES),
}
"""A line is widened when more holds; in the end one says "all" of all features."""


@pytest.mark.parametrize("claim", HOLDS.values(), ids=HOLDS)
def test_the_answer_is_a_function_of_the_two_sequences(claim: Holds) -> None:
    features = ",".join(sorted(claim.features))
    first = random.Random(f"{SEED} {features}").randrange(1 << 30)
    print(f"cases from {first}, of the features {features}")
    for seed in range(first, first + TRACES // len(HOLDS)):
        found = held_against(seed, claim.features)
        if found is not None and found.breaks(claim.what):
            command = f"python -m tests.law --only {features} --case {seed}"
            pytest.fail(f"{command}\n{told(smallest(found))}", pytrace=False)


def test_a_matcher_that_forgets_at_a_restart_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(driver: Driver) -> None:
        driver.comparison = Comparison(driver.comparison.rules)

    monkeypatch.setattr(Driver, "restart", forget)
    assert _is_found_at("verdict")


def test_a_matcher_that_finds_nothing_at_an_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Comparison, "end", lambda comparison, side: comparison.ended.__setitem__(side, True))
    assert _is_found_at("verdict")


def test_a_matcher_that_counts_by_batches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Comparison.feed

    def late(comparison: Comparison, side: Side, run: Run) -> list[Event]:
        comparison.ledger.accounts[side].ignored += 1
        comparison.ledger.accounts[side].consumed += 1
        return feed(comparison, side, run)

    monkeypatch.setattr(Comparison, "feed", late)
    assert _is_found_at("counts")


def _is_found_at(level: Level) -> bool:
    """Whether any of twenty cases breaks the law."""
    found = (held_against(seed, frozenset(["unordered", "total"])) for seed in range(SEED, SEED + 20))
    return any(one is not None and one.breaks(level) for one in found)
