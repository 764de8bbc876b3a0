"""Compiles the comparison file to the rules of matching of the core."""

from __future__ import annotations

from datetime import datetime, timedelta

from twinstream.core.clocks.input import Input
from twinstream.core.rules import Rules
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.checks import checks_of
from twinstream.spec.compile.clocks import clock_of
from twinstream.spec.compile.fold import fold_of
from twinstream.spec.compile.known import known_differences
from twinstream.spec.file.model import Spec


def rules_of(spec: Spec, codec: Codec, *, running_at: datetime | None = None) -> Rules:
    """The rules of matching that a spec fixes, with its codec's view of a record.

    `running_at` is when recorded input is compared; None for a running comparison (see `known_differences`).
    """
    passing = clock_of(spec, codec) if running_at is None else None
    tells_copies = spec.tells_copies and codec.close is None
    return Rules(
        order=codec.order,
        close=codec.close,
        exact=codec.exact,
        known=known_differences(spec, codec, running_at=running_at),
        canonical=codec.canonical,
        identity=codec.identity,
        halt=spec.on_divergence == "halt",
        proves=spec.overdue.proves or isinstance(passing, Input),
        passing=passing,
        overdue_after_ms=spec.overdue.after // timedelta(milliseconds=1),
        unmatched_limit=spec.limits.unmatched_events,
        unmatched_bytes=int(spec.limits.unmatched_bytes),
        scope_limit=spec.limits.scope_events,
        recent_matches=0 if spec.folding else spec.limits.recent_matches,
        duplicate_horizon=spec.limits.duplicate_horizon if tells_copies else None,
        replay_horizon=spec.duplicates.horizon if spec.duplicates.policy == "replays" else None,
        co_partitioned=spec.co_partitioned,
        hears=running_at is None and spec.control is not None and spec.reads_marks,
        checks=checks_of(spec),
        fold=fold_of(spec, codec),
        equal_by_record=codec.equal_by_record,
    )
