from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

import pytest

from twinstream.core.diagnosis.ceilings import Ceilings
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.diagnosis.known_differences import KnownDifference, KnownDifferences
from twinstream.core.events import Event, Form

FINDING = Finding("missing", Event(Form("a", b"x", "event", b"x"), 0, 0, 0, 0.0), None, ())


def rule(
    name: str = "K-1", *, covers: bool = True, count: int = 0, share: float | None = None
) -> KnownDifference:
    return KnownDifference(name, lambda _: covers, count, share)


def allowed(known: KnownDifference, matched: int) -> int:
    """How many findings are within the ceiling."""
    return next(hits for hits in range(1000) if not known.allows(hits, matched))


def test_a_count_is_the_ceiling_whatever_has_matched() -> None:
    assert [allowed(rule(count=3), matched) for matched in (0, 1000)] == [3, 3]
    assert allowed(rule(), 1000) == 0


def test_a_share_is_of_the_pairs_matched_so_far_never_more_and_at_least_one() -> None:
    assert [allowed(rule(share=0.1), matched) for matched in (0, 5, 15, 40)] == [1, 1, 1, 4]
    assert allowed(rule(share=0.07), 100) == 7, "as a decimal number, not as a binary one"


def test_beyond_a_ceiling_nothing_is_within_it() -> None:
    assert not rule(count=3).allows(4, 0)
    assert not rule(share=0.1).allows(3, 15)


def test_the_first_rule_that_covers_a_finding_within_its_ceiling_explains_it() -> None:
    known = KnownDifferences([rule("K-1", covers=False, count=9), rule("K-2", count=1), rule("K-3", count=1)])
    assert [known.explain(FINDING, 0) for _ in range(3)] == ["K-2", "K-3", None]
    assert known.hits == {"K-2": 1, "K-3": 1}


def test_rules_are_open_until_each_is_at_its_ceiling() -> None:
    known = KnownDifferences([rule("K-1", count=1), rule("K-2", count=1)])
    for _ in range(2):
        assert known.open(0)
        known.explain(FINDING, 0)
    assert not known.open(0)


def covering(name: str, *kinds: str, count: int) -> KnownDifference:
    return KnownDifference(name, lambda finding: finding.kind in kinds, count)


def found(kind: Any) -> Finding:
    return FINDING._replace(kind=kind)


@pytest.mark.parametrize("kinds", sorted(set(permutations(["extra", "missing", "missing"]))))
def test_as_much_is_explained_as_the_ceilings_allow_whatever_is_found_first(kinds: tuple[str, ...]) -> None:
    known = KnownDifferences(
        [covering("K-1", "extra", "missing", count=1), covering("K-2", "missing", count=9)]
    )
    assert None not in [known.explain(found(kind), 0) for kind in kinds]
    assert known.hits == {"K-1": 1, "K-2": 2}
    assert known.explain(found("extra"), 0) is None
    assert known.covers([found("missing")], 0)
    assert not known.covers([found("extra")], 0)


def test_what_is_taken_back_frees_the_place_that_it_has_after_a_restart_too() -> None:
    rules = [covering("K-1", "extra", "missing", count=1), covering("K-2", "missing", count=1)]
    before, known = KnownDifferences(rules), KnownDifferences(rules)
    assert [before.explain(found(kind), 0) for kind in ("missing", "extra", "missing")] == [
        "K-1",
        "K-1",
        None,
    ]
    known.restore(before.state())
    known.take_back(found("missing"))
    assert sum(known.hits.values()) == 1
    assert known.explain(found("missing"), 0) is not None
    assert known.explain(found("missing"), 0) is None


@pytest.mark.parametrize("seed", range(50))
def test_many_differences_counted_at_once_are_as_many_as_one_by_one(seed: int) -> None:
    random = Random(seed)
    most = {rule: random.randint(0, 5) for rule in "ABCD"}
    differences = [
        (tuple(random.sample("ABCD", random.randint(1, 3))), random.randint(1, 4)) for _ in range(5)
    ]
    single, many = Ceilings(), Ceilings()
    for choices, count in differences:
        found = [single.take(choices, lambda rule: single.count(rule) < most[rule]) for _ in range(count)]
        assert many.take_many(choices, count, most) == found.count(None)
        assert all(many.count(rule) <= most[rule] for rule in most)
