"""The direction of imports: cli → bootstrap → {runtime, api, adapters} → ports → spec → core."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from twinstream import errors

ROOT = Path(errors.__file__).parent
SHARED = {"access", "errors", "parts", "status", "trials", "settings"}
"""Leaf modules: anything may import them, and they import only each other."""

BELOW: dict[str, set[str]] = {
    "core": set(),
    "spec": {"core"},
    "ports": {"spec", "core"},
    "runtime": {"ports", "spec", "core"},
    "api": {"ports", "spec", "core"},
    "adapters": {"ports", "spec", "core"},
    "answers": {"spec", "core"},
    "testing": {"answers", "runtime", "adapters", "ports", "spec", "core"},
    "__init__": {"testing", "answers", "spec"},
    "observing": {"runtime", "api", "adapters", "ports", "spec", "core"},
    "listening": {"api", "adapters"},
    "logs": set(),
    "bootstrap": {"observing", "listening", "logs", "runtime", "api", "adapters", "ports", "spec", "core"},
    "cli": {"bootstrap", "runtime", "api", "adapters", "ports", "spec", "core"},
}
MODULES = sorted(ROOT.rglob("*.py"))


def part(module: Path) -> str:
    return module.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(module: Path) -> Iterator[str]:
    """The full names that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parts(module: Path) -> set[str]:
    """The parts of twinstream that a module imports."""
    return {name.split(".")[1] for name in imported(module) if name.startswith("twinstream.")}


def test_every_part_has_its_place() -> None:
    assert {part(module) for module in MODULES} - {"__init__"} <= BELOW.keys() | SHARED


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_imports_point_downwards(module: Path) -> None:
    own = part(module)
    allowed = SHARED if own in SHARED else {own, *BELOW.get(own, set()), *SHARED}
    assert parts(module) <= allowed


@pytest.mark.parametrize("module", sorted((ROOT / "core").glob("*.py")), ids=lambda module: module.name)
def test_the_core_needs_nothing_but_the_standard_library_and_sortedcontainers(module: Path) -> None:
    outside = {name.split(".")[0] for name in imported(module)} - sys.stdlib_module_names - {"twinstream"}
    assert outside <= {"sortedcontainers"}
    assert parts(module) <= {"core", "errors"}
    pure = {"time", "os", "io", "logging", "threading", "asyncio", "socket", "random", "pathlib"}
    assert not pure & {name.split(".")[0] for name in imported(module)}


def test_what_is_imported_is_declared() -> None:
    """A package that only comes with another one may be gone with its next version.

    `pydantic_core` is half of pydantic, which asks for exactly one version of it.
    """
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[^\w-]", requirement)[0] for requirement in project["dependencies"]}
    tops = {name.partition(".")[0] for module in MODULES for name in imported(module)}
    providers = packages_distributions()
    for top in tops - sys.stdlib_module_names - {"twinstream", "pydantic_core"}:
        assert declared.intersection(name.lower().replace("_", "-") for name in providers[top]), top
