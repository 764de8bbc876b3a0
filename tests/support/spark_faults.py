"""What a Python worker of Spark can meet in a drill: it is imported there."""

from __future__ import annotations

import os
import signal
from typing import Any

from twinstream.checkpoints import format as checkpoint
from twinstream.spark.matcher.processor import ShardProcessor


def is_right(event: dict[str, Any]) -> bool:
    """Judges an event, and dies over some."""
    if event["v"] == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    return True


class NewerProcessor(ShardProcessor):
    """That of a later version, which writes its state in another format."""

    def _handled(self, *given: Any) -> Any:
        checkpoint.FORMAT = 99
        return super()._handled(*given)
