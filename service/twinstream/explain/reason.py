"""Gives the reason of a verdict other than DIVERGED, for one matcher or for several as one."""

from __future__ import annotations

from collections.abc import Sequence

from twinstream.core.verdict import Verdict

REASONS_SHOWN = 3


def undiverged(
    verdict: Verdict, doubts: Sequence[str], lacking: Sequence[str], pairs: int, order: str
) -> str:
    """The reason of any verdict but DIVERGED; `order` says how the outputs are compared.

    >>> undiverged(Verdict.EQUIVALENT, [], [], 1200, "in any order")
    '1,200 pairs match, and nothing differs; the outputs are compared in any order.'
    >>> undiverged(Verdict.INCONCLUSIVE, ["a", "b", "c", "d"], [], 0, "in any order")
    'Not decided: a; b; c; and 1 more.'
    """
    if verdict is Verdict.INCONCLUSIVE:
        return undecided(doubts)
    if verdict is Verdict.PENDING:
        return _sentence(f"Nothing wrong so far; not enough compared yet: {'; '.join(lacking)}")
    matched = "1 pair matches" if pairs == 1 else f"{pairs:,} pairs match"
    return f"{matched}, and nothing differs; the outputs are compared {order}."


def undecided(doubts: Sequence[str]) -> str:
    """The reason of INCONCLUSIVE. A doubt that recurs is told once.

    >>> undecided(["a", "a", "b"])
    'Not decided: a; b.'
    """
    doubts = list(dict.fromkeys(doubts))
    more = f"; and {len(doubts) - REASONS_SHOWN} more" if len(doubts) > REASONS_SHOWN else ""
    return _sentence(f"Not decided: {'; '.join(doubts[:REASONS_SHOWN])}{more}")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."
