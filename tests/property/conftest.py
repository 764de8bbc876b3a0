"""Hypothesis: quick by default; ``HYPOTHESIS_PROFILE=long`` looks twenty times longer."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=100, deadline=None, print_blob=True)
settings.register_profile(
    "long", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
