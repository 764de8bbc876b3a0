"""The state of some shards, dealt to another number of them."""

from __future__ import annotations

from collections.abc import Sequence

from twinstream.errors import Unready
from twinstream.ports import Checkpoint, Stored
from twinstream.runtime import checkpoint
from twinstream.spec.load import digest
from twinstream.spec.model import Spec
from twinstream.spec.sharding import ShardBy


class Redealing:
    """What deals the state of a comparison."""

    def __init__(self, spec: Spec, shard_by: ShardBy) -> None:
        self._spec, self._shard_by = spec, shard_by

    def deal(self, stored: Sequence[Stored], shards: int) -> Sequence[Checkpoint | None]:
        """The checkpoints with which so many shards begin; None for one that begins anew. Raises Unready."""
        heads = [checkpoint.decode(one.head) for one in stored if one.sequence is not None]
        if any(head["spec_digest"] == digest(self._spec) for head in heads):
            raise Unready(
                f"the stored state is that of --shards {len(stored)}: start with that, or begin anew with "
                f"--shards {shards}"
            )
        return [None] * shards
