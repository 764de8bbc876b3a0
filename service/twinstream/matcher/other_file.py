"""The saved state of another comparison file gives way to the beginning of this one.

The beginning carries `after_other`, when that state began. So Kafka's memory of a run of this file counts
only if the run began later: a file that is put back begins anew, and does not go on where it once was.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from twinstream.checkpoints import format as checkpoint
from twinstream.checkpoints.writer import CheckpointWriter
from twinstream.matcher.saved_heads import Head, decoded
from twinstream.ports import Clock, Marks
from twinstream.starting.offset_backup import past_of
from twinstream.starting.reset_model import Resets, stood

log = structlog.get_logger()


class OtherFile:
    """What a worker of the file with this digest does with the state of another one."""

    def __init__(self, name: str, digest: str, writer: CheckpointWriter, clock: Clock) -> None:
        self._name, self._digest, self._writer, self._clock = name, digest, writer, clock

    def give_way(self, saved: Sequence[bytes], marks: Marks) -> bool:
        """Replace the state of another file, with these heads, by the beginning of this one.

        Returns False, and changes nothing, where Kafka knows of a later run of this file: then the store went
        back to a state from before the change of the file, so the state of that run was lost.
        """
        heads = decoded(saved)
        began = began_last(heads)
        if began is None or past_of(marks, self._digest, began) is not None:
            return False
        self._note(heads)
        later = datetime.fromisoformat(began) + timedelta(microseconds=1)
        now = max(self._clock.now(), later)  # A clock may have been set back.
        beginning = Resets().beginning(self._digest, now.isoformat(), ())
        self._writer.begin_anew(checkpoint.encode({**beginning, "after_other": began}))
        return True

    def _note(self, heads: Sequence[Head]) -> None:
        """Log that a state with these heads is dropped, with its verdict."""
        before = stood(heads)
        log.warning(
            "the comparison file has changed, so the comparison begins anew",
            comparison=self._name,
            verdict=None if before is None else before.verdict,
            divergences=0 if before is None else before.divergences,
        )


def began_last(heads: Sequence[Head]) -> str | None:
    """When the last of the states with these heads began; None where none is saved."""
    known = [head["started_at"] for head in heads if head]
    return max(known, key=datetime.fromisoformat, default=None)
