"""How long Hypothesis looks: ``HYPOTHESIS_PROFILE`` is `change` (the default), `nightly` or `long`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "change")
EXAMPLES = {"change": 25, "nightly": 100, "long": 2_000}

Test = TypeVar("Test", bound=Callable[..., None])

for _name, _count in EXAMPLES.items():
    settings.register_profile(
        _name,
        max_examples=_count,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow] if _name == "long" else [],
    )


def examples(nightly: int) -> Callable[[Test], Test]:
    """Look for so many examples where others look for a hundred.

    Unlike with `max_examples` by itself, the other profiles look for fewer and for more here, too.
    """
    return settings(max_examples=max(1, nightly * EXAMPLES[PROFILE] // EXAMPLES["nightly"]))
