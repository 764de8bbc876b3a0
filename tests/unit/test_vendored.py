"""The chart library is the one that its authors published, byte for byte."""

from __future__ import annotations

from hashlib import sha256

import pytest

from twinstream.api.pages import STATIC

PUBLISHED = {  # of the npm package uplot 1.6.32
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_chart_library_is_as_published(name: str) -> None:
    assert sha256((STATIC / "uplot" / name).read_bytes()).hexdigest() == PUBLISHED[name]


def test_nothing_else_lies_beside_it() -> None:
    assert {file.name for file in (STATIC / "uplot").iterdir()} == PUBLISHED.keys()
