"""The parts of an answer that service and `check` tell alike: accounts, holes, doubts, caveats."""

from __future__ import annotations

from typing import Any

from twinstream.core.accounts import Hole
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.explain import holes
from twinstream.explain.divergence import NAMES
from twinstream.spec.file.model import Spec
from twinstream.status.common import Accounts

DISPUTED = "a difference was found; whether a known difference covers it is not decided yet"
HELD = "a difference was found; it counts once the batches open at that time are finished"


def account_of(comparison: Comparison, side: Side) -> dict[str, int]:
    """Where the consumed events of a side went."""
    shared = {"matched": comparison.matched, "unmatched": comparison.unmatched(side)}
    account = {**vars(comparison.accounts[side]), **shared}
    return {name: account[name] for name in Accounts.model_fields}


def doubts_of(comparison: Comparison, spec: Spec) -> list[str]:
    """Why a verdict may be INCONCLUSIVE, as far as the comparison itself knows."""
    doubts = holes.doubts(comparison.holes, spec)
    if comparison.in_dispute:
        doubts.append(DISPUTED)
    return [*doubts, HELD] if comparison.proven.waits_for_batches else doubts


def hole_of(hole: Hole, spec: Spec) -> dict[str, Any]:
    """A hole as plain data: the reason, and the place as far as it is known."""
    position = None
    if hole.side is not None and hole.partition is not None and hole.offset is not None:
        topic = spec.version_of(hole.side).topic
        position = {"topic": topic, "partition": hole.partition, "offset": hole.offset}
    side = None if hole.side is None else NAMES[hole.side]
    return {"reason": holes.told(hole, spec), "side": side, "position": position}


def differ_text(comparison: Comparison, spec: Spec, how: str) -> str:
    """The reason of DIVERGED, with `how` the outputs differ, and what limits what is told of it."""
    sentences = [f"The outputs differ{how}.", f"Compared {spec.order_text}."]
    if comparison.open_scopes.gave_up:
        limit = comparison.rules.scope_limit
        sentences.append(f"Not all of it is explained: limits.scope_events ({limit:,}) was reached.")
    count = sum(replays.unmarked for replays in comparison.retries or ())
    if count:
        sentences.append(
            "1 record without marks was taken as it is."
            if count == 1
            else f"{count:,} records without marks were taken as they are."
        )
    return " ".join(sentences)
