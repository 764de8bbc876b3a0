from __future__ import annotations

import pytest

from twinstream.core.verdict import Verdict, verdict_of


@pytest.mark.parametrize(
    ("diverged", "doubts", "lacking", "verdict"),
    [
        (True, True, True, Verdict.DIVERGED),
        (True, False, False, Verdict.DIVERGED),
        (False, True, True, Verdict.INCONCLUSIVE),
        (False, True, False, Verdict.INCONCLUSIVE),
        (False, False, True, Verdict.PENDING),
        (False, False, False, Verdict.EQUIVALENT),
    ],
)
def test_a_difference_outweighs_doubt_and_doubt_outweighs_lack_of_evidence(
    diverged: bool, doubts: bool, lacking: bool, verdict: Verdict
) -> None:
    assert verdict_of(diverged=diverged, doubts=doubts, lacking=lacking) is verdict
