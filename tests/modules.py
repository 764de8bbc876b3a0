"""``python -m tests.modules > docs/modules.md``: every module with its first line, room by room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "service" / "twinstream"
HEAD = """# Modules

`make pages` writes this page. A line is the first line of the module itself;
[architecture.md](architecture.md) tells how they work together.
"""


def rooms() -> Iterator[tuple[str, list[Path]]]:
    """Each folder of the package with its modules, in the order of their paths."""
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        yield folder.relative_to(PACKAGE.parent).as_posix(), sorted(folder.glob("*.py"))


def first_line(module: Path) -> str:
    """What a module says of itself."""
    return (ast.get_docstring(ast.parse(module.read_text())) or "").partition("\n")[0]


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *map("\n".join, map(_section, *zip(*rooms(), strict=True)))])


def _section(room: str, modules: list[Path]) -> Iterator[str]:
    said = {module.stem: first_line(module) for module in modules}
    yield f"## {room}/\n"
    yield from filter(None, [said.pop("__init__", "")])
    if said:
        yield "\n| module | |\n| --- | --- |"
        yield from (f"| `{name}` | {line} |" for name, line in said.items())
    yield ""


if __name__ == "__main__":
    print(page(), end="")
