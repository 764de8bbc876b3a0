"""The heads that other workers have saved of a comparison: of other shards, or of another number of them.

A worker reads them to say what a reset drops, and whether the state of another number may go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from twinstream.checkpoints import format as checkpoint
from twinstream.errors import Divided, MovedAway, StoreError
from twinstream.processes.shards import ShardStore
from twinstream.starting.reset_model import stood

Head = Mapping[str, Any]
log = structlog.get_logger()


class SavedHeads:
    """The heads of one comparison, of the file with this digest. `shards` is None for its only matcher.

    An empty head stands for each that is not saved, or is of another file. `divided` may be set: the state of
    another number of shards, which is read in place of that of `shards`.
    """

    def __init__(self, name: str, digest: str, shards: ShardStore | None) -> None:
        self._name, self._digest, self._shards = name, digest, shards
        self.divided: Divided | None = None

    def read(self) -> Sequence[Head]:
        """The heads that others have saved; none where they cannot be read."""
        try:
            if self.divided is not None:
                return self._ours(decoded(self.divided.heads))
            if self._shards is not None:
                return self._ours(decoded(self._shards.heads()))
        except StoreError as error:
            log.warning("saved heads cannot be read", comparison=self._name, reason=str(error))
        return ()

    def of(self, state: Divided) -> Sequence[Head]:
        """The heads of another number of shards, which are `divided` from now on.

        Raises MovedAway if a Spark job has that state, and CheckpointError.
        """
        self.divided = state
        heads = decoded(state.heads)
        if moved := next((head["moved"] for head in heads if "moved" in head), None):
            raise MovedAway(moved["place"])
        return self._ours(heads)

    def _ours(self, heads: Sequence[Head]) -> list[Head]:
        return [head if head.get("spec_digest") == self._digest else {} for head in heads]


def difference_in(heads: Sequence[Head]) -> str:
    """The end of a sentence about a saved state that is not shown: whether it has a difference."""
    state = stood(heads)
    return "; that state is DIVERGED" if state is not None and state.verdict == "DIVERGED" else ""


def decoded(saved: Sequence[bytes]) -> list[Head]:
    """The heads as they are saved, an empty one where none is."""
    return [checkpoint.decode(head) if head else {} for head in saved]
