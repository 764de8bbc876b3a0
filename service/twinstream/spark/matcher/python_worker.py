"""Saves a Python worker what PySpark does around each task, however small, beside the work itself.

- After a task PySpark collects garbage, in all modules and live workers: 0.1 s and more, with each event that
  waits. So what exists at the end of a task is left out, but once in a while, since a failed task may have
  made cycles.
- Before a task it has all finders of modules look again (`importlib.invalidate_caches`). Those of
  `pyspark.zip` read its whole directory, once for each package: 0.2 s. So they are dropped.
"""

from __future__ import annotations

import gc
import sys
import time
from zipimport import zipimporter

from twinstream.matcher.memory import collect_rarely

WHOLE_SECONDS = 60.0
"""The time between two collections of everything."""
_collected_at = time.monotonic()


def spare() -> None:
    """Leave as little as possible for PySpark to do before the next task. Call it at the end of a task."""
    global _collected_at  # noqa: PLW0603 - a process has one collector
    collect_rarely()
    if time.monotonic() - _collected_at >= WHOLE_SECONDS:
        gc.unfreeze()
        _collected_at = time.monotonic()
    for path, finder in [*sys.path_importer_cache.items()]:
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
