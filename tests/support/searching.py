"""How long Hypothesis looks: quick by default; ``HYPOTHESIS_PROFILE=long`` looks twenty times longer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
EXAMPLES = {"quick": 100, "long": 2_000}

Test = TypeVar("Test", bound=Callable[..., None])

settings.register_profile("quick", max_examples=EXAMPLES["quick"], deadline=None, print_blob=True)
settings.register_profile(
    "long",
    max_examples=EXAMPLES["long"],
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def examples(quick: int) -> Callable[[Test], Test]:
    """Look for so many examples where others look for a hundred.

    Unlike with `max_examples` by itself, the long profile looks twenty times longer here, too.
    """
    return settings(max_examples=quick * EXAMPLES[PROFILE] // EXAMPLES["quick"])
