"""The secret of a comparison: its uses, and the check that saved state was made with it.

With `keep: hashes` all unmatched events are known only by digests that the secret keys. With another secret
every event would look new; so each checkpoint has a mark of its secret, and is refused if that is of another
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twinstream.errors import CheckpointError
from twinstream.explain.masking import Mask, fresh_secret
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.digests import KeptCodec
from twinstream.spec.file.model import Spec

OTHER = (
    "the stored state was made with another secret, without which `keep: hashes` can tell nothing of it: "
    "start with the file that --mask-key-file named then, or start over: remove the comparison's keys, or "
    "give a Spark job a new --checkpoint"
)


class Secrecy:
    """Uses the secret of a comparison for the `mask` and the digests of the codec.

    `ask` gives the secret, and may raise StoreError.
    """

    def __init__(self, spec: Spec, codec: Codec, ask: Callable[[], bytes]) -> None:
        self.mask = Mask.of(spec, fresh_secret())
        self._codec, self._ask = codec if isinstance(codec, KeptCodec) else None, ask

    def take(self) -> None:
        """Ask for the secret, and use it from now on: before any state is read."""
        secret = self._ask()
        self.mask.take(secret)
        if self._codec is not None:
            self._codec.take(secret)

    def state(self) -> dict[str, Any]:
        """The mark of the secret for the head of a checkpoint; empty if the state does not depend on it."""
        return {} if self._codec is None else {"secret": self.mask.secret_name}

    def check(self, head: Mapping[str, Any]) -> None:
        """Raise CheckpointError if the head belongs to a state made with another secret."""
        if self._codec is not None and "anew" not in head and head.get("secret") != self.mask.secret_name:
            raise CheckpointError(OTHER)
