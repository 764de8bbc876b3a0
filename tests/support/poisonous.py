"""An order that kills its process over one event: what a bug in a library of C does over one record."""

from __future__ import annotations

import os
import signal
from typing import Any

POISON = 13


def related(one: Any, another: Any) -> bool:
    """Whether two events have the same key."""
    if POISON in (one["n"], another["n"]):
        os.kill(os.getpid(), signal.SIGKILL)
    return bool(one["k"] == another["k"])
