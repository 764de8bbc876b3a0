"""`python -m tests.docs`: what is wrong with the words of the documents, a line each; `make lint` runs it.

Every link leads to a file and to a section of it; every page is linked from the README; each promise under a
fault names a test that exists, and each drill is in that table; each `file.py:name` is defined in that file.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.pages import links, sections

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "service" / "twinstream"
README, PROMISES = ROOT / "README.md", ROOT / "docs" / "promises.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [README, ROOT / "CHANGELOG.md", *DOCS, ROOT / "deploy/pipelines/README.md", ROOT / "tests/README.md"]
DRILLS = "e2e/test_drills.py"
RULE = "| --- | --- | --- | --- |"


def broken(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (anchor and anchor not in sections(target)):
            yield f"{page.relative_to(ROOT)}: {path}#{anchor} leads nowhere"


def unlinked() -> Iterator[str]:
    """The pages that nobody finds from the README."""
    linked = {(README.parent / path).resolve() for path, _ in links(README) if path}
    yield from (
        f"{page.relative_to(ROOT)}: the README has no link to it" for page in DOCS if page not in linked
    )


def _tests(file: str) -> set[str]:
    """The tests of a file below `tests/`."""
    path = ROOT / "tests" / file
    return (
        set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE))
        if path.exists()
        else set()
    )


def unproven() -> Iterator[str]:
    """The rows of the promises that name no test, and the drills that are in no row."""
    lines = [line for line in PROMISES.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    heads = {place for place, line in enumerate(lines[1:]) if line == RULE}
    named: set[tuple[str, str]] = set()
    for place, row in enumerate(lines):
        if place in heads or row == RULE:
            continue
        cells = row.strip("|").split(" | ")
        file, _, test = cells[-1].strip("`| ").partition("::")
        named.add((file, test))
        if len(cells) != 4 or test not in _tests(file):
            yield f"docs/promises.md: names no test that exists: {row}"
    for test in sorted(_tests(DRILLS) - {test for file, test in named if file == DRILLS}):
        yield f"docs/promises.md: has no row for {DRILLS}::{test}"


def undefined() -> Iterator[str]:
    """The references to code, `file.py:name` or `file.py:Class.name`, that the file does not define."""
    for page in DOCS:
        for file, name in re.findall(r"`([\w/]+\.py):([\w.]+)`", page.read_text(encoding="utf-8")):
            path = next(filter(Path.exists, (PACKAGE / file, ROOT / file)), None)
            if path is None or name not in _names(ast.parse(path.read_text(encoding="utf-8"))):
                yield f"{page.relative_to(ROOT)}: {file} does not define {name}"


def _names(tree: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[str]:
    """The classes and functions of a module or class, and the members of its classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from _names(node, f"{prefix}{node.name}.")


if __name__ == "__main__":
    wrong = [*(line for page in PAGES for line in broken(page)), *unlinked(), *unproven(), *undefined()]
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(1 if wrong else 0)
