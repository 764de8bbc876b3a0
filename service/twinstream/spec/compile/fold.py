"""Compiles `emits`: which rows replace each other, and what tells that one is final."""

from __future__ import annotations

from twinstream.core.tables.declared import Fold, SettledBy
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.rows import DELETED
from twinstream.spec.compile.clocks import time_of
from twinstream.spec.file.model import Spec


def fold_of(spec: Spec, codec: Codec) -> Fold | None:
    """How rows fold; None where each result is written once."""
    folding = spec.folding
    if folding is None:
        return None
    window_end = folding.window_end
    return Fold(
        codec.row_key,
        lambda content: content.startswith(DELETED),
        SettledBy.SNAPSHOT if folding.tells_batches else SettledBy(folding.settled_by),
        None if window_end is None else time_of(spec, codec, window_end),
    )
