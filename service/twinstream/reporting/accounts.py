"""Makes the account of one side, with the names that every interface uses."""

from __future__ import annotations

from twinstream.core.comparison import Comparison
from twinstream.core.events import Side


def account_of(comparison: Comparison, side: Side) -> dict[str, int]:
    """Where the consumed events of a side went."""
    account = comparison.accounts[side]
    return {
        "consumed": account.consumed,
        "matched": comparison.matched,
        "ignored": account.ignored,
        "before_start": account.before_start,
        "replayed": account.replayed,
        "undecodable": account.undecodable,
        "explained": account.explained,
        "divergent": account.divergent,
        "unmatched": comparison.unmatched(side),
    }


def unexplained(comparison: Comparison) -> str:
    """The sentence to add to a difference if not all of it is explained."""
    limit = comparison.rules.scope_limit
    said = f"; not all of it is explained, since limits.scope_events ({limit}) was reached"
    return said if comparison.aside.gave_up else ""
