"""Twinstream: are the outputs of two versions of a streaming pipeline equivalent, up to a declared order?

In Python, for tests: `check` compares two recorded outputs, `Matcher` takes events one at a time; both give
an `Answer`. Everything else is in the command `twinstream`. The names here are imported on first use, so that
a command does not wait for modules that it does not need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinstream.answers import Answer, Example
    from twinstream.errors import InputError, SpecError, TwinstreamError
    from twinstream.spec.file.model import Spec
    from twinstream.spec.load import load
    from twinstream.testing import Matcher, check

__all__ = [
    "Answer",
    "Example",
    "InputError",
    "Matcher",
    "Spec",
    "SpecError",
    "TwinstreamError",
    "check",
    "load",
]

_HOMES = {
    "Answer": "answers",
    "Example": "answers",
    "InputError": "errors",
    "Matcher": "testing",
    "Spec": "spec.file.model",
    "SpecError": "errors",
    "TwinstreamError": "errors",
    "check": "testing",
    "load": "spec.load",
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"twinstream.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
