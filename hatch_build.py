"""Puts the chart library of the page into the wheel.

uPlot comes as two files, and the package for Python that has them needs numpy and IPython to run, of which
nothing is used. So they are taken out of it when the wheel is built (`requirements/page.txt` pins it by
hash), and nobody who installs the wheel needs the package. A checkout uses that package itself
(`twinstream.api.routes.sessions`).
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("uPlot.iife.js", "uPlot.min.css")
INTO = "twinstream/api/static/uplot"


class ChartLibrary(BuildHookInterface[Any]):
    """Adds the files to a wheel; an editable one finds them in the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a wheel is built. Raises ModuleNotFoundError."""
        if version == "editable":
            return
        found = find_spec("uplot")
        if found is None or found.origin is None:
            problem = "the chart library of the page is not installed"
            raise ModuleNotFoundError(f"{problem}: pip install --no-deps -r requirements/page.txt")
        folder = Path(found.origin).parent / "static"
        build_data["force_include"].update({str(folder / name): f"{INTO}/{name}" for name in FILES})
