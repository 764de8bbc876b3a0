"""An order by a function of the user that fails over one key, and never returns for another."""

from __future__ import annotations

import time
from typing import Any


def related(one: Any, another: Any) -> bool:
    """Whether two events have the same key."""
    keys = one["k"], another["k"]
    if "boom" in keys:
        raise ValueError("boom")
    while "hang" in keys:
        time.monotonic()
    return bool(keys[0] == keys[1])
