"""The wheel: it has all that the page needs, and asks for nothing that the service does not use."""

from __future__ import annotations

import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir"]
    subprocess.run([sys.executable, "-m", "pip", *build, folder, ROOT], check=True, timeout=110)
    (file,) = folder.glob("*.whl")
    return ZipFile(file)


def test_the_charts_of_the_page_are_in_it_with_their_licence(wheel: ZipFile) -> None:
    library = wheel.read("twinstream/api/static/uplot/uPlot.iife.js")
    assert b"var uPlot" in library
    assert b"MIT Licensed" in library
    assert b".uplot" in wheel.read("twinstream/api/static/uplot/uPlot.min.css")


def test_what_it_asks_for_has_no_numpy_and_no_notebook(wheel: ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    asked = HeaderParser().parsestr(wheel.read(name).decode()).get_all("Requires-Dist", [])
    always = [one for one in asked if "extra ==" not in one]
    assert any(one.startswith("fastapi") for one in always)
    assert not [one for one in always if one.startswith(("uplot", "numpy", "ipython"))]
    locked = (ROOT / "requirements" / "service.txt").read_text()
    assert not [name for name in ("uplot-python", "numpy", "ipython") if f"\n{name}==" in locked]


def test_everything_that_the_page_is_made_of_is_in_it(wheel: ZipFile) -> None:
    static = ROOT / "service" / "twinstream" / "api" / "static"
    files = {f"twinstream/api/static/{file.relative_to(static)}" for file in static.rglob("*.*")}
    assert len(files) > 40
    assert files <= set(wheel.namelist())
