"""Imports point downwards and in no circles, as `tool.importlinter` says; and what is used is declared."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from twinstream import errors

ROOT = Path(errors.__file__).parent
PROJECT = ROOT.parents[1] / "pyproject.toml"
MODULES = sorted(ROOT.rglob("*.py"))


def imported(module: Path) -> Iterator[str]:
    """The full names that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def tops(module: Path) -> set[str]:
    """The packages that a module imports, but for the product and the standard library."""
    names = {name.partition(".")[0] for name in imported(module)}
    return names - sys.stdlib_module_names - {"twinstream"}


def test_imports_keep_the_contracts_of_the_project() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--config", str(PROJECT), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_core_needs_nothing_but_the_standard_library_and_sortedcontainers() -> None:
    core = list((ROOT / "core").rglob("*.py"))
    assert {top for module in core for top in tops(module)} <= {"sortedcontainers"}
    pure = {"time", "os", "io", "logging", "threading", "asyncio", "socket", "random", "pathlib"}
    assert not pure & {name.partition(".")[0] for module in core for name in imported(module)}


def test_what_is_imported_is_declared() -> None:
    """A package that only comes with another one may be gone with its next version.

    `pydantic_core` is half of pydantic, which asks for exactly one version of it.
    """
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    library = [*project["dependencies"], *extras["spark"], *extras["strategies"]]
    job = [*project["dependencies"], *extras["spark-matcher"]]
    providers = packages_distributions()
    for module in MODULES:
        of_job = library if module.parent.name == "spark" else job
        requirements = of_job if "spark" in module.parts else project["dependencies"]
        declared = {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
        for top in tops(module) - {"pydantic_core"}:
            names = {name.lower().replace("_", "-") for name in providers[top]}
            assert declared & names, f"{module} imports {top}"
