"""Known differences that explain far more than before, as the status has them (see `core.surges`)."""

from __future__ import annotations

from twinstream.core import surges
from twinstream.core.stretches import Stretches
from twinstream.status import Surge


def told(stretches: Stretches) -> list[Surge]:
    """The rules that explain far more than before, with a sentence for each."""
    return [
        Surge(
            rule=found.rule,
            hits=found.now.hits,
            compared=found.now.compared,
            hits_before=found.before.hits,
            compared_before=found.before.compared,
            text=_text(found),
        )
        for found in surges.surges(stretches)
    ]


def _text(found: surges.Surge) -> str:
    """What a surge is, in words.

    >>> print(_text(surges.Surge("PRICE-17", surges.Rate(412, 10300), surges.Rate(12, 120000))))
    `PRICE-17` explains 412 of 10,300 compared (4%) in ten minutes, 12 of 120,000 (0.01%) in the day before
    >>> print(_text(surges.Surge("PRICE-17", surges.Rate(412, 10300), surges.Rate(0, 120000))))
    `PRICE-17` explains 412 of 10,300 compared (4%) in ten minutes, nothing of 120,000 in the day before
    """
    before = _rate(found.before) if found.before.hits else f"nothing of {found.before.compared:,}"
    now = _rate(found.now, " compared")
    return f"`{found.rule}` explains {now} in ten minutes, {before} in the day before"


def _rate(rate: surges.Rate, unit: str = "") -> str:
    return f"{rate.hits:,} of {rate.compared:,}{unit} ({rate.hits / rate.compared * 100:.1g}%)"
