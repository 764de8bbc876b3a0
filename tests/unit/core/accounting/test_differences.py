"""Which difference two leftovers are for known differences."""

from __future__ import annotations

import pytest

from twinstream.testing import check

ORDERS = {
    "rules": {"dependent": [["a", "e"]]},
    "a function": {"callable": "operator:ne"},
    "a sequence": "total",
}
KINDS = {kind: {"where": {"type": kind}} for kind in "ae"}
SAME = [{"type": "ae"[n % 2], "id": n, "v": 0} for n in range(60)]
MISSING, EXTRA = ({"type": "e", "id": 99, "v": v} for v in (1, 2))


@pytest.mark.parametrize("first", ["reference-first", "alternate", "candidate-first"])
@pytest.mark.parametrize(
    ("order", "divergences", "verdict"),
    [
        ("rules", ["changed"], "EQUIVALENT"),
        ("rules", ["missing", "extra"], "DIVERGED"),
        ("rules", ["missing", "changed"], "EQUIVALENT"),
        ("a function", ["changed"], "EQUIVALENT"),
        ("a function", ["missing", "extra"], "DIVERGED"),
        ("a sequence", ["changed"], "DIVERGED"),
        ("a sequence", ["missing", "extra"], "EQUIVALENT"),
    ],
)
def test_an_event_that_changed_and_moved_far_is_one_difference_under_rules_or_a_function(
    order: str, divergences: list[str], verdict: str, first: str
) -> None:
    known = {
        "id": "K",
        "when": {"divergences": divergences},
        "owner": "o",
        "expires": "2999-12-31",
        "ceiling": {"count": 2},
    }
    spec = {"kinds": KINDS, "order": ORDERS[order], "identity": ["id"], "known_differences": [known]}
    left, right = [MISSING, *SAME], [*SAME[:40], EXTRA, *SAME[40:]]
    assert check(spec, left, right, interleave=first).verdict == verdict
