"""The PySpark library: a sink that proves what a pipeline wrote, and tests of pipelines without a service.

It needs the extra `spark`. `KafkaSink`, `ProgressListener` and `records` are for the pipeline, `check` and
`self_check` for its tests; `strategies` (with Hypothesis) makes their input. The names here are imported on
first use, so that a pipeline does not wait for the modules of tests.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinstream.spark.json_records import records
    from twinstream.spark.progress import ProgressListener
    from twinstream.spark.sink import KafkaSink
    from twinstream.spark.testing import check, self_check

__all__ = ["KafkaSink", "ProgressListener", "check", "records", "self_check"]

_HOMES = {
    "KafkaSink": "sink",
    "ProgressListener": "progress",
    "check": "testing",
    "records": "json_records",
    "self_check": "testing",
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"twinstream.spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
