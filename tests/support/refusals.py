"""Comparison files that are refused, and what is said about them."""

from __future__ import annotations

import pytest

from twinstream.errors import SpecError
from twinstream.spec.load import loads

HEAD = """\
version: 1
name: ads
reference: {topic: ads.reference}
candidate: {topic: ads.candidate}
"""
"""The first four lines of a comparison file."""


def refusal(text: str) -> str:
    """The sentence that is said about a file named ``ads.yaml``."""
    with pytest.raises(SpecError) as caught:
        loads(text, "ads.yaml")
    return str(caught.value)
