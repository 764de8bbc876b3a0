"""``/`` and ``/docs``: files for people, all from this host, so that they work without other hosts.

The viewer of the OpenAPI description comes from an installed package that ships it. The chart library is in
the wheel; a checkout uses the package from which the wheel takes it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

STATIC = Path(__file__).parents[1] / "static"
CHARTS = STATIC / "uplot"


def package_files(package: str, folder: str) -> Path:
    """The folder of data files of an installed package, found without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the package {package!r}, which ships files of the page, is not installed")
    return Path(spec.origin).parent / folder


def install(app: FastAPI) -> None:
    """Serve the page, its files and the documentation."""
    if not CHARTS.is_dir():
        app.mount("/static/uplot", StaticFiles(directory=package_files("uplot", "static")))
    app.mount("/static/swagger", StaticFiles(directory=package_files("fastapi_offline", "static")))
    app.mount("/static", StaticFiles(directory=STATIC))

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(STATIC / "docs.html")

    @app.get("/favicon.ico", include_in_schema=False)
    async def favicon() -> FileResponse:
        return FileResponse(STATIC / "icon.svg", media_type="image/svg+xml")
